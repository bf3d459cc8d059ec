"""How fast a rank computes, copies and communicates: `rates` of a rank. Work is a sum of times."""

from typing import Annotated, Literal

from msgspec import Meta

from traces.missing import OrMissing
from traces.names.operators import Dtype
from traces.sections.section import Bytes, Count, Frac, Ns, Section
from traces.texts import Key, Recorded

Rate = Annotated[float, Meta(ge=0)]
"""A rate, in the unit that the field names."""
ShapesFrom = Literal["recorded"]
"""Where shapes are from: the profiler wrote them beside the operator."""
RoofLimit = Literal["memory", "peak"]
"""Which roof is lower for a kernel: the memory's rate by the least bytes it moves, or the peak."""
CollectiveName = Literal["all_to_all", "all_reduce", "all_gather", "reduce_scatter", "broadcast"]


class Speed(Section):
    """Operators whose shapes are known, and the compute kernels that they launched.

    `bytes_at_least`: each input and output once, so `flop_per_byte` is at most. `peak_frac`: time
    that the FLOP take at the dense peak of each format, of `work_ns`; `roof_frac`: the longer of
    that and of the time of the bytes.
    """

    operator_count: Count
    kernel_count: Count
    work_ns: Ns
    flop: Count
    tflops_per_s: Rate
    peak_frac: OrMissing[float]
    bytes_at_least: Bytes
    flop_per_byte: Rate
    roof_frac: OrMissing[float]
    roof_limit: OrMissing[RoofLimit]


class ClassSpeed(Speed):
    """Of one class of compute kernels; `all_kernel_count`, `all_work_ns`: those without known
    shapes too.

    An operator is of the class of its longest matrix kernel.
    """

    key: Key
    shapes_from: ShapesFrom
    all_kernel_count: Count
    all_work_ns: Ns


class OperatorSpeed(Speed):
    """Of one operator in one format, whose kernels are of one class."""

    operator: Recorded
    dtype: Dtype
    key: Key


class CopySpeed(Section):
    """Copies and memsets of one kind whose sizes are recorded."""

    kind: Key
    count: Count
    size_bytes: Bytes
    work_ns: Ns
    gb_per_s: Rate


class CollectiveRate(Section):
    """Collectives of one kind and group size whose sizes are recorded, as nccl-tests count them.

    From one rank their time holds the wait for late ranks too: rates are at least these. `fastest`:
    of the one with the highest rate. `link_frac`: the fastest against the NVLinks of the GPU, for
    groups of up to eight ranks.
    """

    collective: CollectiveName
    rank_count: Count
    count: Count
    size_bytes: Bytes
    work_ns: Ns
    algorithm_gb_per_s_at_least: Rate
    bus_gb_per_s_at_least: Rate
    fastest_bus_gb_per_s: Rate
    link_frac: OrMissing[float]


class MatrixRates(Section):
    """Operators that multiply, of known shapes: those whose first kernel starts in the windows,
    whole.

    `counted_frac`: matrix kernels that such an operator launched, by work; `without_shape_count`:
    the other ones. `hfu_at_least_frac`: the time that the FLOP take at peak, of the windows:
    recomputed work is in it, what has no shape is not.
    """

    classes: tuple[ClassSpeed, ...]
    operators: tuple[OperatorSpeed, ...]
    without_shape_count: Count
    counted_frac: Frac
    hfu_at_least_frac: OrMissing[float]


class Rates(Section):
    """Rates of one rank in its windows, and the peaks of its GPU that they are held against."""

    matrix: OrMissing[MatrixRates]
    copies: OrMissing[tuple[CopySpeed, ...]]
    collective_rates: OrMissing[tuple[CollectiveRate, ...]]
    memory_gb_per_s: OrMissing[Rate]
    link_gb_per_s: OrMissing[Rate]
