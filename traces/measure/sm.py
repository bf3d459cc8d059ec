"""How a rank uses the SMs of its GPU: by its launches, beside communication, and by hardware counters."""

from collections.abc import Mapping
from dataclasses import dataclass

from traces.columns import NULL, Gpu, GpuSamples, distinct
from traces.intervals import Spans, covered_ns
from traces.launches import grid_numbers
from traces.measure.sm_beside_comm import CommBlocks, Stretch, measure_comm_blocks, measure_stretch
from traces.measure.sm_launches import LaunchUse, measure_launches
from traces.measure.sm_measured import Measured, measure_samples
from traces.missing import Missing
from traces.names.gpus import capability_at_least
from traces.timeline import Activities, RankTimeline, Source


@dataclass(frozen=True, slots=True)
class SmUse:
    """The SMs of one rank in its windows. What is None is in `missing`, under paths that begin with "sm",
    but for what is beside communication where there is none.

    `launches` is over all compute kernels, `by_class` over each class of them. `measured` are samples of the
    whole GPU while anything ran, `measured_by_class` while a class ("comm": communication) did.
    `capability_at_least` is what kernel names speak of, told only where the trace does not tell the GPU's.
    """

    sm_count: int | None
    capability_at_least: str | None
    launches: LaunchUse | None
    by_class: Mapping[str, LaunchUse]
    comm_blocks: CommBlocks | None
    stretch: Stretch | None
    measured: Measured | None
    measured_by_class: Mapping[str, Measured]
    missing: tuple[Missing, ...]


def measure_sm(
    rank: RankTimeline, windows: Spans, gpu: Gpu | None, samples: tuple[GpuSamples, ...] = ()
) -> SmUse:
    """Measure the SMs of one rank. `gpu` is the one it ran on, `samples` are those of every sampled GPU."""
    kernels = rank.activities.take(rank.activities.source == Source.KERNEL)
    kernels = kernels.take(covered_ns(kernels.start_ns, kernels.end_ns, windows) > 0)
    shapes, shape = rank.columns.kernels.shapes, rank.columns.kernels.shape[kernels.row]
    by_launch = measure_launches(rank, kernels, windows, gpu)
    launches, by_class, gaps = (None, {}, (by_launch,)) if isinstance(by_launch, Missing) else by_launch
    blocks = measure_comm_blocks(kernels, shapes.blocks[shape], windows, rank.columns.info.kind)
    stretch = measure_stretch(kernels, grid_numbers(shapes)[shape], (shapes.grid != NULL).all(axis=1)[shape])
    measured, measured_by_class = measure_samples(kernels, windows, gpu, samples, rank.columns.info.kind)
    others = (blocks, stretch, measured)
    return SmUse(
        sm_count=gpu.sm_count if gpu else None,
        capability_at_least=None if gpu and gpu.capability else _spoken_capability(rank, kernels),
        launches=launches,
        by_class=by_class,
        comm_blocks=None if isinstance(blocks, Missing) else blocks,
        stretch=None if isinstance(stretch, Missing) else stretch,
        measured=None if isinstance(measured, Missing) else measured,
        measured_by_class=measured_by_class,
        missing=(*gaps, *(result for result in others if isinstance(result, Missing))),
    )


def _spoken_capability(rank: RankTimeline, kernels: Activities) -> str | None:
    return capability_at_least(
        rank.columns.kernel_names[code] for code in distinct(kernels.name) if code >= 0
    )
