"""What a wall costs, and what its judge answers: a wall as the result has it, with its evidence.

A price is the replayed cost of an overhead, added up over the ranks of a run and their windows less start-up.
A row of the ledger belongs to the wall whose overhead, taken away, would shrink it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from heuristics.figures.figures import Figures, frac_of
from heuristics.figures.startup import find_startup, initialising_ns, judged_ns, without_startup
from heuristics.result.judged import Evidence, Outcome, Wall
from traces.cures import cure
from traces.limits import Limit
from traces.measurements import RankMeasurements
from traces.missing import Missing, OrMissing, known
from traces.names.kernels import COMM_KINDS, GRAPH_REPLAY
from traces.replay.proofs import Cost
from traces.sections.tables import WallId
from traces.spelling import percent
from traces.steps.sample import sample_of

WALL: Final = Limit(
    0.10,
    "fraction of the windows",
    "ours, NVIDIA publishes none: less than a tenth of the step is no wall",
)


LITTLE: Final = Limit(
    0.01, "fraction of the windows", "ours: nobody tries first what saves less than one percent by the replay"
)
STEADY: Final = Limit(
    0.05,
    "fraction of the steps after the first",
    "ours: half a wall; a cost that the steps after the first hardly pay may be warm-up",
)
ENOUGH_STEPS: Final = Limit(3, "steps", "ours: of two steps none can be called the usual one")


@dataclass(frozen=True, slots=True)
class Price:
    """One overhead's ceiling over the ranks that could be replayed; `rank` is the one it costs most.

    `steady_frac`: the same in the steps after the first, None with fewer than three. `step_frac`: of each
    replayed step of each rank, as part of that step, times what it stands for. `at_least`: why it may be
    more; `at_most_frac`: the most that it can then be, None where nothing bounds it or the price itself is
    the most. `rank` and `steady_frac` are None too where figures were given in place of a trace.
    """

    ns: int
    frac: float
    steady_frac: float | None
    by_kind_ns: Mapping[str, int]
    step_frac: tuple[float, ...]
    rank: int | None
    at_least: Missing | None
    at_most_frac: float | None = None


@dataclass(frozen=True, slots=True)
class Unpriced:
    """Why an overhead has no price, and the most that it can be; None where nothing bounds it."""

    why: Missing
    at_most_frac: float | None = None


def price(measurements: Sequence[RankMeasurements], wall: WallId) -> Price | Unpriced:
    """The price of a wall's overhead, or why no rank tells it."""
    startup = find_startup(measurements)
    if startup is not None and startup.is_nearly_all:
        reason = f"the profiler and start-up take {percent(startup.frac)}: too little else was recorded"
        return Unpriced(Missing("walls", reason, cure("startup", measurements[0].kind)))
    opaque = _opaque(measurements) if wall != "host_overhead" else None
    told = [(place, rank, cost) for place, rank in enumerate(measurements) if (cost := cost_of(rank, wall))]
    if not told:
        most = None if opaque else at_most_frac(measurements, wall)
        return Unpriced(opaque or _why(measurements[0], wall), most)
    window_ns = sum(judged_ns(rank) for _, rank, _ in told)
    by_kind: dict[str, int] = {}
    for _, _, cost in told:
        for kind, ns in cost.by_kind_ns.items():
            by_kind[kind] = by_kind.get(kind, 0) + ns
    total_ns = sum(cost.ns for _, _, cost in told)
    worst = max(told, key=lambda one: one[2].ns / judged_ns(one[1]))
    steps = [frac for _, rank, cost in told for frac in _step_fracs(rank, cost)]
    return Price(
        total_ns,
        total_ns / window_ns,
        _steady_frac([(rank, cost) for _, rank, cost in told]),
        by_kind,
        tuple(steps),
        worst[0],
        opaque or _doubt(measurements, wall),
        None if opaque else at_most_frac(measurements, wall),
    )


def _opaque(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why only the host can be judged: graphs recorded whole take enough of the windows to hide a wall."""
    replays_ns = sum(rank.budget.compute_by_class_ns.get(GRAPH_REPLAY, 0) for rank in measurements)
    if replays_ns < WALL.value * sum(rank.budget.window_ns for rank in measurements):
        return None
    reason = "graph replays were recorded whole: what runs inside is not seen"
    return Missing("walls", reason, cure("graphs", measurements[0].kind))


def at_most_frac(
    measurements: Sequence[RankMeasurements], wall: WallId, proofs_hold: bool = True
) -> float | None:
    """The most that a wall can cost where no proven replay tells its cost, as part of what is judged.

    Each rank adds its proven cost, or else the bound of its partition; None where a rank has neither, or all
    are proven. `proofs_hold` False: no replay tells it, whatever its proofs say.
    """
    proven = [_proven(rank, wall) if proofs_hold else None for rank in measurements]
    if None not in proven:
        return None
    most = [_most_ns(rank, wall) if ns is None else ns for rank, ns in zip(measurements, proven, strict=True)]
    told = [ns for ns in most if ns is not None]
    if len(told) < len(most):
        return None
    return sum(told) / sum(map(judged_ns, measurements))


def _proven(rank: RankMeasurements, wall: WallId) -> int | None:
    cost = cost_of(rank, wall)
    doubted = not isinstance(rank.costs, Missing) and rank.costs.at_least is not None
    return None if cost is None or doubted else cost.ns


def _most_ns(rank: RankMeasurements, wall: WallId) -> int | None:
    """The bound of the partition; a replay that may say too little is no lower than it says."""
    if wall == "communication" and rank.unseen is not None:
        return None
    bound, cost = rank.bounds.of(wall), cost_of(rank, wall)
    if bound is not None and wall == "host_overhead":
        bound = max(0, bound - initialising_ns(rank))
    return bound if bound is None or cost is None else max(bound, cost.ns)


def _steady_frac(told: Sequence[tuple[RankMeasurements, Cost]]) -> float | None:
    """Cost in the steps after each rank's first, as part of them."""
    cost_ns = length_ns = 0
    for rank, cost in told:
        if len(cost.step_ns) < ENOUGH_STEPS.value:
            return None
        sample = sample_of(rank.steps)
        later = slice(int(sample.steps[0] is rank.steps.used[0]), None)
        cost_ns += sum(cost.step_ns[later])
        length_ns += sum(sample.stand_for_ns[later])
    return cost_ns / length_ns


def _doubt(measurements: Sequence[RankMeasurements], wall: WallId) -> Missing | None:
    """Why the price may be more than it seems: a rank has none, or the least elastic of those in doubt."""
    for rank in measurements:
        if cost_of(rank, wall) is None:
            return _why(rank, wall)
    costs = [rank.costs for rank in measurements if not isinstance(rank.costs, Missing)]
    doubted = [one for one in costs if one.at_least is not None]
    return min(doubted, key=lambda one: one.proofs.elastic_frac).at_least if doubted else None


def cost_of(rank: RankMeasurements, wall: WallId) -> Cost | None:
    """What a wall costs one rank, start-up left out; None where its replay cannot tell."""
    if isinstance(rank.costs, Missing) or rank.costs.refused:
        return None
    if wall == "communication" and rank.unseen is not None:
        return None
    cost = rank.costs.of(wall)
    return without_startup(rank, cost) if cost and wall == "host_overhead" else cost


def _why(rank: RankMeasurements, wall: WallId) -> Missing:
    if isinstance(rank.costs, Missing):
        return rank.costs
    if rank.costs.refused:
        return rank.costs.refused
    if wall == "communication":
        reason = (
            "graph replays were recorded whole, or kernels without names: communication cannot be separated"
        )
        return Missing("replay", reason, cure("names", rank.kind))
    if known(rank.sm.sm_count) is None:
        return Missing(
            "replay", "the trace does not record the number of SMs of the GPU", cure("sm_count", rank.kind)
        )
    return Missing("replay", "the trace has no launch shapes of kernels", cure("shapes", rank.kind))


def _step_fracs(rank: RankMeasurements, cost: Cost) -> list[float]:
    if not cost.step_ns:
        return []
    sample = sample_of(rank.steps)
    each = zip(cost.step_ns, sample.stand_for_ns, sample.weights, strict=True)
    return [ns / length * weight for ns, length, weight in each]


_OF_WINDOWS: Final = "fraction of the windows"


def shown(
    measure: str, value: float, unit: str, because: str, limit: float | None = None, rank: int | None = None
) -> Evidence:
    """A value that no single place shows; `limit`: what it is held against, None for context.

    `rank`: the place in the document of the one that shows it best.
    """
    return Evidence(measure, value, unit, limit, because, None, None, None, rank)


def only_in_first_step(wall: Wall) -> bool:
    """Whether the used steps after the first hardly pay its cost, so that it may be warm-up."""
    steady = [one.value for one in wall.evidence if one.measure == "steady_cost_frac"]
    return bool(steady) and steady[0] < STEADY.value


def judged(
    wall: WallId, told: Price | Unpriced, ranks: Sequence[Figures], evidence: Sequence[Evidence]
) -> Wall:
    """A finding from the limit up, else clear; the cost itself is the first evidence.

    A cost that is unknown, or may be more than it seems, is clear only where even the most it can be is below
    the limit.
    """
    most = told.at_most_frac
    if isinstance(told, Unpriced):
        if most is None or most >= WALL.value:
            return unmeasurable(wall, told.why, evidence, most)
        ns = round(most * sum(rank.judged_ns for rank in ranks))
        because = f"the most it can be by the partition of the windows; not replayed: {told.why.reason}"
        bound = shown("cost_frac", most, _OF_WINDOWS, because, WALL.value)
        return Wall(wall, "clear", ns, most, {}, most, (bound, *evidence), (), "")
    costs = [shown("cost_frac", told.frac, _OF_WINDOWS, WALL.because, WALL.value, told.rank)]
    if told.steady_frac is not None:
        costs.append(shown("steady_cost_frac", told.steady_frac, STEADY.unit, STEADY.because, STEADY.value))
    stands = told.frac >= WALL.value
    if not stands and told.at_least is not None and (most is None or most >= WALL.value):
        return unmeasurable(wall, told.at_least, (*costs, *evidence), most)
    outcome: Outcome = "finding" if stands else "clear"
    return Wall(wall, outcome, told.ns, told.frac, told.by_kind_ns, most, (*costs, *evidence), (), "")


def shown_frac(
    measure: str, ranks: Sequence[Figures], read: Callable[[Figures], int | None], because: str
) -> list[Evidence]:
    """A length as part of the windows, over the ranks that tell it; nothing where none does."""
    frac = frac_of(ranks, read)
    return [] if frac is None else [shown(measure, frac, _OF_WINDOWS, because)]


def unmeasurable(
    wall: WallId, why: Missing, evidence: Sequence[Evidence] = (), at_most_frac: float | None = None
) -> Wall:
    """What could not be looked at is never clear."""
    most: OrMissing[float] = why if at_most_frac is None else at_most_frac
    return Wall(wall, "unmeasurable", why, why, why, most, tuple(evidence), (why.reason,), why.cure)


_BY_ROW: Final[Mapping[str, WallId | None]] = {
    "launch_starved.allocator": "memory",
    "launch_starved.profiler": None,
    "launch_latency.arrival": "host_overhead",
    **{f"blocking.{kind}": "communication" for kind in COMM_KINDS},
}
"""Reasons why no compute ran that differ from their group's wall."""
_BY_GROUP: Final[Mapping[str, WallId]] = {
    "compute": "compute",
    "exposed_comm": "communication",
    "launch_starved": "host_overhead",
}
"""The first word of a row; a row of any other is nobody's."""
_BY_MODULE: Final[Mapping[str, WallId]] = {
    "dispatch": "communication",
    "combine": "communication",
    "expert_gemm": "compute",
    "expert_activation": "compute",
    "shared_expert": "compute",
    "router": "compute",
    "permute": "compute",
    "unpermute": "compute",
}
"""Modules of MoE layers; what is recomputed is the memory wall's, whatever it is."""


def wall_of(row: str) -> WallId | None:
    """The wall of a row such as `compute.gemm`, `idle.launch_starved.python`, `moe.dispatch.backward`."""
    row = row.removeprefix("idle.")
    head, _, rest = row.partition(".")
    if head == "moe":
        module, _, direction = rest.partition(".")
        return "memory" if direction == "recompute" else _BY_MODULE.get(module)
    return _BY_ROW.get(row, _BY_GROUP.get(head))
