"""The `ranks[]` part of the document."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from traces.measure.budget import Budget
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing
from traces.steps.found import Step, Steps, median_ns

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


def rank_section(index: int, rank: RankMeasurements) -> RankSection:
    """The entry of one rank; `index` is its place in `ranks[]`, for the paths of its gaps."""
    seen = rank.kernels_recorded
    values: dict[str, Any] = {
        "trace": rank.trace,
        "process": rank.process,
        "device": rank.device,
        "gpu": rank.gpu.name if rank.gpu else None,
        "rank": rank.rank,
        "totals": asdict(rank.totals) if rank.totals else None,
        "windows_ns": rank.steps.windows.pairs(),
        "steps": _steps_section(rank.steps),
        "budget_ns": _budget_section(rank.budget, seen),
        "budget_frac": _shares(rank.budget, seen),
        "exposed_comm_by_kind_ns": dict(rank.budget.exposed_comm_by_kind_ns) if seen else None,
        "compute_by_class_ns": dict(rank.budget.compute_by_class_ns),
        "exposed_copy_by_kind_ns": dict(rank.budget.exposed_copy_by_kind_ns),
        "hidden_comm_ns": rank.budget.hidden_comm_ns if seen else None,
        "absent_ns": None,
        "masked_ns": None,
        "clock_offset_ns": None,
        "absent_decided_by_frac": None,
        "a2a": None,
        "sm": None,
        "memory": None,
        "detected": None,
        "unknown_kernels": [{"name": kernel.name, "frac": kernel.frac} for kernel in rank.unknown_kernels],
        "ledger": None,
        "replay": None,
    }
    return RankSection(values, tuple(_gaps(f"ranks[{index}]", rank, values)))


def _steps_section(steps: Steps) -> dict[str, Any]:
    lengths = steps.lengths_ns()
    return {
        "source": steps.source,
        "what": steps.what,
        "used": [_step_times(step) for step in steps.used],
        "dropped": [{**_step_times(step), "reason": step.dropped} for step in steps.dropped],
        "median_ns": median_ns(lengths) if lengths else None,
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
    if rank.process is None:
        cure = "export the report again with a newer nsys"
        gaps.append(Missing(f"{path}.process", "the export names no process for these kernels", cure))
    if values["gpu"] is None:
        cure = "export again with the GPU table, or give --gpu-model in a later version"
        gaps.append(Missing(f"{path}.gpu", "the export does not say which GPU this was", cure))
    if rank.rank is None:
        cure = "where MPI starts the run, record with --trace=cuda,nvtx,mpi"
        gaps.append(Missing(f"{path}.rank", "the trace does not record the rank", cure))
    if not rank.steps.used:
        cure = (
            "push one NVTX range named 'iteration N' per step and record with --trace=cuda,nvtx, "
            "or name a range with --nvtx"
        )
        gaps.append(Missing(f"{path}.steps", "no steps: one window, so no per-step figures", cure))
    if "sendrecv_unresolved" in rank.budget.exposed_comm_by_kind_ns and rank.kernels_recorded:
        reason = (
            "NCCL SendRecv kernels are expert all-to-all, pipeline or context-parallel exchange; "
            "their name alone cannot say which"
        )
        cure = "record NCCL's NVTX ranges with --trace=cuda,nvtx and read them beside the kernels"
        gaps.append(Missing(f"{path}.exposed_comm_by_kind_ns.sendrecv_unresolved", reason, cure))
    if not rank.kernels_recorded:
        reason = "graph replays were recorded whole: their kernels are not in the trace"
        gaps += [Missing(f"{path}.{key}", reason, "record with --cuda-graph-trace=node") for key in _UNSEEN]
    return gaps
