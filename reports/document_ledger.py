"""What two runs are compared by in `ranks[]`: the ledger, the kernels, and MoE layers by module and pass."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from traces.account.account import Account
from traces.cures import cures
from traces.measure.kernel_table import KernelTable
from traces.measure.ledger import LedgerRow
from traces.measure.measurements import RankMeasurements
from traces.measure.moe.rows import LayerRow, MoeRow
from traces.measure.moe_ledger import MoeLedger
from traces.measure.timeline_columns import HostLane, Lane, ReasonLane, StepTimeline
from traces.missing import Missing

_OF_ACCOUNT: Final = ("blocking_ns", "host_wait_ns")
_NO_LAUNCH: Final = "the launch of some activities was not recorded"
_UNTOLD: Final = {"moe.tax_ns": ("moe.tax_ns", "moe.tax_frac"), "moe.layers": ("moe.layers",)}


def ledger_section(rank: RankMeasurements) -> list[dict[str, Any]] | None:
    """The contract's `ledger`; None where communication cannot be told from compute."""
    return [_ledger_row(row) for row in rank.ledger] if rank.communication_told else None


def _ledger_row(row: LedgerRow) -> dict[str, Any]:
    return asdict(row) | {"per_step_ns": list(row.per_step_ns)}


def kernels_section(table: KernelTable) -> dict[str, Any]:
    """`kernel_table`: those with the most work first, and how much is left out of them."""
    rows = [asdict(row) | {"grid": None if row.grid is None else list(row.grid)} for row in table.rows]
    left_out = {
        "rows": table.left_out_rows,
        "count": table.left_out_count,
        "work_ns": table.left_out_work_ns,
    }
    return {"rows": rows, "left_out": left_out}


def timeline_section(timeline: StepTimeline) -> dict[str, Any]:
    """`timeline`, or one of `other_steps`: a step by stream and thread, as columns of one length."""
    return {
        "step": timeline.step,
        "start_ns": timeline.start_ns,
        "end_ns": timeline.end_ns,
        "left_out": timeline.left_out,
        "keys": list(timeline.keys),
        "names": list(timeline.names),
        "lanes": [_columns(lane) for lane in timeline.lanes],
        "reasons": None if timeline.reasons is None else _columns(timeline.reasons),
        "host": [_columns(lane) for lane in timeline.host],
        "host_left_out": timeline.host_left_out,
    }


def _columns(lane: Lane | HostLane | ReasonLane) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(lane).items()}


def moe_section(moe: MoeLedger | Missing) -> dict[str, Any] | None:
    """`moe`: the tax, and what each module takes by pass and by layer; None where there is none."""
    if isinstance(moe, Missing):
        return None
    return {
        "tax_ns": moe.tax_ns,
        "tax_frac": moe.tax_frac,
        "layers": moe.layers,
        "rows": [_moe_row(row) for row in moe.rows],
        "by_layer": [_layer_row(row) for row in moe.by_layer],
    }


def _moe_row(row: MoeRow) -> dict[str, Any]:
    values = asdict(row)
    name = {"module": values.pop("module"), "pass": values.pop("pass_")}
    return name | values | {"per_step_ns": list(row.per_step_ns)}


def _layer_row(row: LayerRow) -> dict[str, Any]:
    return {
        "layer": row.layer,
        "module": row.module,
        "pass": row.pass_,
        "count": row.count,
        "work_ns": row.work_ns,
        "wall_ns": row.wall_ns,
    }


def ledger_gaps(path: str, rank: RankMeasurements) -> list[Missing]:
    """Entries for what is None in both sections of the rank at `path`, and for rows that are left out."""
    gaps = [*_ledger_gaps(f"{path}.ledger", rank), *_moe_gaps(path, rank.moe, rank.account)]
    steps = {f"{path}.timeline": (rank.timeline,), f"{path}.other_steps[*]": rank.other_steps}
    for place, shown in steps.items():
        if shown and isinstance(rank.account, Missing):
            gaps.append(Missing(f"{place}.reasons", rank.account.reason, rank.account.cure))
        if any(None in lane.launch_ns for step in shown for lane in step.lanes):
            gaps.append(Missing(f"{place}.lanes[*].launch_ns", _NO_LAUNCH, cures(rank.kind)["launches"]))
    if rank.timeline.step is None:
        why = "there are no steps: it shows the window"
        gaps.append(Missing(f"{path}.timeline.step", why, "give --steps, --nvtx, or record step ranges"))
    if any(row.grid is None for row in rank.kernels.rows):
        gaps.append(
            Missing(f"{path}.kernel_table", "the trace has no grid of these", cures(rank.kind)["version"])
        )
    return gaps


def _ledger_gaps(path: str, rank: RankMeasurements) -> list[Missing]:
    if not rank.communication_told:
        reason = "communication cannot be told from compute"
        return [Missing(path, reason, cures(rank.kind)["names"])]
    gaps = [Missing(f"{path}[*].wall", "taking away no single wall shrinks these rows", "none is needed")]
    if isinstance(rank.account, Missing):
        reason = f"rows of time without compute are left out: {rank.account.reason}"
        gaps.append(Missing(f"{path}.absent", reason, rank.account.cure))
    return gaps


def _moe_gaps(path: str, moe: MoeLedger | Missing, account: Account | Missing) -> list[Missing]:
    if isinstance(moe, Missing):
        return [Missing(f"{path}.moe", moe.reason, moe.cure)]
    gaps = [
        Missing(f"{path}.{key}", gap.reason, gap.cure) for gap in moe.missing for key in _UNTOLD[gap.path]
    ]
    if isinstance(account, Missing):
        gaps += [Missing(f"{path}.moe.rows[*].{key}", account.reason, account.cure) for key in _OF_ACCOUNT]
    return gaps
