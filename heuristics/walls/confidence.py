"""How sure a verdict is, and what keeps it from being surer."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from heuristics.result.judged import Level, Reason, Verdict, Walls
from heuristics.walls.price import RankCosts, RunCosts, only_in_first_step, unnamed_doubt
from heuristics.words import say
from traces.account.account import Account
from traces.limits import FEWEST, NEARLY_ALL, QUARTER, WALL, Limit
from traces.missing import Missing, known
from traces.sections.run import Run
from traces.sections.tables import WallId
from traces.spelling import counted, spoken

OFF: Final = Limit(
    0.02, "fraction of the window", "a replay without unexplained waits is to come back within it"
)
PROFILER_CALL: Final = Limit(
    1_000,
    "ns per recorded call or range",
    "ours, not measured: what recording one costs its thread",
)

_LEVELS: Final[tuple[Level, ...]] = ("high", "medium", "low")


def level_of(reasons: Sequence[Reason]) -> Level:
    """How sure so many reasons leave a verdict: each lowers the level by one."""
    return _LEVELS[min(len(reasons), 2)]


def with_confidence(
    verdict: Verdict, reasons: tuple[Reason, ...], level: Level | None = None
) -> Verdict:
    """The verdict with how sure it is; `level`: where something else than the reasons tells it."""
    return replace(
        verdict,
        confidence=level or level_of(reasons),
        confidence_because=tuple(one.text for one in reasons),
        confidence_reasons=reasons,
    )


def reasons_against(
    wall: WallId, costs: RunCosts, walls: Walls, together: Run | None = None
) -> Iterator[Reason]:
    """Why the verdict `wall` is not surer, over all ranks measured; `together`: what several
    show.
    """
    if costs.startup is not None:
        yield Reason("startup", say("walls.startup", part_frac=costs.startup.frac))
    yield from _about_steps(costs.ranks)
    if any(one.id == wall and only_in_first_step(one) for one in walls):
        yield Reason("first_step", say("walls.first-step"))
    if wall == "communication":
        yield from _about_ranks(costs.ranks, together)
    if (unnamed := unnamed_doubt(costs.ranks)) is not None:
        yield Reason("unknown_kernels", unnamed.reason)
    if blind := sum(one.replays is None for one in costs.ranks):
        yield Reason("not_replayed", say("walls.not-replayed", blind=blind, ranks=len(costs.ranks)))
    yield from _about_waits(costs.ranks)
    if wall == "host_overhead":
        yield from _about_profiler(costs.ranks)
    yield from about_others(
        wall, [one for one in walls if unnamed is None or unnamed.reason not in one.missing]
    )


def _about_steps(ranks: Sequence[RankCosts]) -> Iterator[Reason]:
    steps = [one.rank.steps for one in ranks]
    fewest = min(len(one.used) for one in steps)
    if not fewest and all(one.source == "user" for one in steps):
        return  # the user's own window
    if not fewest:
        blind = sum(not one.used for one in steps)
        some = say("walls.no-steps-on-some", blind=blind, ranks=len(ranks))
        yield Reason("no_steps", some if blind < len(ranks) else say("walls.no-steps"))
    elif any(one.unit == "block" for one in steps):
        yield Reason("blocks", say("walls.blocks"))
    elif fewest < FEWEST.value:
        yield Reason("few_steps", say("walls.few-steps", steps=counted(fewest, "step")))


def _about_ranks(ranks: Sequence[RankCosts], together: Run | None) -> Iterator[Reason]:
    told = [one.rank.budget for one in ranks if one.rank.unseen is None]
    if not any(budget.exposed_comm_ns or budget.hidden_comm_ns for budget in told):
        return
    if len(ranks) == 1:
        yield Reason("one_rank", say("walls.one-rank"))
    elif together is not None and isinstance(missing := together.clocks.residual_ns, Missing):
        yield Reason("other_ranks", say("walls.inseparable", reason=missing.reason))
    elif together is not None and (known(together.complete_frac) or 0.0) < NEARLY_ALL.value:
        yield Reason("other_ranks", _not_complete(together))


def _not_complete(together: Run) -> str:
    size, open_frac = known(together.world_size), 1.0 - (known(together.complete_frac) or 0.0)
    if size is None:
        return say("walls.unknown-ranks", open_frac=open_frac)
    seen = len(together.ranks)
    if seen < size:
        return say("walls.missing-ranks", seen=seen, size=size, open_frac=open_frac)
    return say("walls.unmatched", open_frac=open_frac)


def _about_waits(ranks: Sequence[RankCosts]) -> Iterator[Reason]:
    accounts = [(one.rank.account, one.start.window_ns) for one in ranks]
    undecided = [one.decided_ns["none"] / ns for one, ns in accounts if isinstance(one, Account)]
    replays = [one.rank.costs for one in ranks]
    off = [one.proofs.residual_free_error_frac for one in replays if not isinstance(one, Missing)]
    if (most := max(undecided, default=0.0)) > WALL.value:
        yield Reason("unexplained_waits", say("walls.unexplained-waits", part_frac=most))
    elif (most := max(off, default=0.0)) > OFF.value:
        yield Reason("replay_off", say("walls.replay-off", off_frac=most))


def _about_profiler(ranks: Sequence[RankCosts]) -> Iterator[Reason]:
    told = [
        (one.rank.recorded_host_rows, one.replays.host_overhead.ns) for one in ranks if one.replays
    ]
    rows, cost_ns = sum(rows for rows, _ in told), sum(ns for _, ns in told)
    rows_ns = rows * PROFILER_CALL.value
    if rows_ns > QUARTER.value * cost_ns:
        part = rows_ns / max(cost_ns, rows_ns)
        yield Reason("profiler", say("walls.recording", rows=f"{rows:,}", part_frac=part))


def about_others(wall: WallId, walls: Walls) -> Iterator[Reason]:
    unknown = [one for one in walls if one.outcome == "unmeasurable" and known(one.cost_ns) is None]
    if blind := [spoken(one.id) for one in unknown if one.id != wall]:
        yield Reason("unmeasured_walls", say("walls.not-measurable", walls=", ".join(blind)))
