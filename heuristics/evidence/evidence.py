"""What opinions rest on: walls, verdict and what a run shows, by a trace or by figures that were
given.

A trace of a run that does not fit does not exist, and one that barely fits shows no price. So a log
or the user may say of memory what no step shows. Out of memory comes before any larger wall: what
does not fit cannot be tuned. A run that is only tight has the memory wall where no other stands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from operator import attrgetter
from statistics import median
from typing import Final

from msgspec import structs

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.evidence.observed import observed_by
from heuristics.figures.figures import Ranks, added, figures_of, frac_of
from heuristics.figures.startup import Startup
from heuristics.guides.situation import of_experts_ns
from heuristics.plan.gains import Replayed
from heuristics.result.judged import Bucket, Evidence, Verdict, Wall, Walls
from heuristics.run.repairs import LateRank
from heuristics.run.run import WALL_IDS
from heuristics.walls import judge_walls, replayed_price
from heuristics.walls.bound import Bound, find_bound, largest_bucket, unproven
from heuristics.walls.confidence import with_confidence
from heuristics.walls.costs import costs_of
from heuristics.walls.memory import without_price
from heuristics.walls.price import Unpriced, held
from heuristics.walls.verdict import find_verdict, verdict_of
from heuristics.words import say
from traces.cures import cure
from traces.frozen import frozen
from traces.limits import MOST, NEARLY_ALL, Limit
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.sections.cause import Cause
from traces.sections.run import Run
from traces.sections.tables import WallId
from traces.spelling import counted, spoken
from traces.training_log.log import TrainingLog

KERNELS: Final = Limit(
    16,
    "kernels",
    "ours: fewer, without a step, are a test of something; one layer of experts takes 25 to 40, "
    "and what slows it was right in each of four recordings of others",
)


@frozen
class RunEvidence:
    """A run as it was evidence.

    `window_ns`: the windows of the ranks whose costs are known, together; `replayed`: these ranks'
    costs and the changes found in them, none where nothing was replayed. `step_ns`: the median
    length of the steps used, over all ranks; None where no steps were found. `perturbation_frac`:
    how much longer the profiled step is than a step without the profiler, where that is known.
    `startup`: profiler and start-up time that is left out of the windows, where there is much of
    it. `unproven`: walls whose fixes may help although no gain is proven, and why none is. `late`:
    why ranks wait for each other, by several of them. `idle_frac`: the share of the windows in
    which nothing runs. `grouped_step_ns`: grouped GEMMs of a rank in a mean step, None where none
    ran or no steps were found. `has_unnamed`: much compute is of unknown class.
    """

    bound: Bound
    largest: tuple[Bucket, float] | None
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
    idle_frac: float | None = None
    grouped_step_ns: int | None = None
    has_unnamed: bool = False


def observe(measurements: Sequence[RankMeasurements], together: Run | None) -> RunEvidence:
    """Observe a run by the measurements of all its ranks, at least one; `together`: what several
    show.
    """
    ranks, costs, few = figures_of(measurements), costs_of(measurements), too_few(measurements)
    if few is None and costs.startup is None:
        few = is_cold(measurements)
    prices = {
        wall: Unpriced(few) if few is not None else replayed_price(costs, wall) for wall in WALL_IDS
    }
    walls = judge_walls(ranks, prices)
    replayed, lengths, window_ns, has_unnamed = [], list[int](), 0, False
    for rank in costs.ranks:
        lengths += rank.rank.steps.lengths_ns()
        has_unnamed |= rank.unnamed_ns > 0
        if rank.replays is not None:
            window_ns += rank.start.judged_ns
            replayed.append(
                Replayed(rank.replays, rank.replays.changes, rank.start.judged_ns, rank.place)
            )
    bound, late = _bound(ranks, walls), late_rank(together, ranks) if together else None
    return RunEvidence(
        bound=bound,
        largest=largest_bucket(ranks),
        walls=walls,
        verdict=find_verdict(costs, walls, together),
        observed=_observed(ranks, together, late),
        window_ns=window_ns,
        replayed=tuple(replayed),
        step_ns=round(median(lengths)) if lengths else None,
        startup=costs.startup,
        unproven=unproven(walls, bound),
        late=late,
        idle_frac=frac_of(ranks, "idle_ns"),
        grouped_step_ns=_grouped_step_ns(ranks, len(lengths)),
        has_unnamed=has_unnamed,
    )


def _grouped_step_ns(ranks: Ranks, steps: int) -> int | None:
    """Over all ranks and their `steps`; None where a rank tells nothing by class."""
    grouped_ns = 0
    for rank in ranks:
        if rank.by_class_ns is None:
            return None
        grouped_ns += rank.by_class_ns.get("grouped_gemm", 0)
    if not steps:
        return None
    return grouped_ns // steps or None


def _is_judged(rank: RankMeasurements) -> bool:
    """Whether a rank of few kernels is: its GPU works for most of what is more than a start."""
    starts_ns, window_ns = rank.steps.starting_ns, rank.steps.windows.total_ns
    is_whole = starts_ns is not None and starts_ns <= window_ns
    is_work = is_whole and rank.budget.idle_ns < MOST.value * window_ns
    return is_work or rank.steps.source != "none"


def too_few(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why no wall is judged where each rank is one window of few kernels; a window the user gave is
    judged, and what was recorded of a program from its beginning where that is work.

    A graph replay that was recorded whole counts as one kernel.
    """
    most = max(measurements, key=lambda rank: rank.kernel_count + rank.replay_count)
    is_enough = most.kernel_count + most.replay_count >= KERNELS.value
    if is_enough or any(map(_is_judged, measurements)):
        return None
    held = [(most.kernel_count, "kernel"), (most.replay_count, "graph replay")]
    named = ", ".join(counted(count, what) for count, what in held if count)
    return Missing(
        "walls", say("evidence.too-few", work=named), cure("whole_steps", measurements[0].kind)
    )


def is_cold(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why no wall is judged where most of the windows are first runs of what hardly comes again."""
    cold_ns = window_ns = 0
    for rank in measurements:
        cold_ns += rank.cold_ns
        window_ns += rank.budget.window_ns
    if cold_ns <= MOST.value * window_ns:
        return None
    return Missing(
        "walls",
        say("evidence.cold", part_frac=cold_ns / window_ns),
        cure("startup", measurements[0].kind),
    )


def _bound(ranks: Ranks, walls: Walls) -> Bound:
    """The bound; none where the partition is of work of which only the host's part was seen."""
    for wall in walls:
        is_told = wall.outcome != "unmeasurable" or known(wall.at_most_frac) is not None
        if is_told and wall.id != "host_overhead":
            return find_bound(ranks)
    first = walls[0]
    return Bound(None, first.missing[0], first.cure)


def _observed(ranks: Ranks, together: Run | None, late: LateRank | None) -> Observed:
    """What the ranks show; waiting by several of them, where they separate it, not by what is like
    it.
    """
    seen = observed_by(ranks)
    waiting = expert_waiting_frac(together) if together else None
    return replace(
        seen,
        late_cause=late.cause if late else seen.late_cause,
        a2a_waiting_frac=seen.a2a_waiting_frac if waiting is None else waiting,
    )


def late_rank(together: Run, ranks: Ranks) -> LateRank | None:
    """What several ranks found; None where nobody is late, or nobody can tell who."""
    late, without = known(together.late), known(together.without)
    if late is None or late.cause is Cause.NONE:
        return None
    exposed_ns = added(map(attrgetter("exposed_by_kind_ns"), ranks))
    # an overlap hides it; all others wait for a rank to arrive
    waits_ns = {} if late.cause is Cause.SLOW_LINK else together.late_exposed_by_kind_ns
    return LateRank(late.cause, without.saved_frac if without else None, waits_ns, exposed_ns)


def expert_waiting_frac(together: Run) -> float | None:
    waits_ns = of_experts_ns(together.wait_by_kind_ns)
    both_ns = waits_ns + of_experts_ns(together.transfer_by_kind_ns)
    if both_ns and together.clocks.aligned:
        return waits_ns / both_ns
    return None


def without_waits(wall: Wall, late: LateRank | None) -> Wall:
    """The communication wall as fixes of communication can act on it: less the waiting for a late
    rank.

    A kind costs at most what is exposed of it beside that waiting, whatever the replay of one rank
    says.
    """
    whole_ns, frac = known(wall.cost_ns), known(wall.cost_frac)
    # the waiting for a late rank is paid in communication alone
    if wall.id != "communication" or not whole_ns or late is None or not late.waits_ns:
        return wall
    exposed_ns, waits_ns = late.exposed_ns or {}, late.waits_ns
    rest_ns = {kind: max(0, ns - waits_ns.get(kind, 0)) for kind, ns in exposed_ns.items()}
    kinds = known(wall.cost_by_kind_ns) or {}
    cost_ns = min(whole_ns, sum(rest_ns.values()))
    return structs.replace(
        wall,
        cost_ns=cost_ns,
        cost_frac=None if frac is None else frac * cost_ns / whole_ns,
        cost_by_kind_ns={kind: min(ns, rest_ns.get(kind, ns)) for kind, ns in kinds.items()},
    )


def with_fit(evidence: RunEvidence, given: Given, log: TrainingLog | None = None) -> RunEvidence:
    """The run with its memory wall as log, options and symptoms tell it; as it was where none
    does.
    """
    seen = evidence.observed
    stages = [error.stage for error in log.own_out_of_memory] if log else []
    if seen.out_of_memory is not None:
        stages.append(seen.out_of_memory)
    if stages:
        where = "" if stages[0] == "unknown" else f" in {stages[0].replace('_', ' ')}"
        return _stands(evidence, say("evidence.ran-out", where=where), first=True)
    if given.memory_tight:
        return _stands(evidence, say("evidence.given-tight"), first=False)
    peaks = [report.peak_allocated_bytes or 0 for report in log.memory] if log else []
    used = max(peaks, default=0) / (seen.memory_bytes or 1)
    if seen.memory_bytes and used >= NEARLY_ALL.value and given.memory_tight is None:
        peak = held("peak_allocated_frac", used, NEARLY_ALL, unit="fraction of the capacity")
        return _stands(evidence, say("evidence.near-capacity"), False, (peak,))
    return evidence


def _stands(
    evidence: RunEvidence, why: str, first: bool, more: tuple[Evidence, ...] = ()
) -> RunEvidence:
    walls = tuple(_finding(wall, more) if wall.id == "memory" else wall for wall in evidence.walls)
    return replace(evidence, walls=walls, verdict=_verdict(evidence, walls, why, first))


def _finding(wall: Wall, more: tuple[Evidence, ...]) -> Wall:
    finding = structs.replace(wall, evidence=(*wall.evidence, *more), missing=(), cure="")
    if wall.outcome == "finding" and known(wall.cost_frac) is not None:
        return finding
    return without_price(finding)


def _verdict(evidence: RunEvidence, walls: Walls, why: str, first: bool) -> Verdict:
    """The old verdict where it still stands, else memory's."""
    verdict = verdict_of(walls, out_of_memory=first or evidence.verdict.does_not_fit)
    if verdict.wall != "memory":
        return structs.replace(evidence.verdict, because=(*evidence.verdict.because, why))
    if evidence.verdict.wall == "memory":
        because, short = (why, *evidence.verdict.because), verdict.does_not_fit
        return structs.replace(evidence.verdict, because=because, does_not_fit=short)
    before: WallId | None = known(evidence.verdict.wall)
    costs = [] if before is None else [say("evidence.when-room", wall=spoken(before))]
    return with_confidence(
        structs.replace(verdict, because=(why, *costs), runner_up=before), (), "high"
    )
