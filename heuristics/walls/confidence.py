"""How sure a verdict is, and what keeps it from being surer."""

from collections.abc import Iterator, Sequence
from typing import Final, get_args

from msgspec.structs import replace

from heuristics.result.judged import Level, Reason, Verdict, Walls
from heuristics.walls.costs import RankCosts, RunCosts
from heuristics.walls.price import only_in_first_step, unnamed_doubt
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

_LEVELS: Final[tuple[Level, ...]] = get_args(Level)


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
        confidence_because=tuple(reason.text for reason in reasons),
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
    for judged_wall in walls:
        if judged_wall.id == wall and only_in_first_step(judged_wall):
            yield Reason("first_step", say("walls.first-step"))
    if wall == "communication":
        yield from _about_ranks(costs.ranks, together)
    if (unnamed := unnamed_doubt(costs)) is not None:
        yield Reason("unknown_kernels", unnamed.reason)
    if blind := len(costs.ranks) - len(costs.replays):
        yield Reason("not_replayed", say("walls.not-replayed", blind=blind, ranks=len(costs.ranks)))
    yield from _about_waits(costs.ranks)
    if wall == "host_overhead":
        yield from _about_profiler(costs.ranks)
    yield from about_others(wall, walls, unnamed.reason if unnamed is not None else "")


def _about_steps(ranks: Sequence[RankCosts]) -> Iterator[Reason]:
    counts, sources, units = list[int](), set[str](), set[str]()
    for rank in ranks:
        counts.append(len(rank.rank.steps.used))
        sources.add(rank.rank.steps.source)
        units.add(rank.rank.steps.unit)
    blind = counts.count(0)
    if blind and sources == {"user"}:
        return  # the user's own window
    if blind:
        sentence = say("walls.no-steps-on-some", blind=blind, ranks=len(ranks))
        yield Reason("no_steps", sentence if blind < len(ranks) else say("walls.no-steps"))
    elif "block" in units:
        yield Reason("blocks", say("walls.blocks"))
    elif min(counts) < FEWEST.value:
        yield Reason("few_steps", say("walls.few-steps", steps=counted(min(counts), "step")))


def _about_ranks(ranks: Sequence[RankCosts], together: Run | None) -> Iterator[Reason]:
    if not any(rank.is_seen_to_communicate for rank in ranks):
        return
    if len(ranks) == 1:
        yield Reason("one_rank", say("walls.one-rank"))
    elif together is not None and isinstance(missing := together.clocks.residual_ns, Missing):
        yield Reason("other_ranks", say("walls.inseparable", reason=missing.reason))
    elif together is not None and (together.complete_frac or 0.0) < NEARLY_ALL.value:
        yield Reason("other_ranks", _not_complete(together))


def _not_complete(together: Run) -> str:
    size, open_frac = known(together.world_size), 1.0 - (together.complete_frac or 0.0)
    if size is None:
        return say("walls.unknown-ranks", open_frac=open_frac)
    seen = len(together.ranks)
    if seen < size:
        return say("walls.missing-ranks", seen=seen, size=size, open_frac=open_frac)
    return say("walls.unmatched", open_frac=open_frac)


def _about_waits(ranks: Sequence[RankCosts]) -> Iterator[Reason]:
    undecided_frac = off_frac = 0.0
    for rank in ranks:
        account, replays = rank.rank.account, rank.rank.costs
        if isinstance(account, Account):
            undecided_frac = max(undecided_frac, account.decided_ns["none"] / rank.start.window_ns)
        if not isinstance(replays, Missing):
            off_frac = max(off_frac, replays.proofs.residual_free_error_frac)
    if undecided_frac > WALL.value:
        yield Reason("unexplained_waits", say("walls.unexplained-waits", part_frac=undecided_frac))
    elif off_frac > OFF.value:
        yield Reason("replay_off", say("walls.replay-off", off_frac=off_frac))


def _about_profiler(ranks: Sequence[RankCosts]) -> Iterator[Reason]:
    rows = cost_ns = 0
    for rank in ranks:
        if rank.replays:
            rows += rank.rank.recorded_host_rows
            cost_ns += rank.replays.host_overhead.ns
    rows_ns = rows * PROFILER_CALL.value
    if rows_ns > QUARTER.value * cost_ns:
        part = rows_ns / max(cost_ns, rows_ns)
        yield Reason("profiler", say("walls.recording", rows=f"{rows:,}", part_frac=part))


def about_others(wall: WallId, walls: Walls, reason_given: str = "") -> Iterator[Reason]:
    """Without walls that cannot be judged for the reason that is given already."""
    blind = []
    for other in walls:
        is_blind = other.outcome == "unmeasurable" and known(other.cost_ns) is None
        if is_blind and other.id != wall and reason_given not in other.missing:
            blind.append(spoken(other.id))
    if blind:
        yield Reason("unmeasured_walls", say("walls.not-measurable", walls=", ".join(blind)))
