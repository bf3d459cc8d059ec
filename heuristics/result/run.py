"""What several ranks of one run show together: `run`. Integers are ns over the steps the ranks share."""

from __future__ import annotations

from collections.abc import Mapping

from heuristics.result.known import Count, Frac, Ns, OrMissing, Section
from traces.ranks.cause import Cause, ProblemKind


class RankInRun(Section, frozen=True):
    """One rank of the run, by its place in `ranks[]`; times are those of a mean step."""

    index: Count
    rank: Count | None
    group: Count
    step_ns: OrMissing[Ns]
    waited_ns: Ns
    caused_ns: OrMissing[Ns]
    device_factor: OrMissing[float]


class LikeRanks(Section, frozen=True):
    """Ranks that do the same work in a step, by their places in `ranks[]`: only these are compared."""

    ranks: tuple[Count, ...]
    attention_kernels: Count
    router_kernels: Count
    has_experts: bool
    has_embedding: bool
    has_loss: bool
    step_ns: OrMissing[Ns]


class Late(Section, frozen=True):
    """Who makes the others wait, and why. `index` is a place in `ranks[]`, null where it is not one rank."""

    index: Count | None
    rank: Count | None
    cause: Cause
    wait_ns: Ns
    cost_ns: Ns
    by_step: tuple[Count | None, ...]
    group: Count | None
    repair: str


class Clocks(Section, frozen=True):
    """Whether all ranks stand on one clock, and how well."""

    aligned: bool
    residual_ns: OrMissing[Ns]


class RunWithout(Section, frozen=True):
    """The mean step of the run, replayed as recorded and without what makes it late."""

    step_ns: Ns
    without_ns: Ns
    saved_frac: Frac


class RunProblem(Section, frozen=True):
    """What is wrong with the set of recordings. `traces`: of which; `ranks`: those that nobody recorded."""

    kind: ProblemKind
    traces: tuple[str, ...]
    reason: str
    left_out: bool
    ranks: tuple[Count, ...]


class Run(Section, frozen=True):
    """Several ranks of one run. `groups` are of ranks that do the same work."""

    ranks_seen: Count
    world_size: OrMissing[Count]
    groups: tuple[LikeRanks, ...]
    late: OrMissing[Late]
    clocks: Clocks
    ranks: tuple[RankInRun, ...]
    wait_ns: Ns
    wait_by_kind_ns: Mapping[str, Ns]
    transfer_ns: Ns
    collectives: Count
    steps: Count
    imbalance: OrMissing[float]
    without: OrMissing[RunWithout]
    problems: tuple[RunProblem, ...]
