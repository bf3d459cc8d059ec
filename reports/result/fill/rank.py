"""`ranks[]`: what was measured of one process on one GPU."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from heuristics.findings.recorded import is_finding
from heuristics.walls.price import wall_of
from reports.result.fill.parts import because, copied, each
from traces.account.account import Account
from traces.cures import cures
from traces.measurements import RankMeasurements
from traces.missing import Missing, OrMissing, gap
from traces.replay.changes.costs import Costs
from traces.sections import rank as typed
from traces.steps.found import no_steps
from traces.steps.rules import SLOW_STEPS, alternate
from traces.steps.sample import sample_of

_OF_STEPS: Final = ("median_ns", "min_ns", "max_ns", "mean_ns")


def rank(found: RankMeasurements, ep_overlap: bool | None) -> typed.Rank:
    """One rank. `ep_overlap`: whether expert all-to-all runs under compute on purpose, over all ranks."""
    cure, account, costs = cures(found.kind), found.account, found.costs
    either = "there is no expert all-to-all, or it is hidden more than by chance and less than on purpose"
    filled = copied(
        found,
        typed.Rank,
        gpu=found.gpu.name if found.gpu else None,
        windows_ns=tuple((start, end) for start, end in found.steps.windows.pairs()),
        steps=_steps(found),
        budget_ns=_budget(found),
        budget_frac=_shares(found),
        exposed_comm_by_kind_ns=found.unseen or found.budget.exposed_comm_by_kind_ns,
        compute_by_class_ns=found.budget.compute_by_class_ns,
        exposed_copy_by_kind_ns=found.budget.exposed_copy_by_kind_ns,
        hidden_comm_ns=found.unseen or found.budget.hidden_comm_ns,
        absent_ns=_absent(account),
        masked_ns=account if isinstance(account, Missing) else account.masked_ns,
        absent_decided_by_frac=_decided(account),
        clock_corrected_ns=found.clock.ahead_ns if found.clock else 0,
        clock_within_ns=found.clock.within_ns if found.clock else None,
        detected=replace(
            found.detected, ep_overlap=gap(either, "--config FILE") if ep_overlap is None else ep_overlap
        ),
        kernels_without_launch=found.kernel_count - found.launched_count,
        unknown_kernels=tuple(replace(one, finding=is_finding(one)) for one in found.unknown_kernels),
        ledger=gap("communication cannot be separated from compute", cure["names"])
        if found.unseen
        else tuple(replace(row, wall=wall_of(row.row)) for row in found.ledger),
        replay=copied(costs.proofs, typed.Replay) if isinstance(costs, Costs) else costs,
    )
    return because(
        filled,
        {
            "process": gap("the trace names no process for these kernels", cure["process"]),
            "gpu": gap("the trace does not record which GPU this was", cure["gpu"]),
            "rank": gap("the trace does not record the rank", cure["rank"]),
            "clock_offset_ns": account if isinstance(account, Missing) else None,
        },
    )


def notes(index: int, found: RankMeasurements) -> Iterator[Missing]:
    """What could not be told of the rank at a place of `ranks[]`, and is no value of it."""
    for open_ in found.unresolved:
        yield Missing(f"ranks[{index}].exposed_comm_by_kind_ns.{open_.kind}", open_.reason, open_.cure)
    if found.unseen is None and isinstance(found.account, Missing):
        reason = f"rows of time without compute are left out: {found.account.reason}"
        yield Missing(f"ranks[{index}].ledger.absent", reason, found.account.cure)


def _steps(found: RankMeasurements) -> typed.Steps:
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
        outside_ns=steps.outside,
        alternating=len(lengths) >= SLOW_STEPS.value and alternate(lengths),
    )
    return because(filled, each(_OF_STEPS, no_steps(found.kind)))


def _budget(found: RankMeasurements) -> typed.Budget:
    budget = found.budget
    return typed.Budget(
        budget.window_ns,
        budget.compute_ns,
        found.unseen or budget.exposed_comm_ns,
        budget.exposed_copy_ns,
        budget.idle_ns,
    )


def _shares(found: RankMeasurements) -> typed.BudgetShares:
    budget, window_ns = found.budget, found.budget.window_ns
    return typed.BudgetShares(
        budget.compute_ns / window_ns,
        found.unseen or budget.exposed_comm_ns / window_ns,
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
