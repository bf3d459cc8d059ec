"""`ranks[]`: what was measured of one process on one GPU."""

from collections.abc import Iterator
from functools import partial

from msgspec import UNSET
from msgspec.structs import replace

from heuristics.figures.figures import is_finding
from heuristics.walls.price import wall_of
from reports.rows import each
from traces.cures import cures
from traces.measurements import RankMeasurements
from traces.missing import Missing, gap, or_gap, unless
from traces.sections import rank as typed
from traces.sections.section import copied
from traces.sections.steps import Dropped, Step, Steps
from traces.sections.tables import LedgerRow
from traces.sections.window import Budget, BudgetShares
from traces.steps.found import no_steps
from traces.steps.rules import SLOW_STEPS, alternate
from traces.steps.sample import sample_of


def rank(data: RankMeasurements, ep_overlap: bool | None) -> typed.Rank:
    """One rank. `ep_overlap`: all ranks' expert all-to-all runs under compute on purpose."""
    cure, account, costs, budget = cures(data.kind), data.account, data.costs, data.budget
    offset_ns: int | Missing | None = data.clock_offset_ns
    if isinstance(account, Missing):
        waits: dict[str, object] = dict.fromkeys(
            ("absent_ns", "masked_ns", "absent_decided_by_frac"), account
        )
        offset_ns = or_gap(data.clock_offset_ns, account)
    else:
        waits = {"absent_ns": account.absent, "masked_ns": account.masked_ns}
        waits["absent_decided_by_frac"] = account.decided_by
    either = (
        "there is no expert all-to-all, or it is hidden more than by chance and less than on "
        "purpose"
    )
    window_ns, comm_ns, copy_ns = budget.window_ns, budget.exposed_comm_ns, budget.exposed_copy_ns
    replay: Missing | typed.Replay
    if isinstance(costs, Missing):
        replay = costs
    else:
        savings = (typed.Saving(fix.kind, fix.low_ns, fix.high_ns) for fix in costs.changes)
        replay = copied(typed.Replay, costs.proofs, changes=tuple(savings))
    ledger: Missing | tuple[LedgerRow, ...]
    if data.unseen is None:
        ledger = tuple(replace(row, wall=wall_of(row.row)) for row in data.ledger)
    else:
        ledger = gap("communication cannot be separated from compute", cure["names"])
    return copied(
        typed.Rank,
        data,
        budget,
        process=or_gap(
            data.process, gap("the trace names no process for these kernels", cure["process"])
        ),
        gpu=or_gap(
            data.gpu and data.gpu.name,
            gap("the trace does not record which GPU this was", cure["gpu"]),
        ),
        physical_gpu=UNSET if data.physical_gpu is None else data.physical_gpu,
        rank=or_gap(data.rank, gap("the trace does not record the rank", cure["rank"])),
        clock_offset_ns=offset_ns,
        windows_ns=tuple(map(tuple, data.steps.windows.pairs())),
        steps=_steps(data),
        budget_ns=Budget(
            window_ns, budget.compute_ns, unless(data.unseen, comm_ns), copy_ns, budget.idle_ns
        ),
        budget_frac=BudgetShares(
            budget.compute_ns / window_ns,
            unless(data.unseen, comm_ns / window_ns),
            copy_ns / window_ns,
            budget.idle_ns / window_ns,
        ),
        exposed_comm_by_kind_ns=unless(data.unseen, budget.exposed_comm_by_kind_ns),
        hidden_comm_ns=unless(data.unseen, budget.hidden_comm_ns),
        clock_corrected_ns=data.clock.ahead_ns if data.clock else 0,
        clock_within_ns=data.clock and data.clock.within_ns,
        detected=replace(
            data.detected, ep_overlap=or_gap(ep_overlap, gap(either, "--config FILE"))
        ),
        kernels_without_launch=data.kernel_count - data.launched_count,
        unknown_kernels=tuple(
            replace(kernel, finding=is_finding(kernel)) for kernel in data.unnamed.kernels
        ),
        ledger=ledger,
        replay=replay,
        **waits,
    )


def notes(index: int, data: RankMeasurements) -> Iterator[Missing]:
    """What could not be told of the rank at a place of `ranks[]`, and is no value of it."""
    for open_ in data.unresolved:
        yield Missing(
            f"ranks[{index}].exposed_comm_by_kind_ns.{open_.kind}", open_.reason, open_.cure
        )
    if data.unseen is None and isinstance(data.account, Missing):
        reason = f"rows of time without compute are left out: {data.account.reason}"
        yield Missing(f"ranks[{index}].ledger.absent", reason, data.account.cure)


def _steps(data: RankMeasurements) -> Steps:
    steps, lengths, costs = data.steps, data.steps.lengths_ns(), data.costs
    unstepped = no_steps(data.kind)
    return copied(
        Steps,
        steps,
        used=tuple(map(partial(copied, Step), steps.used)),
        dropped=tuple(copied(Dropped, step, reason=step.dropped) for step in steps.dropped),
        median_ns=or_gap(steps.median_ns, unstepped),
        replayed=tuple(each(sample_of(steps).steps, "index")) if costs else (),
        replayed_ns=costs.replayed_ns if costs else 0,
        disagreement=steps.disagreement or "",
        min_ns=or_gap(min(lengths, default=None), unstepped),
        max_ns=or_gap(max(lengths, default=None), unstepped),
        mean_ns=sum(lengths) // len(lengths) if lengths else unstepped,
        outside_ns=steps.outside,
        alternating=len(lengths) >= SLOW_STEPS.value and alternate(lengths),
    )
