"""All measurements of one rank."""

from __future__ import annotations

from dataclasses import dataclass

from traces.columns import NULL, Gpu
from traces.measure.budget import Budget, measure_budget
from traces.measure.totals import Totals, measure_totals
from traces.measure.unknown import UnknownKernel, unknown_kernels
from traces.steps.choose import choose_steps
from traces.steps.found import Steps
from traces.steps.selection import Selection
from traces.timeline import RankTimeline, Source


@dataclass(frozen=True, slots=True)
class RankMeasurements:
    """The numbers of one process on one GPU.

    `process`, `gpu` and `rank` are None where the trace does not say. `kernels_recorded` is False where only
    whole graph replays were recorded: then `totals` is None and the budget's compute means busy.
    `launched_frac` is the share of kernels whose launch was recorded, None without kernels;
    `opaque_graph_launches` counts graph launches of which neither kernels nor a replay were recorded.
    """

    trace: str
    process: int | None
    device: int
    gpu: Gpu | None
    rank: int | None
    kernels_recorded: bool
    replays_recorded: bool
    totals: Totals | None
    steps: Steps
    budget: Budget
    unknown_kernels: tuple[UnknownKernel, ...]
    kernel_count: int
    launched_count: int
    outside_activity_ns: int
    """How much of a window the user gave lies before the first or after the last GPU activity."""


def measure_rank(rank: RankTimeline, selection: Selection) -> RankMeasurements:
    """Measure one rank. Raises `EmptySelection` where the selection matches nothing of it."""
    rows = rank.activities
    steps = choose_steps(rank, selection)
    is_kernel = rows.source == Source.KERNEL
    first, last = int(rows.start_ns.min()), int(rows.end_ns.max())
    starts, ends = steps.windows.start_ns, steps.windows.end_ns
    return RankMeasurements(
        trace=rank.columns.info.name,
        process=rank.process,
        device=rank.device,
        gpu=gpu_of(rank),
        rank=None if rank.process is None else rank.columns.rank_of.get(rank.process),
        kernels_recorded=rank.has_kernels,
        replays_recorded=bool((rows.source == Source.REPLAY).any()),
        totals=measure_totals(rows),
        steps=steps,
        budget=measure_budget(rows, steps.windows),
        unknown_kernels=unknown_kernels(rank, steps.windows),
        kernel_count=int(is_kernel.sum()),
        launched_count=int((is_kernel & (rows.launch_ns != NULL)).sum()),
        outside_activity_ns=max(0, first - int(starts.min())) + max(0, int(ends.max()) - last),
    )


def gpu_of(rank: RankTimeline) -> Gpu | None:
    """The GPU a rank ran on: by the export's own map, else the only one listed, else by CUDA ordinal."""
    listed, columns = rank.columns.info.gpus, rank.columns
    if rank.process is not None and (place := columns.gpu_of.get((rank.process, rank.device))) is not None:
        return listed[place]
    if columns.gpu_of:
        return None
    if len(listed) == 1:
        return listed[0]
    return next((gpu for gpu in listed if gpu.cuda_device == rank.device), None)
