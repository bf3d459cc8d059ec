"""How a rank used the SMs and tensor cores of its GPU: `ranks[].sm`, `ranks[].tensor_cores`."""

from __future__ import annotations

from collections.abc import Mapping

from heuristics.result.told import Count, Frac, Ns, Section, Told


class LaunchUse(Section, frozen=True):
    """What launches allow; in ns are sums of kernel work, which may overlap."""

    occupancy_frac: Told[Frac]
    launch_occupancy_frac: Told[Frac]
    fill_frac: Told[Frac]
    tail_ns: Told[Ns]
    under_filled_ns: Told[Ns]
    persistent_ns: Told[Ns]
    limiter_ns: Told[Mapping[str, Ns]]


class Stretch(Section, frozen=True):
    """How much longer compute takes beside communication, and what that rests on."""

    frac: float
    group_count: Count
    beside_count: Count
    beside_ns: Ns


class Measured(Section, frozen=True):
    """What hardware counters say, over samples of the whole GPU in which something ran."""

    sm_active_frac: Told[Frac]
    sm_issue_frac: Told[Frac]
    tensor_active_frac: Told[Frac]
    pure_frac: Frac
    samples: Count


class Sm(LaunchUse, frozen=True):
    """The SMs of one rank, over all compute kernels and by class."""

    sm_count: Told[Count]
    capability_at_least: Told[str]
    by_class: Mapping[str, LaunchUse]
    comm_blocks: Told[Count]
    comm_blocks_mean: Told[float]
    stretch_frac: Told[float]
    stretch: Told[Stretch]
    measured: Told[Measured]


class TensorCores(Section, frozen=True):
    """GEMMs, and those of them that do without tensor cores."""

    gemm_ns: Ns
    simt_ns: Ns
    simt_count: Count
    tf32: Told[bool]
    fp32_to_tf32_frac: Told[Frac]
