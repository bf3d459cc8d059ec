"""What opinions rest on: walls, verdict and what a run shows, by a trace or by figures that were given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from heuristics.evidence.late_rank import expert_waiting_frac, late_rank
from heuristics.evidence.observed import observed_by
from heuristics.evidence.too_few import too_few
from heuristics.figures.figures import Figures, figures_of
from heuristics.figures.startup import Startup, find_startup, judged_ns
from heuristics.plan.gains import Replayed
from heuristics.run.observed import Observed
from heuristics.run.repairs import LateRank
from heuristics.run.run import WALL_IDS
from heuristics.walls import judge_walls, replayed_prices
from heuristics.walls.bound import Bound, LargestBucket, find_bound, largest_bucket
from heuristics.walls.price import Unpriced
from heuristics.walls.unproven import unproven
from heuristics.walls.verdict import Verdict, find_verdict
from heuristics.walls.wall import WallJudgement
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing
from traces.sections.run import Run
from traces.sections.tables import WallId


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
    walls: tuple[WallJudgement, ...]
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
    ranks = figures_of(measurements)
    few = too_few(measurements)
    prices = replayed_prices(measurements) if few is None else dict.fromkeys(WALL_IDS, Unpriced(few))
    walls = judge_walls(ranks, prices)
    replayed = tuple(
        Replayed(rank.costs, rank.costs.changes, judged_ns(rank))
        for rank in measurements
        if not isinstance(rank.costs, Missing) and rank.costs.refused is None
    )
    bound = _bound(ranks, walls)
    late = late_rank(together, ranks) if together else None
    return RunEvidence(
        bound=bound,
        largest=largest_bucket(ranks),
        walls=walls,
        verdict=find_verdict(measurements, walls, together),
        observed=_observed(ranks, together, late),
        window_ns=sum(rank.window_ns for rank in replayed),
        replayed=replayed,
        step_ns=_step_ns(measurements),
        startup=find_startup(measurements),
        unproven=unproven(walls, bound),
        late=late,
    )


def _bound(ranks: Sequence[Figures], walls: Sequence[WallJudgement]) -> Bound:
    """The bound; none where the partition is of work of which only the host's part was seen."""
    inside = [wall for wall in walls if wall.id != "host_overhead"]
    if all(wall.outcome == "unmeasurable" and wall.at_most_frac is None for wall in inside):
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
