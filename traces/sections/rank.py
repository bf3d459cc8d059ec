"""What was measured of one process on one GPU: `ranks[]`. Integers are ns over the used steps."""

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from traces.missing import OrMissing, known
from traces.names.frameworks import Framework
from traces.sections.addresses import Addresses
from traces.sections.rates import Rates
from traces.sections.section import Bytes, Count, Frac, Ns, Section
from traces.sections.steps import Steps
from traces.sections.tables import (
    KernelTable,
    LedgerRow,
    MemoryCurve,
    Sequence,
    Timeline,
    UnknownKernel,
)
from traces.sections.window import Absent, Budget, BudgetShares, DecidedBy
from traces.sections.work import DataLoading, Work
from traces.texts import FileName, GpuName, Key, Keys, Release, Said


class Totals(Section):
    """The whole recording, first kernel start to last kernel end, kernels only."""

    kernel_count: Count
    kernel_work_ns: Ns
    span_ns: Ns
    busy_union_ns: Ns
    comm_union_ns: OrMissing[Ns]
    exposed_comm_ns: OrMissing[Ns]


class Memory(Section):
    """What saving memory costs, and how much there is."""

    recompute_ns: OrMissing[Ns]
    recompute_modules: OrMissing[Mapping[Key, Ns]]
    offload_exposed_ns: OrMissing[Ns]
    offload_copies: OrMissing[Count]
    offload_union_ns: OrMissing[Ns]
    offload_bytes: OrMissing[Bytes]
    host_resident_exposed_ns: OrMissing[Ns]
    host_resident_copies: OrMissing[Count]
    host_resident_union_ns: OrMissing[Ns]
    host_resident_bytes: OrMissing[Bytes]
    allocator_ns: OrMissing[Ns]
    allocator_calls: OrMissing[Count]
    allocator_scope: Said
    allocator_retry_frac: OrMissing[Frac]
    peak_bytes: OrMissing[Bytes]
    capacity_bytes: OrMissing[Bytes]
    use: OrMissing[MemoryCurve] | UnsetType = UNSET
    foreign_frees_frac: Frac | UnsetType = UNSET

    @property
    def peak_frac(self) -> float | None:
        peak, capacity = known(self.peak_bytes), known(self.capacity_bytes)
        return peak / capacity if peak and capacity else None


class Passes(Section):
    """How often a module ran."""

    forward_count: Count
    backward_count: Count
    recomputed_count: OrMissing[Count]
    evidence: Key


Dispatcher = Literal["alltoall", "deepep", "hybridep", "ncclep", "allgather", "none", "unknown"]


class Detected(Section):
    """What kind of run the trace shows."""

    dispatcher: Dispatcher
    graph_share_frac: OrMissing[Frac]
    short_kernel_frac: OrMissing[Frac]
    kernels_per_launch: OrMissing[float]
    ep_overlap: OrMissing[bool]
    framework: Framework
    training_step: OrMissing[bool]
    training_evidence: Said
    precision: OrMissing[Key]
    precision_shares_frac: Mapping[Key, Frac]
    recompute: OrMissing[Mapping[Key, Passes]]
    graph_scopes_frac: Mapping[Key, Frac] | UnsetType = UNSET
    in_use: Keys | UnsetType = UNSET


class LaunchUse(Section):
    """What launches allow; in ns are sums of kernel work, which may overlap."""

    occupancy_frac: OrMissing[Frac]
    launch_occupancy_frac: OrMissing[Frac]
    fill_frac: OrMissing[Frac]
    tail_ns: OrMissing[Ns]
    under_filled_ns: OrMissing[Ns]
    persistent_ns: OrMissing[Ns]
    limiter_ns: OrMissing[Mapping[Key, Ns]]


class Stretch(Section):
    """How much longer compute takes beside communication, and what that rests on."""

    frac: float
    group_count: Count
    beside_count: Count
    beside_ns: Ns


class Measured(Section):
    """What hardware counters say, over samples of the whole GPU in which something ran."""

    sm_active_frac: OrMissing[Frac]
    sm_issue_frac: OrMissing[Frac]
    tensor_active_frac: OrMissing[Frac]
    pure_frac: Frac
    samples: Count


class Sm(LaunchUse):
    """The SMs of one rank, over all compute kernels and by class."""

    sm_count: OrMissing[Count]
    capability_at_least: OrMissing[Release]
    by_class: Mapping[Key, LaunchUse]
    comm_blocks: OrMissing[Count]
    comm_blocks_mean: OrMissing[float]
    stretch_frac: OrMissing[float]
    stretch: OrMissing[Stretch]
    measured: OrMissing[Measured]


class TensorCores(Section):
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
    tf32_ns: Ns | UnsetType = UNSET

    @property
    def has_half(self) -> bool | None:
        return None if isinstance(self.half, UnsetType) else known(self.half)

    @property
    def lengths_ns(self) -> tuple[int, int]:
        """All matrix work, and what of it is in FP32 or TF32; nothing where an earlier result has
        neither.
        """
        return self.matrix_ns or 0, self.wide_ns or 0


Pass = Literal["forward", "recompute", "backward"]
PASSES: Final[tuple[Pass, ...]] = get_args(Pass)


class Span(Section):
    """One kernel of expert traffic, cut at the window."""

    kind: Key
    start_ns: int
    end_ns: int
    step: OrMissing[Count]
    layer: OrMissing[Count]
    phase: OrMissing[Key]


class A2a(Section):
    """Expert all-to-all of one rank."""

    instances: Count
    payload_ns: Ns
    control_ns: Ns
    waiting_like_ns: OrMissing[Ns]
    exposed_ns: Ns
    hidden_ns: Ns
    blocking_ns: OrMissing[Ns]
    unresolved_ns: Ns
    spans: tuple[Span, ...]


class MoeRow(Section):
    """One module in one pass, over all layers."""

    module: Key
    pass_: Pass = field(name="pass")
    count: Count
    work_ns: Ns
    wall_ns: Ns
    exposed_ns: Ns
    blocking_ns: OrMissing[Ns]
    host_wait_ns: OrMissing[Ns]
    per_step_ns: tuple[Ns, ...]


class LayerRow(Section):
    """One module in one pass of one layer, over all used steps."""

    layer: Count
    module: Key
    pass_: Pass = field(name="pass")
    count: Count
    work_ns: Ns
    wall_ns: Ns


class Moe(Section):
    """What each module of the MoE layers takes."""

    tax_ns: OrMissing[Ns]
    tax_frac: OrMissing[Frac]
    layers: OrMissing[Count]
    rows: tuple[MoeRow, ...]
    by_layer: tuple[LayerRow, ...]


class Saving(Section):
    """What a change of the run would save in the windows, by its replay.

    `saves_least_ns` is None where no lower end can be defended, negative where the change may cost
    time.
    """

    kind: Key
    saves_least_ns: int | None
    saves_most_ns: Ns


class Replay(Section):
    """Whether the replay of this rank means anything, and what it says of single changes."""

    residual_free_error_frac: OrMissing[float]
    elastic_frac: OrMissing[float]
    unexplained_frac: OrMissing[Frac]
    changes: tuple[Saving, ...] | UnsetType = UNSET


class Rank(Section):
    """One process on one GPU: `device` by its own count, `physical_gpu` of its machine, if told."""

    trace: FileName
    process: OrMissing[Count]
    device: int
    gpu: OrMissing[GpuName]
    rank: OrMissing[Count]
    totals: OrMissing[Totals]
    windows_ns: tuple[tuple[int, int], ...]
    steps: Steps
    budget_ns: Budget
    budget_frac: BudgetShares
    exposed_comm_by_kind_ns: OrMissing[Mapping[Key, Ns]]
    compute_by_class_ns: Mapping[Key, Ns]
    exposed_copy_by_kind_ns: Mapping[Key, Ns]
    hidden_comm_ns: OrMissing[Ns]
    absent_ns: OrMissing[Absent]
    masked_ns: OrMissing[Ns]
    absent_decided_by_frac: OrMissing[DecidedBy]
    clock_offset_ns: OrMissing[int]
    a2a: OrMissing[A2a]
    sm: Sm
    tensor_cores: TensorCores
    memory: Memory
    detected: Detected
    kernels_without_launch: Count
    unknown_kernels: tuple[UnknownKernel, ...]
    moe: OrMissing[Moe]
    ledger: OrMissing[tuple[LedgerRow, ...]]
    kernel_table: KernelTable
    timeline: Timeline
    replay: OrMissing[Replay]
    other_steps: tuple[Timeline, ...] = ()
    data_loading: DataLoading | UnsetType = UNSET
    work: Work | UnsetType = UNSET
    clock_corrected_ns: int = 0
    clock_within_ns: Ns | None = None
    sequence: OrMissing[Sequence] | UnsetType = UNSET
    addresses: OrMissing[Addresses] | UnsetType = UNSET
    rates: Rates | UnsetType = UNSET
    physical_gpu: int | UnsetType = UNSET

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """`timeline` and then `other_steps`, each with the keys and names that its columns point
        to.
        """
        first = self.timeline
        others = (replace(step, keys=first.keys, names=first.names) for step in self.other_steps)
        return (first, *others)

    @property
    def lengths_ns(self) -> tuple[int, ...]:
        """Lengths of the used steps in order, that of the one window where there are none."""
        return tuple(step.length_ns for step in self.steps.used) or (self.budget_ns.window,)
