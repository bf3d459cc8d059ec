"""How sure a verdict is, and what keeps it from being surer."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from heuristics.figures.startup import find_startup
from heuristics.result.judged import Level, Reason, Verdict, Wall
from heuristics.walls.price import only_in_first_step
from traces.account.account import Account
from traces.limits import Limit
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.sections.run import Run
from traces.sections.tables import WallId
from traces.spelling import percent, spoken

FEW_STEPS: Final = Limit(3, "steps", "ours: of two steps one may be the odd one")
UNDECIDED: Final = Limit(
    0.10, "fraction of the windows", "ours: above it a wall could lie in what no edge decides"
)
OFF: Final = Limit(
    0.02, "fraction of the window", "a replay without unexplained waits is to come back within it"
)
PROFILER_CALL: Final = Limit(
    1_000, "ns per recorded call or range", "ours, not measured: what recording one costs its thread"
)
COMPLETE: Final = Limit(
    0.90,
    "fraction of communication time",
    "ours: below it a wall could lie in collectives that not all ranks of their group recorded",
)
PROFILER_SHARE: Final = Limit(0.25, "fraction of the host's cost", "ours: more may be the profiler's making")

_LEVELS: Final[tuple[Level, ...]] = ("high", "medium", "low")


def level_of(reasons: Sequence[Reason]) -> Level:
    """How sure so many reasons leave a verdict: each lowers the level by one."""
    return _LEVELS[min(len(reasons), 2)]


def with_confidence(verdict: Verdict, reasons: tuple[Reason, ...], level: Level | None = None) -> Verdict:
    """The verdict with how sure it is; `level`: where something else than the reasons tells it."""
    return replace(
        verdict,
        confidence=level or level_of(reasons),
        confidence_because=tuple(one.text for one in reasons),
        confidence_reasons=reasons,
    )


def reasons_against(
    wall: WallId,
    measurements: Sequence[RankMeasurements],
    walls: Sequence[Wall],
    together: Run | None = None,
) -> tuple[Reason, ...]:
    """Why the verdict `wall` is not surer, over all ranks measured; `together`: what several show."""
    return (
        *_about_startup(measurements),
        *_about_steps(measurements),
        *_about_first_step(wall, walls),
        *_about_ranks(wall, measurements, together),
        *_about_coverage(measurements),
        *_about_waits(measurements),
        *_about_profiler(wall, measurements),
        *about_others(wall, walls),
    )


def _about_startup(measurements: Sequence[RankMeasurements]) -> Iterator[Reason]:
    if (startup := find_startup(measurements)) is not None:
        text = f"profiler and start-up take {percent(startup.frac)} of the window: not a steady state"
        yield Reason("startup", text)


def _about_steps(measurements: Sequence[RankMeasurements]) -> Iterator[Reason]:
    fewest = min(len(rank.steps.used) for rank in measurements)
    if not fewest and all(rank.steps.source == "user" for rank in measurements):
        return  # the user's own window
    if not fewest:
        blind = sum(not rank.steps.used for rank in measurements)
        where = f" on {blind} of {len(measurements)} ranks" if blind < len(measurements) else ""
        yield Reason("no_steps", f"no steps were found{where}, so one window")
    elif any(rank.steps.unit == "block" for rank in measurements):
        yield Reason("blocks", "nothing shows that what repeats is a step")
    elif fewest < FEW_STEPS.value:
        yield Reason("few_steps", f"only {fewest} step{'' if fewest == 1 else 's'}")


def _about_first_step(wall: WallId, walls: Sequence[Wall]) -> Iterator[Reason]:
    if any(one.id == wall and only_in_first_step(one) for one in walls):
        text = "nearly all of its cost lies in the first of the used steps, so it may be warm-up"
        yield Reason("first_step", text)


def _about_ranks(
    wall: WallId, measurements: Sequence[RankMeasurements], together: Run | None
) -> Iterator[Reason]:
    told = [rank.budget for rank in measurements if rank.unseen is None]
    speaks = any(budget.exposed_comm_ns or budget.hidden_comm_ns for budget in told)
    if wall != "communication" or not speaks:
        return
    inseparable = "waiting for a slow peer cannot be separated from data transfer"
    if len(measurements) == 1:
        yield Reason("one_rank", f"only one rank was recorded, so {inseparable}")
    elif together is not None and isinstance(missing := together.clocks.residual_ns, Missing):
        yield Reason("other_ranks", f"{inseparable}: {missing.reason}")
    elif together is not None and (known(together.complete_frac) or 0.0) < COMPLETE.value:
        yield Reason("other_ranks", _not_complete(together))


def _not_complete(together: Run) -> str:
    """How much of the communication is with ranks that may be missing."""
    size, open_frac = known(together.world_size), 1.0 - (known(together.complete_frac) or 0.0)
    part = f"{percent(open_frac)} of communication time is in groups that"
    if size is None:
        return f"{part} may have more ranks: their number was not recorded"
    if len(together.ranks) < size:
        return f"{len(together.ranks)} of {size} ranks were recorded, and {part} may wait for the others"
    return f"{part} could not be matched across ranks"


def _about_coverage(measurements: Sequence[RankMeasurements]) -> Iterator[Reason]:
    blind = sum(isinstance(rank.costs, Missing) or rank.costs.refused is not None for rank in measurements)
    if blind:
        yield Reason("not_replayed", f"{blind} of {len(measurements)} ranks could not be replayed")


def _about_waits(measurements: Sequence[RankMeasurements]) -> Iterator[Reason]:
    """Waits that nothing explains, in the account or in the replay of the worst rank."""
    undecided = [
        rank.account.decided_ns["none"] / rank.budget.window_ns
        for rank in measurements
        if isinstance(rank.account, Account)
    ]
    off = [
        rank.costs.proofs.residual_free_error_frac
        for rank in measurements
        if not isinstance(rank.costs, Missing)
    ]
    if max(undecided, default=0.0) > UNDECIDED.value:
        text = f"{percent(max(undecided))} of the window is time without compute that no edge explains"
        yield Reason("unexplained_waits", text)
    elif max(off, default=0.0) > OFF.value:
        text = f"a replay without unexplained waits misses the window by {percent(max(off))}"
        yield Reason("replay_off", text)


def _about_profiler(wall: WallId, measurements: Sequence[RankMeasurements]) -> Iterator[Reason]:
    if wall != "host_overhead":
        return
    told = [
        (rank, rank.costs)
        for rank in measurements
        if not isinstance(rank.costs, Missing) and rank.costs.refused is None
    ]
    rows = sum(rank.recorded_host_rows for rank, _ in told)
    cost_ns = sum(costs.host_overhead.ns for _, costs in told)
    if rows * PROFILER_CALL.value > PROFILER_SHARE.value * cost_ns:
        share = min(1.0, rows * PROFILER_CALL.value / max(cost_ns, 1))
        text = f"recording {rows:,} calls and ranges may itself make up to {percent(share)} of it"
        yield Reason("profiler", text)


def about_others(wall: WallId, walls: Sequence[Wall]) -> Iterator[Reason]:
    """Other walls that could not be priced: one of them may be larger."""
    blind = [
        spoken(one.id)
        for one in walls
        if one.id != wall and one.outcome == "unmeasurable" and known(one.cost_ns) is None
    ]
    if blind:
        yield Reason("unmeasured_walls", f"not measurable here: {', '.join(blind)}")
