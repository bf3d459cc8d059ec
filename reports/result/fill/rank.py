"""`ranks[]`: what was measured of one process on one GPU."""

from collections.abc import Iterator
from typing import Final

from reports.result.fill.compute import sm, tensor_cores
from reports.result.fill.memory import memory
from reports.result.fill.moe import a2a, detected, moe
from reports.result.fill.parts import because, copied, each
from reports.result.fill.tables import kernel_table, ledger, other_steps, timeline, unknown_kernels
from traces.account.account import Account
from traces.cures import cures
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing, OrMissing, gap
from traces.replay.costs import Costs
from traces.sections import rank as typed
from traces.steps.rules import SLOW_STEPS, alternate
from traces.steps.sample import sample_of

_OF_STEPS: Final = ("median_ns", "min_ns", "max_ns", "mean_ns")


def rank(found: RankMeasurements, ep_overlap: bool | None) -> typed.Rank:
    """One rank. `ep_overlap`: whether expert all-to-all runs under compute on purpose, over all ranks."""
    cure, unseen, no_steps = cures(found.kind), _unseen(found), _no_steps(found)
    budget, account, costs = found.budget, found.account, found.costs
    unaccounted = account if isinstance(account, Missing) else None
    filled = typed.Rank(
        trace=found.trace,
        process=found.process,
        device=found.device,
        gpu=found.gpu.name if found.gpu else None,
        rank=found.rank,
        totals=_totals(found, unseen),
        windows_ns=tuple((start, end) for start, end in found.steps.windows.pairs()),
        steps=_steps(found, no_steps),
        budget_ns=_budget(found, unseen),
        budget_frac=_shares(found, unseen),
        exposed_comm_by_kind_ns=unseen or budget.exposed_comm_by_kind_ns,
        compute_by_class_ns=budget.compute_by_class_ns,
        exposed_copy_by_kind_ns=budget.exposed_copy_by_kind_ns,
        hidden_comm_ns=budget.hidden_comm_ns if unseen is None else unseen,
        absent_ns=_absent(account),
        masked_ns=account if isinstance(account, Missing) else account.masked_ns,
        absent_decided_by_frac=_decided(account),
        clock_offset_ns=found.clock_offset_ns,
        clock_corrected_ns=found.clock.ahead_ns if found.clock else 0,
        clock_within_ns=found.clock.within_ns if found.clock else None,
        a2a=a2a(found),
        sm=sm(found.sm),
        tensor_cores=tensor_cores(found),
        memory=memory(found.memory),
        data_loading=copied(found.data_loading, typed.DataLoading),
        detected=detected(found, ep_overlap),
        kernels_without_launch=found.kernel_count - found.launched_count,
        unknown_kernels=unknown_kernels(found, no_steps),
        moe=moe(found),
        ledger=ledger(found),
        kernel_table=kernel_table(found),
        timeline=timeline(found),
        other_steps=other_steps(found),
        replay=copied(costs.proofs, typed.Replay) if isinstance(costs, Costs) else costs,
    )
    return because(
        filled,
        {
            "process": gap("the trace names no process for these kernels", cure["process"]),
            "gpu": gap("the trace does not record which GPU this was", cure["gpu"]),
            "rank": gap("the trace does not record the rank", cure["rank"]),
            "clock_offset_ns": unaccounted,
        },
    )


def notes(index: int, found: RankMeasurements) -> Iterator[Missing]:
    """What could not be told of the rank at a place of `ranks[]`, and is no value of it."""
    for open_ in found.unresolved:
        yield Missing(f"ranks[{index}].exposed_comm_by_kind_ns.{open_.kind}", open_.reason, open_.cure)
    if found.communication_told and isinstance(found.account, Missing):
        reason = f"rows of time without compute are left out: {found.account.reason}"
        yield Missing(f"ranks[{index}].ledger.absent", reason, found.account.cure)


def _unseen(found: RankMeasurements) -> Missing | None:
    """Why communication cannot be told from compute; None where it can."""
    cure = cures(found.kind)
    if not found.kernels_recorded:
        return gap("graph replays were recorded whole: their kernels are not in the trace", cure["graphs"])
    if not found.names_recorded:
        reason = "no kernel has a name, so communication cannot be separated from compute"
        return gap(reason, cure["all_names"])
    return None


def _no_steps(found: RankMeasurements) -> Missing | None:
    if found.steps.used:
        return None
    reason = "no steps: neither step ranges, optimizer nor a period were found, so one window"
    return gap(reason, cures(found.kind)["steps"])


def _totals(found: RankMeasurements, unseen: Missing | None) -> OrMissing[typed.Totals]:
    if found.totals is None:
        return unseen
    untold = {} if unseen is None else each(("comm_union_ns", "exposed_comm_ns"), unseen)
    return copied(found.totals, typed.Totals, **untold)


def _steps(found: RankMeasurements, no_steps: Missing | None) -> typed.Steps:
    steps, lengths = found.steps, found.steps.lengths_ns()
    costs = found.costs if isinstance(found.costs, Costs) else None
    replayed = () if costs is None else sample_of(steps).steps
    filled = typed.Steps(
        source=steps.source,
        what=steps.what,
        used=tuple(copied(step, typed.Step) for step in steps.used),
        dropped=tuple(copied(step, typed.Dropped, reason=step.dropped) for step in steps.dropped),
        median_ns=steps.median_ns,
        slow=steps.slow,
        replayed=tuple(step.index for step in replayed),
        replayed_ns=0 if costs is None else costs.replayed_ns,
        disagreement=steps.disagreement or "",
        min_ns=min(lengths, default=None),
        max_ns=max(lengths, default=None),
        mean_ns=sum(lengths) // len(lengths) if lengths else None,
        unit=steps.unit,
        hiccups_ns=steps.hiccups_ns,
        outside_ns=None if steps.outside is None else copied(steps.outside, typed.Outside),
        alternating=len(lengths) >= SLOW_STEPS.value and alternate(lengths),
    )
    return because(filled, each(_OF_STEPS, no_steps))


def _budget(found: RankMeasurements, unseen: Missing | None) -> typed.Budget:
    budget = found.budget
    return typed.Budget(
        budget.window_ns,
        budget.compute_ns,
        budget.exposed_comm_ns if unseen is None else unseen,
        budget.exposed_copy_ns,
        budget.idle_ns,
    )


def _shares(found: RankMeasurements, unseen: Missing | None) -> typed.BudgetShares:
    budget, window_ns = found.budget, found.budget.window_ns
    return typed.BudgetShares(
        budget.compute_ns / window_ns,
        budget.exposed_comm_ns / window_ns if unseen is None else unseen,
        budget.exposed_copy_ns / window_ns,
        budget.idle_ns / window_ns,
    )


def _absent(account: Account | Missing) -> OrMissing[typed.Absent]:
    if isinstance(account, Missing):
        return account
    return typed.Absent(
        account.launch_starved_ns,
        account.blocking_ns,
        typed.Latency(account.arrival_ns, account.kernel_gap_ns),
        account.graph_opaque_ns,
        account.dependency_stalled_ns,
        account.trailing_ns,
    )


def _decided(account: Account | Missing) -> OrMissing[typed.DecidedBy]:
    if isinstance(account, Missing):
        return account
    whole = account.total_ns
    return typed.DecidedBy(**{by: ns / whole if whole else 0.0 for by, ns in account.decided_ns.items()})
