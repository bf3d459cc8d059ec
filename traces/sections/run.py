"""What several ranks of one run show together: `run`. Integers are ns over the steps the ranks
share.
"""

from collections.abc import Mapping

from traces.missing import OrMissing
from traces.sections.cause import Cause, ClockSource, HotRank, ProblemKind, Sure
from traces.sections.section import Bytes, Count, Frac, Ns, Section
from traces.texts import FileName, Key, Keys, Place, Said


class RankInRun(Section):
    """One rank of the run, by its place in `ranks[]`; times are those of a mean step.

    The last three are of each step of the run, or of each column of several steps
    (`run.steps_per_column`); null in a step that was not recorded.
    """

    index: Count
    rank: Count | None
    group: Count
    step_ns: OrMissing[Ns]
    waited_ns: Ns
    caused_ns: OrMissing[Ns]
    device_factor: OrMissing[float]
    expert_ns: OrMissing[Ns]
    given_bytes: OrMissing[Mapping[Key, Bytes]]
    step_lengths_ns: tuple[Ns | None, ...] = ()
    waited_by_step_ns: tuple[Ns | None, ...] = ()
    caused_by_step_ns: OrMissing[tuple[Ns | None, ...]] = ()


class LikeRanks(Section):
    """Ranks that do the same work in a step, by their places in `ranks[]`: only these are
    compared.
    """

    ranks: tuple[Count, ...]
    attention_kernels: Count
    router_kernels: Count
    has_experts: bool
    has_embedding: bool
    has_loss: bool
    step_ns: OrMissing[Ns]


class Late(Section):
    """Who makes the others wait, and why. `index` is a place in `ranks[]`, null where it is not one
    rank.

    `indices`: the places of all that it is; `host`: the node, where these are all its ranks.

    `repair`: what to check first. `repair_fixes`: ids of the fixes that do it, none where it is no
    matter of the configuration. `repair_first`: it comes before all other changes. `exposed_frac`:
    of the exposed communication of all ranks, what is waiting for it.
    """

    index: Count | None
    rank: Count | None
    cause: Cause
    wait_ns: Ns
    cost_ns: Ns
    by_step: tuple[Count | None, ...]
    group: Count | None
    repair: Said
    repair_fixes: Keys = ()
    repair_first: bool = False
    exposed_frac: Frac | None = None
    indices: tuple[Count, ...] = ()
    host: Said | None = None

    @property
    def places(self) -> tuple[int, ...]:
        """Of all late ranks, in an earlier result of the one."""
        return self.indices or (() if self.index is None else (self.index,))


class ArrivesLast(Section):
    """Who arrives last in the collectives that the ranks share, without any clock, and without a
    cause.

    `waiting_frac`: of all waiting, what is for these ranks. `by_order`: collectives were paired by
    nothing but their order.
    """

    indices: tuple[Count, ...]
    host: Said | None
    collectives: Count
    wait_ns: Ns
    waiting_frac: Frac
    by_order: bool
    confidence: Sure


class ClockFit(Section):
    """A clock, that of the `ranks` in these places of `ranks[]`: where its times lie on the one
    clock.

    A time t lies at `t - offset_ns - (t - base_ns) * drift_ppm / 1e6`.
    """

    ranks: tuple[Count, ...]
    source: ClockSource
    base_ns: int
    offset_ns: int
    drift_ppm: float

    def time_of(self, own_ns: int) -> int:
        return own_ns - self.offset_ns - round((own_ns - self.base_ns) * self.drift_ppm * 1e-6)


class Clocks(Section):
    """Whether all ranks stand on one clock, and how well; else `by_rank` is by the starts of
    sessions.
    """

    aligned: bool
    residual_ns: OrMissing[Ns]
    by_rank: tuple[ClockFit, ...] = ()


class RunWithout(Section):
    """The mean step of the run, replayed as recorded and without what makes it late."""

    step_ns: Ns
    without_ns: Ns
    saved_frac: Frac


class RunProblem(Section):
    """What is wrong with the set of recordings. `traces`: of which; `ranks`: those that nobody
    recorded.
    """

    kind: ProblemKind
    traces: tuple[FileName, ...]
    reason: Said
    left_out: bool
    ranks: tuple[Count, ...]


class PipelineStage(Section):
    """One stage of the pipeline, times of a mean rank and step. `bubble_ns` is the sum of the next
    three.
    """

    ranks: tuple[Count, ...]
    step_ns: OrMissing[Ns]
    own_work_ns: OrMissing[Ns]
    bubble_ns: OrMissing[Ns]
    warm_up_ns: OrMissing[Ns]
    steady_ns: OrMissing[Ns]
    cool_down_ns: OrMissing[Ns]


class VirtualStages(Section):
    """What the formula says of more virtual stages."""

    chunks: Count
    formula_frac: Frac


class Pipeline(Section):
    """What the stages of a pipeline wait for each other; `stages` in order."""

    stages: tuple[PipelineStage, ...]
    bubble_frac: OrMissing[Frac]
    formula_frac: OrMissing[Frac]
    stage_imbalance: OrMissing[float]
    microbatches: OrMissing[Count]
    chunks: OrMissing[Count]
    with_more_chunks: tuple[VirtualStages, ...]


class LayerOfExperts(Section):
    """One MoE layer in one group of ranks that exchange tokens; `hot_index` is a place in
    `ranks[]`.
    """

    expert_group: Count
    layer: Count
    imbalance: float
    hot_index: Count


class WorstOfExperts(Section):
    """The layer and step in which a rank has the most expert work beyond the mean of its group."""

    expert_group: Count
    layer: Count
    step: Count
    hot_index: Count
    imbalance: float
    above_ns: Ns


class ExpertGroups(Section):
    """Expert work layer by layer, in groups of ranks that exchange tokens, by their places in
    `ranks[]`.
    """

    groups: tuple[tuple[Count, ...], ...]
    layer_count: Count
    uneven_layers: tuple[LayerOfExperts, ...]
    worst: WorstOfExperts
    pattern: OrMissing[HotRank]


class CollectiveSpeed(Section):
    """How fast the collectives of a kind move whose sizes are recorded on all their ranks."""

    kind: Key
    collectives: Count
    size_bytes: Bytes
    transfer_ns: Ns
    bytes_per_s: OrMissing[float]


class PeerBytes(Section):
    """What one rank sends to another in a mean step; both are places in `ranks[]`."""

    kind: Key
    sender: Count
    receiver: Count
    size_bytes: Bytes


class Traffic(Section):
    """Bytes where their sizes are recorded; `largest_pairs`: who sends most to whom."""

    speeds: OrMissing[tuple[CollectiveSpeed, ...]]
    largest_pairs: tuple[PeerBytes, ...]


class Run(Section):
    """Several ranks of one run. `groups` are of ranks that do the same work."""

    ranks_seen: Count
    world_size: OrMissing[Count]
    world_size_from: Place | None
    groups: tuple[LikeRanks, ...]
    late: OrMissing[Late]
    clocks: Clocks
    ranks: tuple[RankInRun, ...]
    wait_ns: Ns
    wait_by_kind_ns: Mapping[Key, Ns]
    transfer_ns: Ns
    collectives: Count
    steps: Count
    imbalance: OrMissing[float]
    without: OrMissing[RunWithout]
    problems: tuple[RunProblem, ...]
    pipeline: OrMissing[Pipeline]
    experts: OrMissing[ExpertGroups]
    traffic: OrMissing[Traffic]
    complete_frac: OrMissing[Frac] = None
    late_exposed_by_kind_ns: Mapping[Key, Ns] = {}
    transfer_by_kind_ns: Mapping[Key, Ns] = {}
    steps_per_column: Count = 1
    arrives_last: OrMissing[ArrivesLast] = None
