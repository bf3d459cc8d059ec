"""How a rank used the SMs and tensor cores of its GPU: `ranks[].sm`, `ranks[].tensor_cores`."""

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from heuristics.result.known import Count, Frac, Ns, OrMissing, Section


class LaunchUse(Section, frozen=True):
    """What launches allow; in ns are sums of kernel work, which may overlap."""

    occupancy_frac: OrMissing[Frac]
    launch_occupancy_frac: OrMissing[Frac]
    fill_frac: OrMissing[Frac]
    tail_ns: OrMissing[Ns]
    under_filled_ns: OrMissing[Ns]
    persistent_ns: OrMissing[Ns]
    limiter_ns: OrMissing[Mapping[str, Ns]]


class Stretch(Section, frozen=True):
    """How much longer compute takes beside communication, and what that rests on."""

    frac: float
    group_count: Count
    beside_count: Count
    beside_ns: Ns


class Measured(Section, frozen=True):
    """What hardware counters say, over samples of the whole GPU in which something ran."""

    sm_active_frac: OrMissing[Frac]
    sm_issue_frac: OrMissing[Frac]
    tensor_active_frac: OrMissing[Frac]
    pure_frac: Frac
    samples: Count


class Sm(LaunchUse, frozen=True):
    """The SMs of one rank, over all compute kernels and by class."""

    sm_count: OrMissing[Count]
    capability_at_least: OrMissing[str]
    by_class: Mapping[str, LaunchUse]
    comm_blocks: OrMissing[Count]
    comm_blocks_mean: OrMissing[float]
    stretch_frac: OrMissing[float]
    stretch: OrMissing[Stretch]
    measured: OrMissing[Measured]


class TensorCores(Section, frozen=True):
    """GEMMs, and those of them that do without tensor cores."""

    gemm_ns: Ns
    simt_ns: Ns
    simt_count: Count
    tf32: OrMissing[bool]
    fp32_to_tf32_frac: OrMissing[Frac]
    matrix_ns: Ns | UnsetType = UNSET
    wide_ns: Ns | UnsetType = UNSET
    wide_count: Count | UnsetType = UNSET
    half: OrMissing[bool] | UnsetType = UNSET
    peaks_known: bool | UnsetType = UNSET
