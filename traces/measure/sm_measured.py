"""What hardware counters say of the SMs while kernels ran. Samples are of the whole GPU."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import BoolArray, FloatArray, Gpu, GpuSamples, IntArray, distinct
from traces.cures import cure
from traces.intervals import Spans, covered_ns, intersect, union
from traces.missing import Missing
from traces.timeline import KEYS, Activities, Bucket

COMMUNICATION: Final = "comm"
"""Communication as a class beside those of compute."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Means of the samples in which something ran, weighted by how long it ran in each.

    Issue and tensor are throughput; `sm_active_frac` is only residency. None where no sample holds the
    metric. `pure_frac` is the share of the `sample_count` samples in which no other class ran: where it is
    low, the figures are of several classes together.
    """

    sm_active_frac: float | None
    sm_issue_frac: float | None
    tensor_active_frac: float | None
    sample_count: int
    pure_frac: float


def measure_samples(
    kernels: Activities, windows: Spans, gpu: Gpu | None, samples: tuple[GpuSamples, ...], kind: str
) -> tuple[Measured | Missing, dict[str, Measured]]:
    """Samples while any kernel ran in the windows (there pure means: of one class only), and by class.

    `kind`: of the trace. A class whose kernels fall in no sample is left out: unsampled, not idle.
    """
    if not samples:
        return Missing("sm.measured", "GPU metrics were not recorded", cure("counters", kind)), {}
    mine = next((some for some in samples if gpu and some.gpu_id == gpu.gpu_id), None)
    if mine is None:
        return Missing("sm.measured", "no GPU metrics of this GPU", cure("counters", kind)), {}
    ran_ns = {name: _ran_ns(kernels, which, windows, mine) for name, which in _classes(kernels)}
    classes_count = sum(((ns > 0).astype(np.int64) for ns in ran_ns.values()), np.zeros(len(mine), np.int64))
    pure = classes_count == 1
    by_class = {name: _mean(mine, ns, pure) for name, ns in ran_ns.items() if ns.any()}
    any_ns = _ran_ns(kernels, np.ones(len(kernels), dtype=np.bool_), windows, mine)
    if not any_ns.any():
        return Missing("sm.measured", "no sample while a kernel ran in the window", "sample more often"), {}
    return _mean(mine, any_ns, pure), by_class


def _classes(kernels: Activities) -> list[tuple[str, BoolArray]]:
    compute = kernels.bucket == Bucket.COMPUTE
    classes = [
        (KEYS[Bucket.COMPUTE][key], compute & (kernels.key == key)) for key in distinct(kernels.key[compute])
    ]
    return [*classes, (COMMUNICATION, kernels.bucket == Bucket.COMM)]


def _ran_ns(kernels: Activities, which: BoolArray, windows: Spans, samples: GpuSamples) -> IntArray:
    """Of each sample, how long any of these kernels ran in it and in the windows."""
    ran = intersect(union(kernels.start_ns[which], kernels.end_ns[which]), windows)
    return covered_ns(samples.start_ns, samples.end_ns, ran)


def _mean(samples: GpuSamples, ran_ns: IntArray, pure: BoolArray) -> Measured:
    touched = ran_ns > 0
    return Measured(
        _weighted(samples.sm_active_frac, ran_ns),
        _weighted(samples.sm_issue_frac, ran_ns),
        _weighted(samples.tensor_active_frac, ran_ns),
        int(touched.sum()),
        float(pure[touched].mean()),
    )


def _weighted(values: FloatArray, ran_ns: IntArray) -> float | None:
    there = ~np.isnan(values) & (ran_ns > 0)
    return float(np.average(values[there], weights=ran_ns[there])) if there.any() else None
