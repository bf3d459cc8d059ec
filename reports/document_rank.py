"""The `ranks[]` part of the document."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from heuristics.unknown_kernels import is_finding
from reports.document_a2a import a2a_section, communication_gaps, detected_section
from reports.document_account import account_gaps, account_section
from reports.document_ledger import (
    kernels_section,
    ledger_gaps,
    ledger_section,
    moe_section,
    timeline_section,
)
from reports.document_memory import (
    detected_precision,
    detected_recompute,
    memory_gaps,
    memory_section,
)
from reports.document_sm import sm_gaps, sm_section
from traces.cures import cures
from traces.measure.budget import Budget
from traces.measure.measurements import RankMeasurements
from traces.measure.unknown import UnknownKernel
from traces.missing import Missing
from traces.replay.costs import Costs
from traces.steps.found import Step, Steps

_UNSEEN: Final = (
    "totals",
    "budget_ns.exposed_comm",
    "budget_frac.exposed_comm",
    "exposed_comm_by_kind_ns",
    "hidden_comm_ns",
)
"""What cannot be told where only whole graph replays were recorded."""


@dataclass(frozen=True, slots=True)
class RankSection:
    """One entry of `ranks[]`, and the gaps in it."""

    values: dict[str, Any]
    missing: tuple[Missing, ...]


def rank_section(index: int, rank: RankMeasurements, ep_overlap: bool | None) -> RankSection:
    """The entry of one rank; `index` is its place in `ranks[]`, for the paths of its gaps.

    `ep_overlap`: whether expert all-to-all runs under compute on purpose, over all ranks.
    """
    seen = rank.communication_told
    values: dict[str, Any] = {
        "trace": rank.trace,
        "process": rank.process,
        "device": rank.device,
        "gpu": rank.gpu.name if rank.gpu else None,
        "rank": rank.rank,
        "totals": _totals_section(rank),
        "windows_ns": rank.steps.windows.pairs(),
        "steps": _steps_section(rank.steps),
        "budget_ns": _budget_section(rank.budget, seen),
        "budget_frac": _shares(rank.budget, seen),
        "exposed_comm_by_kind_ns": dict(rank.budget.exposed_comm_by_kind_ns) if seen else None,
        "compute_by_class_ns": dict(rank.budget.compute_by_class_ns),
        "exposed_copy_by_kind_ns": dict(rank.budget.exposed_copy_by_kind_ns),
        "hidden_comm_ns": rank.budget.hidden_comm_ns if seen else None,
        **account_section(rank.account),
        "clock_offset_ns": rank.clock_offset_ns,
        "a2a": a2a_section(rank),
        "sm": sm_section(rank.sm),
        "tensor_cores": asdict(rank.tensor_cores),
        "memory": memory_section(rank.memory),
        "detected": {
            **detected_section(rank, ep_overlap),
            **detected_precision(rank.precision),
            "recompute": detected_recompute(rank.recompute),
        },
        "kernels_without_launch": rank.kernel_count - rank.launched_count,
        "unknown_kernels": [_unknown_kernel(kernel, rank.steps) for kernel in rank.unknown_kernels],
        "moe": moe_section(rank.moe),
        "ledger": ledger_section(rank),
        "kernel_table": kernels_section(rank.kernels),
        "timeline": timeline_section(rank.timeline),
        "other_steps": [timeline_section(step) for step in rank.other_steps],
        "replay": _replay_section(rank.costs),
    }
    return RankSection(values, tuple(_gaps(f"ranks[{index}]", rank, values)))


def _unknown_kernel(kernel: UnknownKernel, steps: Steps) -> dict[str, Any]:
    per_step_ns = kernel.busy_ns // len(steps.used) if steps.used else None
    grid = None if kernel.grid is None else list(kernel.grid)
    return asdict(kernel) | {"grid": grid, "per_step_ns": per_step_ns, "finding": is_finding(kernel)}


def _replay_section(costs: Costs | Missing) -> dict[str, Any] | None:
    return None if isinstance(costs, Missing) else asdict(costs.proofs)


def _totals_section(rank: RankMeasurements) -> dict[str, Any] | None:
    if rank.totals is None:
        return None
    untold = {} if rank.names_recorded else dict.fromkeys(("comm_union_ns", "exposed_comm_ns"))
    return asdict(rank.totals) | untold


def _steps_section(steps: Steps) -> dict[str, Any]:
    lengths = steps.lengths_ns()
    return {
        "source": steps.source,
        "what": steps.what,
        "used": [_step_times(step) for step in steps.used],
        "dropped": [{**_step_times(step), "reason": step.dropped} for step in steps.dropped],
        "median_ns": steps.median_ns,
        "slow": list(steps.slow),
        "disagreement": steps.disagreement or "",
        "min_ns": min(lengths, default=None),
        "max_ns": max(lengths, default=None),
        "mean_ns": sum(lengths) // len(lengths) if lengths else None,
    }


def _step_times(step: Step) -> dict[str, Any]:
    return {"index": step.index, "start_ns": step.start_ns, "end_ns": step.end_ns}


def _budget_section(budget: Budget, kernels_recorded: bool) -> dict[str, Any]:
    return {
        "window": budget.window_ns,
        "compute": budget.compute_ns,
        "exposed_comm": budget.exposed_comm_ns if kernels_recorded else None,
        "exposed_copy": budget.exposed_copy_ns,
        "idle": budget.idle_ns,
    }


def _shares(budget: Budget, kernels_recorded: bool) -> dict[str, Any]:
    ns = _budget_section(budget, kernels_recorded)
    window_ns = ns.pop("window")
    return {bucket: None if value is None else value / window_ns for bucket, value in ns.items()}


def _gaps(path: str, rank: RankMeasurements, values: dict[str, Any]) -> list[Missing]:
    gaps = []
    gaps += communication_gaps(path, rank, values["detected"]["ep_overlap"])
    gaps += sm_gaps(path, rank.sm)
    gaps += memory_gaps(path, rank.memory, rank.precision, rank.recompute)
    gaps += ledger_gaps(path, rank)
    gaps += account_gaps(path, rank.account, rank.clock_offset_ns)
    if isinstance(rank.costs, Missing):
        gaps.append(Missing(f"{path}.replay", rank.costs.reason, rank.costs.cure))
    cure = cures(rank.kind)
    if rank.process is None:
        gaps.append(
            Missing(f"{path}.process", "the trace names no process for these kernels", cure["process"])
        )
    if values["gpu"] is None:
        gaps.append(Missing(f"{path}.gpu", "the trace does not say which GPU this was", cure["gpu"]))
    if rank.tensor_cores.tf32 is None:
        why = "the trace does not tell the GPU's compute capability"
        gaps.append(Missing(f"{path}.tensor_cores.tf32", why, cure["gpu"]))
    if rank.tensor_cores.fp32_to_tf32_frac is None:
        why = "the GPU has no TF32, or its peak rates are not known"
        gaps.append(Missing(f"{path}.tensor_cores.fp32_to_tf32_frac", why, cure["gpu"]))
    if rank.rank is None:
        gaps.append(Missing(f"{path}.rank", "the trace does not record the rank", cure["rank"]))
    if not rank.steps.used:
        reason = "no steps: neither step ranges, optimizer nor a period were found, so one window"
        gaps.append(Missing(f"{path}.steps", reason, cure["steps"]))
        if rank.unknown_kernels:
            gaps.append(Missing(f"{path}.unknown_kernels[*].per_step_ns", reason, cure["steps"]))
    if any(kernel.grid is None for kernel in rank.unknown_kernels):
        gaps.append(
            Missing(f"{path}.unknown_kernels[*].grid", "the trace has no grid of these", cure["version"])
        )
    if not rank.kernels_recorded:
        reason = "graph replays were recorded whole: their kernels are not in the trace"
        gaps += [Missing(f"{path}.{key}", reason, cure["graphs"]) for key in _UNSEEN]
    elif not rank.names_recorded:
        reason = "no kernel has a name, so communication cannot be told from compute"
        keys = ("totals.comm_union_ns", "totals.exposed_comm_ns", *_UNSEEN[1:])
        gaps += [Missing(f"{path}.{key}", reason, cure["all_names"]) for key in keys]
    return gaps
