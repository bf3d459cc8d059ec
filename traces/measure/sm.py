"""How a rank uses the SMs of its GPU: by its launches, beside communication, and by hardware counters."""

from dataclasses import dataclass
from typing import Final

from traces.columns import NULL, Gpu, GpuSamples, distinct
from traces.intervals import Spans, covered_ns
from traces.launches import grid_numbers
from traces.measure.sm_beside_comm import measure_comm_blocks, measure_stretch
from traces.measure.sm_launches import measure_launches
from traces.measure.sm_measured import measure_samples
from traces.missing import Missing
from traces.names.gpu_limits import capability_at_least
from traces.sections.rank import LaunchUse, Sm, Stretch
from traces.timeline import Activities, RankTimeline, Source

_USE: Final = LaunchUse.__struct_fields__


@dataclass(frozen=True, slots=True)
class SmUse:
    """The SMs of one rank in its windows; `work_ns` of compute kernels, None where launches do not tell."""

    sm: Sm
    work_ns: int | None


def measure_sm(
    rank: RankTimeline, windows: Spans, gpu: Gpu | None, samples: tuple[GpuSamples, ...] = ()
) -> SmUse:
    """Measure the SMs of one rank. `gpu` is the one it ran on, `samples` are those of every sampled GPU.

    `capability_at_least` is what kernel names speak of, told only where the trace does not tell the GPU's.
    """
    kernels = rank.activities.take(rank.activities.source == Source.KERNEL)
    kernels = kernels.take(covered_ns(kernels.start_ns, kernels.end_ns, windows) > 0)
    shapes, shape = rank.columns.kernels.shapes, rank.columns.kernels.shape[kernels.row]
    told = measure_launches(rank, kernels, windows, gpu)
    missing = told if isinstance(told, Missing) else None
    use = LaunchUse(**dict.fromkeys(_USE, told)) if isinstance(told, Missing) else told.use
    blocks, blocks_mean = measure_comm_blocks(kernels, shapes.blocks[shape], windows, rank.columns.info.kind)
    stretch = measure_stretch(kernels, grid_numbers(shapes)[shape], (shapes.grid != NULL).all(axis=1)[shape])
    sm = Sm(
        **{name: getattr(use, name) for name in _USE},
        sm_count=missing if gpu is None or gpu.sm_count is None else gpu.sm_count,
        capability_at_least=None if gpu and gpu.capability else _spoken_capability(rank, kernels),
        by_class={} if isinstance(told, Missing) else told.by_class,
        comm_blocks=blocks,
        comm_blocks_mean=blocks_mean,
        stretch_frac=stretch.frac if isinstance(stretch, Stretch) else stretch,
        stretch=stretch,
        measured=measure_samples(kernels, windows, gpu, samples, rank.columns.info.kind),
    )
    return SmUse(sm, None if isinstance(told, Missing) else told.work_ns)


def _spoken_capability(rank: RankTimeline, kernels: Activities) -> str | None:
    return capability_at_least(
        rank.columns.kernel_names[code] for code in distinct(kernels.name) if code >= 0
    )
