"""What replays say that each wall costs each rank, start-up left out, and the most it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from heuristics.figures.figures import unnamed_ns
from heuristics.figures.startup import Start, Startup, start_of, startup_of
from heuristics.run.run import WALL_IDS
from traces.frozen import frozen
from traces.measurements import RankMeasurements
from traces.missing import Missing
from traces.replay.changes.costs import Costs
from traces.replay.proofs import Cost
from traces.sections.tables import WallId


@frozen
class RankCosts:
    """What replays tell of one rank: made once, and asked by all that follows.

    `replays`: None where they are refused, or there are none. `by_wall`: what each wall costs,
    start-up left out; without those that the rank cannot tell.
    """

    place: int
    rank: RankMeasurements
    start: Start
    replays: Costs | None
    by_wall: Mapping[WallId, Cost]

    @property
    def unnamed_ns(self) -> int:
        return unnamed_ns(self.rank)

    @property
    def is_seen_to_communicate(self) -> bool:
        budget = self.rank.budget
        return self.rank.unseen is None and budget.exposed_comm_ns + budget.hidden_comm_ns > 0

    def most_ns(self, wall: WallId) -> int | None:
        """The bound of the partition; a replay that may say too little is no lower than it says.

        Compute of unknown class may be communication, all of it.
        """
        if wall == "communication" and self.rank.unseen is not None:
            return None
        bound, cost = _bound_ns(self.rank, self.start, wall), self.by_wall.get(wall)
        if bound is not None and cost is not None:
            bound = max(bound, cost.ns)
        if wall != "communication" or not self.unnamed_ns:
            return bound
        proven_ns = self._replayed_ns(wall)
        if proven_ns is not None:
            bound = proven_ns
        if bound is None:
            return None
        return min(bound + self.unnamed_ns, self.start.judged_ns)

    def proven_ns(self, wall: WallId) -> int | None:
        """What the wall costs, where nothing leaves it open that it is more."""
        if wall == "communication" and self.unnamed_ns:
            return None
        return self._replayed_ns(wall)

    def _replayed_ns(self, wall: WallId) -> int | None:
        """What a replay says whose proofs leave nothing open."""
        if self.replays is None or self.replays.at_least is not None:
            return None
        cost = self.by_wall.get(wall)
        return None if cost is None else cost.ns


@frozen
class RunCosts:
    """The same of all ranks of a run."""

    ranks: tuple[RankCosts, ...]
    startup: Startup | None

    @property
    def recorder(self) -> str:
        return self.ranks[0].rank.kind

    @property
    def error_frac(self) -> float:
        """How far prices may be off: what a replay misses its window by, of the worst rank."""
        return max((rank.proofs.residual_free_error_frac for rank in self.replays), default=0.0)

    @property
    def replays(self) -> list[Costs]:
        return [rank.replays for rank in self.ranks if rank.replays is not None]

    @property
    def judged_ns(self) -> int:
        return sum(rank.start.judged_ns for rank in self.ranks)

    def telling(self, wall: WallId) -> list[RankCosts]:
        """The ranks that tell what a wall costs."""
        return [rank for rank in self.ranks if wall in rank.by_wall]

    def at_most_frac(self, wall: WallId, proofs_hold: bool = True) -> float | None:
        """The most that a wall can cost where no proven replay tells its cost, as part of what is
        judged.

        Each rank adds its proven cost, or else the bound of its partition; None where a rank has
        neither, or all are proven. `proofs_hold` False: no replay tells it, whatever its proofs
        say.
        """
        most_ns, is_proven = 0, True
        for rank in self.ranks:
            ns = rank.proven_ns(wall) if proofs_hold else None
            if ns is None:
                ns, is_proven = rank.most_ns(wall), False
            if ns is None:
                return None
            most_ns += ns
        if is_proven:
            return None
        return most_ns / self.judged_ns


def costs_of(measurements: Sequence[RankMeasurements]) -> RunCosts:
    ranks = tuple(_costs_of(place, rank) for place, rank in enumerate(measurements))
    return RunCosts(ranks, startup_of([rank.start for rank in ranks]))


def _costs_of(place: int, rank: RankMeasurements) -> RankCosts:
    start, replays = start_of(rank), rank.costs
    if isinstance(replays, Missing) or replays.refused is not None:
        return RankCosts(place, rank, start, None, {})
    by_wall = dict[WallId, Cost]()
    for wall in WALL_IDS:
        cost, most_ns = replays.of(wall), _most_ns(rank, start, wall)
        # communication of which a part was not seen has no price
        if cost is None or (wall == "communication" and rank.unseen is not None):
            continue
        if wall == "host_overhead":
            cost = start.without(cost)
        if most_ns is not None:  # what is saved in steps that are left out is no cost of the others
            cost = replace(cost, ns=min(cost.ns, most_ns))
        by_wall[wall] = cost
    return RankCosts(place, rank, start, replays, by_wall)


def _bound_ns(rank: RankMeasurements, start: Start, wall: WallId) -> int | None:
    """The bound of the partition, without what start-up took of it."""
    bound = rank.bounds.of(wall)
    if bound is None or wall != "host_overhead":
        return bound
    return max(0, bound - start.loading_ns)


def _most_ns(rank: RankMeasurements, start: Start, wall: WallId) -> int | None:
    """The most that what was seen can cost: graphs hide communication from its bound, not what is
    beside.

    What is computed again takes the gaps between along, which memory's bound does not count.
    """
    if wall == "memory":
        return rank.steps.windows.total_ns
    bound = _bound_ns(rank, start, wall)
    if wall == "communication" and bound is None:
        return rank.bounds.communication_seen
    return bound
