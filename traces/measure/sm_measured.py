"""What hardware counters say of the SMs while kernels ran. Samples are of the whole GPU."""

from collections.abc import Iterator

import numpy as np

from traces.columns import BoolArray, FloatArray, Gpu, GpuSamples, IntArray, distinct
from traces.cures import cure
from traces.intervals import Spans, covered_ns, intersect, union
from traces.measure.sm_launches import NONE_SEEN
from traces.missing import Missing, gap
from traces.sections.rank import Measured
from traces.timeline import Activities, Bucket


def measure_samples(
    kernels: Activities, windows: Spans, gpu: Gpu | None, samples: tuple[GpuSamples, ...], kind: str
) -> Measured | Missing:
    """Means of the samples while any kernel ran in the windows, weighted by how long it ran in each.

    Issue and tensor are throughput; `sm_active_frac` is only residency. `pure_frac` is the share of the
    samples in which kernels of one class ran (communication is one): where it is low, the figures are of
    several classes together. `kind`: of the trace.
    """
    if not samples:
        return gap("GPU metrics were not recorded", cure("counters", kind))
    mine = next((some for some in samples if gpu and some.gpu_id == gpu.gpu_id), None)
    if mine is None:
        return gap("no GPU metrics of this GPU", cure("counters", kind))
    ran_ns = _ran_ns(kernels, np.ones(len(kernels), dtype=np.bool_), windows, mine)
    touched = ran_ns > 0
    if not touched.any():
        return gap("no sample while a kernel ran in the window", "sample more often")
    classes = [_ran_ns(kernels, which, windows, mine) > 0 for which in _classes(kernels)]
    return Measured(
        _weighted(mine.sm_active_frac, ran_ns),
        _weighted(mine.sm_issue_frac, ran_ns),
        _weighted(mine.tensor_active_frac, ran_ns),
        float((np.sum(classes, axis=0) == 1)[touched].mean()),
        int(touched.sum()),
    )


def _classes(kernels: Activities) -> Iterator[BoolArray]:
    """Masks of the kernels of each class of compute, and of communication."""
    compute = kernels.bucket == Bucket.COMPUTE
    for key in distinct(kernels.key[compute]):
        yield compute & (kernels.key == key)
    yield kernels.bucket == Bucket.COMM


def _ran_ns(kernels: Activities, which: BoolArray, windows: Spans, samples: GpuSamples) -> IntArray:
    """Of each sample, how long any of these kernels ran in it and in the windows."""
    ran = intersect(union(kernels.start_ns[which], kernels.end_ns[which]), windows)
    return covered_ns(samples.start_ns, samples.end_ns, ran)


def _weighted(values: FloatArray, ran_ns: IntArray) -> float | Missing:
    there = ~np.isnan(values) & (ran_ns > 0)
    return float(np.average(values[there], weights=ran_ns[there])) if there.any() else NONE_SEEN
