"""`ranks[].ledger`, `kernel_table`, `unknown_kernels` and `timeline`: what is compared, and one step."""

from msgspec.structs import replace

from heuristics.findings.unknown_kernels import is_finding
from heuristics.walls.ledger_walls import wall_of
from reports.result.fill.parts import all_copied, because, copied
from traces.cures import cures
from traces.measure.measurements import RankMeasurements
from traces.measure.timeline_columns import StepTimeline
from traces.missing import Missing, OrMissing, gap
from traces.sections import tables as typed
from traces.sections.rank import UnknownKernel


def ledger(rank: RankMeasurements) -> OrMissing[tuple[typed.LedgerRow, ...]]:
    """The rows of the ledger, where communication can be told from compute."""
    if not rank.communication_told:
        return gap("communication cannot be separated from compute", cures(rank.kind)["names"])
    return tuple(copied(row, typed.LedgerRow, wall=wall_of(row.row)) for row in rank.ledger)


def kernel_table(rank: RankMeasurements) -> typed.KernelTable:
    """Kernels with the most work first, and how much is left out of them."""
    table, why = rank.kernels, {"grid": _no_grid(rank)}
    return typed.KernelTable(
        tuple(because(all_copied(row, typed.Kernel), why) for row in table.rows),
        typed.KernelsLeftOut(table.left_out_rows, table.left_out_count, table.left_out_work_ns),
    )


def unknown_kernels(rank: RankMeasurements, no_steps: Missing | None) -> tuple[UnknownKernel, ...]:
    """Kernels that no rule names. `no_steps`: why there are none."""
    count = len(rank.steps.used)
    why = {"grid": _no_grid(rank), "per_step_ns": no_steps}
    return tuple(
        because(
            copied(
                one,
                UnknownKernel,
                per_step_ns=one.busy_ns // count if count else None,
                finding=is_finding(one),
            ),
            why,
        )
        for one in rank.unknown_kernels
    )


def _no_grid(rank: RankMeasurements) -> Missing:
    return gap("the trace has no grid of these", cures(rank.kind)["version"])


def timeline(rank: RankMeasurements) -> typed.Timeline:
    """One step by stream; the window where there are no steps."""
    no_steps = gap("there are no steps: it shows the window", "give --steps, --nvtx, or record step ranges")
    return because(_timeline(rank, rank.timeline), {"step": no_steps})


def other_steps(rank: RankMeasurements) -> tuple[typed.Timeline, ...]:
    """The other used steps; a window has none."""
    return tuple(_timeline(rank, step) for step in rank.other_steps)


def _timeline(rank: RankMeasurements, step: StepTimeline) -> typed.Timeline:
    unexplained = rank.account if isinstance(rank.account, Missing) else None
    shown = because(all_copied(step, typed.Timeline), {"reasons": unexplained})
    unlaunched = gap("the launch of some activities was not recorded", cures(rank.kind)["launches"])
    return replace(shown, lanes=tuple(_launched(lane, unlaunched) for lane in shown.lanes))


def _launched(lane: typed.Lane, why: Missing) -> typed.Lane:
    if None not in lane.launch_ns:
        return lane
    return replace(lane, launch_ns=tuple(why if one is None else one for one in lane.launch_ns))
