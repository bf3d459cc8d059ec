"""What opinions rest on: walls, verdict and what a run shows, by a trace or by figures that were given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from msgspec import structs

from heuristics.config.observed import Observed
from heuristics.evidence.observed import observed_by
from heuristics.figures.figures import Figures, figures_of
from heuristics.figures.startup import Startup
from heuristics.guides.facts import EP_KINDS
from heuristics.plan.gains import Replayed
from heuristics.result.judged import Verdict, Wall
from heuristics.run.repairs import LateRank
from heuristics.run.run import WALL_IDS
from heuristics.walls import judge_walls, replayed_prices
from heuristics.walls.bound import Bound, LargestBucket, find_bound, largest_bucket, unproven
from heuristics.walls.price import Price, Unpriced, costs_of
from heuristics.walls.verdict import find_verdict
from heuristics.words import say
from traces.cures import cure
from traces.limits import Limit
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.sections.cause import Cause
from traces.sections.run import Run
from traces.sections.tables import WallId

KERNELS: Final = Limit(
    16,
    "kernels",
    "ours: fewer, without a step, are a test of something; one layer of experts takes 25 to 40, and what "
    "slows it was right in each of four recordings of others",
)


def too_few(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why no wall is judged where each rank is one window of few kernels; a window the user gave is judged.

    A graph replay that was recorded whole counts as one kernel.
    """
    most = max(measurements, key=_count)
    if _count(most) >= KERNELS.value or any(rank.steps.source != "none" for rank in measurements):
        return None
    held = [(most.kernel_count, "kernel"), (most.replay_count, "graph replay")]
    named = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in held if count)
    reason = say("evidence.too-few", work=named)
    return Missing("walls", reason, cure("whole_steps", measurements[0].kind))


def _count(rank: RankMeasurements) -> int:
    return rank.kernel_count + rank.replay_count


_STILL_MOVING: Final = (Cause.SLOW_LINK,)
"""Why ranks wait for data that moves, which an overlap hides; all others wait for a rank to arrive."""


def late_rank(together: Run, ranks: Sequence[Figures]) -> LateRank | None:
    """What several ranks found; None where nobody is late, or nobody can tell who."""
    late, without = known(together.late), known(together.without)
    if late is None or late.cause is Cause.NONE:
        return None
    exposed_ns: dict[str, int] = {}
    for rank in ranks:
        for kind, ns in (rank.exposed_by_kind_ns or {}).items():
            exposed_ns[kind] = exposed_ns.get(kind, 0) + ns
    waits_ns = {} if late.cause in _STILL_MOVING else together.late_exposed_by_kind_ns
    return LateRank(late.cause, without.saved_frac if without else None, waits_ns, exposed_ns)


def expert_waiting_frac(together: Run) -> float | None:
    """How much of the expert all-to-all of several ranks is waiting; None where none was matched."""
    waits_ns = _of_experts(together.wait_by_kind_ns)
    whole_ns = waits_ns + _of_experts(together.transfer_by_kind_ns)
    return waits_ns / whole_ns if whole_ns and together.clocks.aligned else None


def _of_experts(by_kind_ns: Mapping[str, int]) -> int:
    return sum(ns for kind, ns in by_kind_ns.items() if kind in EP_KINDS)


def without_waits(wall: Wall, late: LateRank | None) -> Wall:
    """The communication wall as fixes of communication can act on it: less the waiting for a late rank.

    A kind costs at most what is exposed of it beside that waiting, whatever the replay of one rank says.
    """
    whole_ns = known(wall.cost_ns)
    if wall.id != "communication" or not whole_ns or late is None or not late.waits_ns:
        return wall
    exposed_ns, waits_ns = late.exposed_ns or {}, late.waits_ns
    rest_ns = {kind: max(0, ns - waits_ns.get(kind, 0)) for kind, ns in exposed_ns.items()}
    by_kind = {
        kind: min(ns, rest_ns.get(kind, ns)) for kind, ns in (known(wall.cost_by_kind_ns) or {}).items()
    }
    cost_ns, frac = min(whole_ns, sum(rest_ns.values())), known(wall.cost_frac)
    frac = None if frac is None else frac * cost_ns / whole_ns
    return structs.replace(wall, cost_ns=cost_ns, cost_frac=frac, cost_by_kind_ns=by_kind)


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """A run as it was evidence.

    `window_ns`: the windows of the ranks whose costs are known, together; `replayed`: these ranks' costs and
    the changes found in them, none where nothing was replayed. `step_ns`: the median length of the steps
    used, over all ranks; None where no steps were found. `perturbation_frac`: how much longer the profiled
    step is than a step without the profiler, where that is known. `startup`: profiler and start-up time that
    is left out of the windows, where there is much of it. `unproven`: walls whose fixes may help although no
    gain is proven, and why none is. `late`: why ranks wait for each other, by several of them.
    """

    bound: Bound
    largest: LargestBucket | None
    walls: tuple[Wall, ...]
    verdict: Verdict
    observed: Observed
    window_ns: int
    replayed: tuple[Replayed, ...] = ()
    step_ns: int | None = None
    perturbation_frac: float | None = None
    startup: Startup | None = None
    unproven: Mapping[WallId, Missing] = field(default_factory=dict)
    late: LateRank | None = None


def observe(measurements: Sequence[RankMeasurements], together: Run | None = None) -> RunEvidence:
    """Observe a run by the measurements of all its ranks, at least one; `together`: what several show."""
    ranks, costs, few = figures_of(measurements), costs_of(measurements), too_few(measurements)
    prices = replayed_prices(costs) if few is None else dict.fromkeys(WALL_IDS, Unpriced(few))
    walls = judge_walls(ranks, prices)
    steps = {wall: one.step_frac for wall, one in prices.items() if isinstance(one, Price)}
    replayed = tuple(
        Replayed(one.replays, one.replays.changes, one.start.judged_ns, one.place)
        for one in costs.ranks
        if one.replays is not None
    )
    bound = _bound(ranks, walls)
    late = late_rank(together, ranks) if together else None
    return RunEvidence(
        bound=bound,
        largest=largest_bucket(ranks),
        walls=walls,
        verdict=find_verdict(costs, walls, steps, together),
        observed=_observed(ranks, together, late),
        window_ns=sum(rank.window_ns for rank in replayed),
        replayed=replayed,
        step_ns=_step_ns(measurements),
        startup=costs.startup,
        unproven=unproven(walls, bound),
        late=late,
    )


def _bound(ranks: Sequence[Figures], walls: Sequence[Wall]) -> Bound:
    """The bound; none where the partition is of work of which only the host's part was seen."""
    inside = [wall for wall in walls if wall.id != "host_overhead"]
    if all(wall.outcome == "unmeasurable" and known(wall.at_most_frac) is None for wall in inside):
        return Bound(None, inside[0].missing[0], inside[0].cure)
    return find_bound(ranks)


def _observed(ranks: Sequence[Figures], together: Run | None, late: LateRank | None) -> Observed:
    """What the ranks show; waiting by several of them, where they separate it, not by what is like it."""
    seen = observed_by(ranks)
    waiting = expert_waiting_frac(together) if together else None
    return replace(
        seen,
        late_cause=late.cause if late else seen.late_cause,
        a2a_waiting_frac=seen.a2a_waiting_frac if waiting is None else waiting,
    )


def _step_ns(measurements: Sequence[RankMeasurements]) -> int | None:
    lengths = [step.end_ns - step.start_ns for rank in measurements for step in rank.steps.used]
    return round(median(lengths)) if lengths else None
