"""What a wall costs, and what its judge answers: a wall as the result has it, with its evidence.

A price is the replayed cost of an overhead, added up over the ranks of a run and their windows less
start-up. A row of the ledger belongs to the wall whose overhead, taken away, would shrink it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from heuristics.figures.figures import Ranks, added, frac_of
from heuristics.result.judged import Evidence, Outcome, Wall
from heuristics.walls.costs import RankCosts, RunCosts
from heuristics.words import say
from traces.cures import cure
from traces.frozen import frozen
from traces.limits import FEWEST, HALF_A_WALL, WALL, Limit
from traces.missing import Missing, OrMissing, known
from traces.names.kernels import COMM_KINDS, GRAPH_REPLAY
from traces.sections.tables import WallId
from traces.steps.sample import sample_of
from traces.toml_tables import TableRow, read_table

UNNAMED: Final = "unknown_kernels"
"""Where a doubt stands that kernels of unknown class leave."""


@frozen
class Price:
    """One overhead's ceiling over the ranks that could be replayed; `rank` is the one it costs
    most.

    `steady_frac`: the same in the steps after the first, None with fewer than three. `at_least`:
    why it may be more; `at_most_frac`: the most that it can then be, None where nothing bounds it
    or the price itself is the most. `rank` and `steady_frac` are None too where figures were given
    in place of a trace.
    """

    ns: int
    frac: float
    by_kind_ns: Mapping[str, int]
    at_least: Missing | None = None
    at_most_frac: float | None = None
    steady_frac: float | None = None
    rank: int | None = None


@frozen
class Unpriced:
    """Why an overhead has no price, and the most that it can be; None where nothing bounds it."""

    why: Missing
    at_most_frac: float | None = None


Priced = Price | Unpriced


def price(costs: RunCosts, wall: WallId) -> Priced:
    startup, telling = costs.startup, costs.telling(wall)
    total_ns = sum(rank.by_wall[wall].ns for rank in telling)
    judged_ns = sum(rank.start.judged_ns for rank in telling)
    # what is saved beyond the rest is start-up
    if startup is not None and (startup.leaves_too_little or total_ns > judged_ns):
        reason = say("walls.only-startup", part_frac=startup.frac)
        return Unpriced(Missing("walls", reason, cure("startup", costs.recorder)))
    opaque = _opaque(costs) if wall != "host_overhead" else None
    most = None if opaque is not None else costs.at_most_frac(wall)
    if not telling:
        return Unpriced(_why(costs.ranks[0], wall) if opaque is None else opaque, most)
    if most is not None:  # of all ranks where a bound holds for those without a price
        judged_ns = costs.judged_ns
    return Price(
        total_ns,
        total_ns / judged_ns,
        dict(added(teller.by_wall[wall].by_kind_ns for teller in telling)),
        _doubt(costs, wall) if opaque is None else opaque,
        most,
        _steady_frac(telling, wall),
        max(telling, key=lambda teller: teller.by_wall[wall].ns / teller.start.judged_ns).place,
    )


def _opaque(costs: RunCosts) -> Missing | None:
    """Why only the host can be judged: graphs recorded whole take enough of the windows to hide a
    wall.
    """
    replays_ns = window_ns = 0
    for rank in costs.ranks:
        replays_ns += rank.rank.budget.compute_by_class_ns.get(GRAPH_REPLAY, 0)
        window_ns += rank.rank.budget.window_ns
    if replays_ns < WALL.value * window_ns:
        return None
    return Missing("walls", say("walls.opaque-graphs"), cure("graphs", costs.recorder))


def _steady_frac(telling: Sequence[RankCosts], wall: WallId) -> float | None:
    """Cost in the steps after each rank's first, as part of them."""
    cost_ns = length_ns = 0
    for rank in telling:
        step_ns = rank.by_wall[wall].step_ns
        if len(step_ns) < FEWEST.value:
            return None
        sample = sample_of(rank.rank.steps)
        later = slice(int(sample.steps[0] is rank.rank.steps.used[0]), None)
        cost_ns += sum(step_ns[later])
        length_ns += sum(sample.stand_for_ns[later])
    return cost_ns / length_ns


def _doubt(costs: RunCosts, wall: WallId) -> Missing | None:
    """Why the price may be more than it seems: a rank has none, or the least elastic of those in
    doubt.
    """
    for rank in costs.ranks:
        if wall not in rank.by_wall:
            return _why(rank, wall)
    if wall == "communication" and (unnamed := unnamed_doubt(costs)) is not None:
        return unnamed
    doubted = [replay for replay in costs.replays if replay.at_least is not None]
    if doubted:
        return min(doubted, key=lambda replay: replay.proofs.elastic_frac).at_least
    return None


def unnamed_doubt(costs: RunCosts) -> Missing | None:
    """Why communication may cost more: kernels of unknown class, which perhaps or probably are;
    None: few.
    """
    alone_ns = apart_ns = 0
    for rank in costs.ranks:
        if rank.unnamed_ns:
            alone_ns += rank.unnamed_ns
            apart_ns += rank.rank.unnamed.apart_ns
    if not alone_ns:
        return None
    which = "probably" if 2 * apart_ns >= alone_ns else "perhaps"
    reason = say(f"walls.unnamed-{which}", part_frac=alone_ns / costs.judged_ns)
    return Missing(UNNAMED, reason, cure("unknown_kernels", costs.recorder))


def _why(rank: RankCosts, wall: WallId) -> Missing:
    replays, recorder = rank.rank.costs, rank.rank.kind
    if isinstance(replays, Missing):
        return replays
    if replays.refused is not None:
        return replays.refused
    if wall == "communication":
        return Missing("replay", say("walls.unseen-communication"), cure("names", recorder))
    if known(rank.rank.sm.sm_count) is None:
        return Missing("replay", say("walls.unknown-sms"), cure("sm_count", recorder))
    return Missing("replay", say("walls.no-shapes"), cure("shapes", recorder))


class Measure(TableRow):
    """What stands beside a wall's cost; `of`: the length of a rank that it is a part of."""

    because: str
    unit: str = "fraction of the windows"
    of: str = ""


MEASURES: Final = read_table("heuristics.walls", "evidence.toml", dict[str, Measure])


def shown(measure: str, value: float, limit: float | None = None) -> Evidence:
    """A value of the table that no single place shows; `limit`: what it is held against, None for
    context.
    """
    row = MEASURES[measure]
    return Evidence(measure, value, row.unit, limit, row.because, None, None, None, None)


def held(
    measure: str,
    value: float,
    limit: Limit,
    rank: int | None = None,
    because: str = "",
    unit: str = "",
) -> Evidence:
    """A value against its limit, which says why. `rank`: the place in the document that shows it
    best.

    `unit`: of what it is a part, where the limit is a word for parts of anything.
    """
    why = because or limit.because
    return Evidence(measure, value, unit or limit.unit, limit.value, why, None, None, None, rank)


def shown_frac(measure: str, ranks: Ranks) -> list[Evidence]:
    """The row's length as part of the windows, over the ranks that tell it; nothing where none
    does.
    """
    frac = frac_of(ranks, MEASURES[measure].of)
    if frac is None:
        return []
    return [shown(measure, frac)]


def value_of(wall: Wall, measure: str) -> float | None:
    """What a wall's evidence says; None where it does not say it."""
    return next((row.value for row in wall.evidence if row.measure == measure), None)


def only_in_first_step(wall: Wall) -> bool:
    steady_frac = value_of(wall, "steady_cost_frac")
    return steady_frac is not None and steady_frac < HALF_A_WALL.value


def judged(wall: WallId, priced: Priced, ranks: Ranks, evidence: Sequence[Evidence]) -> Wall:
    """A finding from the limit up, else clear; the cost itself is the first evidence.

    A cost that is unknown, or may be more than it seems, is clear only where even the most it can
    be is below the limit.
    """
    most = priced.at_most_frac
    if isinstance(priced, Unpriced):
        if most is None or most >= WALL.value:
            return unmeasurable(wall, priced.why, evidence, most)
        ns = round(most * sum(rank.judged_ns for rank in ranks))
        bound = held(
            "cost_frac", most, WALL, because=say("walls.at-most", reason=priced.why.reason)
        )
        return Wall(wall, "clear", ns, most, {}, most, (bound, *evidence), (), "")
    costs = [held("cost_frac", priced.frac, WALL, priced.rank)]
    if priced.steady_frac is not None:
        costs.append(held("steady_cost_frac", priced.steady_frac, HALF_A_WALL))
    stands, proofs = priced.frac >= WALL.value, (*costs, *evidence)
    if priced.at_least is not None and not stands and (most is None or most >= WALL.value):
        return unmeasurable(wall, priced.at_least, proofs, most)
    outcome: Outcome = "finding" if stands else "clear"
    return Wall(wall, outcome, priced.ns, priced.frac, priced.by_kind_ns, most, proofs, (), "")


def unmeasurable(
    wall: WallId, why: Missing, evidence: Sequence[Evidence] = (), at_most_frac: float | None = None
) -> Wall:
    """What could not be looked at is never clear."""
    most: OrMissing[float] = why if at_most_frac is None else at_most_frac
    return Wall(wall, "unmeasurable", why, why, why, most, tuple(evidence), (why.reason,), why.cure)


_ROWS: Final = read_table("heuristics.walls", "rows.toml", dict[str, dict[str, WallId | None]])


def wall_of(row: str) -> WallId | None:
    """The wall of a row such as `compute.gemm`, `idle.launch_starved.python`,
    `moe.dispatch.backward`.
    """
    row = row.removeprefix("idle.")
    head, _, name = row.partition(".")
    if head == "moe":
        module, _, direction = name.partition(".")
        if direction == "recompute":
            return "memory"
        return _ROWS["module"].get(module)
    if name in COMM_KINDS:
        return "communication"
    return _ROWS["row"].get(row, _ROWS["group"].get(head))
