"""A run of many ranks, from their summaries alone: who is in it, who makes whom wait, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from traces.missing import Missing
from traces.ranks import parts
from traces.ranks.bubbles import Pipeline, pipeline_of
from traces.ranks.cause import Cause, ProblemKind
from traces.ranks.charge import Separated, charged_to, find_by_votes, lay_by_step, separate
from traces.ranks.clocks import Clocks, HostClock, align, consistent, host_clocks
from traces.ranks.experts import Experts, experts_of
from traces.ranks.figures import RankFigures, figures_of_ranks, medians_of
from traces.ranks.late import UNEVEN, find_late, routing_of
from traces.ranks.mend import Judged, Without, replay_without
from traces.ranks.peers import Bytes, bytes_of
from traces.ranks.problems import Problem
from traces.ranks.side_by_side import device_factors, excess_of, grid_of, groups_alike, slowness_before
from traces.ranks.summary import UNKNOWN, Fingerprint, RankSummary
from traces.ranks.together import put_together
from traces.ranks.waits import NOBODY, measure_links, measure_waits


@dataclass(frozen=True, slots=True)
class LikeGroup:
    """Ranks that do the same work: places in `RunAnalysis.ranks`, and their median step."""

    fingerprint: Fingerprint
    places: tuple[int, ...]
    step_ns: int | None


@dataclass(frozen=True, slots=True)
class Late:
    """Who makes the others wait. `place` is that in `RunAnalysis.ranks`, None where it is not one rank.

    `wait_ns` is what the others waited for it in the steps of the run, all together, and `cost_ns` the late
    rank's own time beyond like ranks in a mean step. `by_step`: of each step the place that was late, where
    that changes. `group` is that of the ranks with more layers, for `PIPELINE_IMBALANCE`.
    """

    cause: Cause
    place: int | None
    rank: int | None
    wait_ns: int
    cost_ns: int
    by_step: tuple[int | None, ...] = ()
    group: int | None = None


@dataclass(frozen=True, slots=True)
class RunAnalysis:
    """All that is known of a run. `ranks` are those used, in order of rank; `late` is `Missing` without one
    clock. `transfer_ns` and `wait_ns` add up all participations in the steps of the run; `wait_by_kind_ns` by
    kind of communication. `world_size_from`: where a world size is from that was not recorded.

    `without`: the run replayed without what makes it late. `separated`: what only several ranks tell of
    communication. `host_clocks`: how to put times of a recording on one clock; none where nothing tells.
    """

    ranks: tuple[RankFigures, ...]
    world_size: int | None
    world_size_from: str | None
    groups: tuple[LikeGroup, ...]
    late: Late | Missing
    clocks: Clocks
    wait_ns: int
    wait_by_kind_ns: Mapping[str, int]
    transfer_ns: int
    instance_count: int
    step_count: int
    imbalance: float | None
    without: Without | Missing
    problems: tuple[Problem, ...]
    pipeline: Pipeline | Missing | None
    experts: Experts | Missing | None
    traffic: Bytes | Missing
    separated: Separated
    host_clocks: tuple[HostClock, ...]
    steps_per_column: int


def analyse_run(summaries: Sequence[RankSummary]) -> RunAnalysis:
    """Analyse a run; the order of the summaries does not matter."""
    return analysis_of(judge(summaries))


def judge(summaries: Sequence[RankSummary]) -> Judged:
    """Match, align, measure and compare."""
    together = put_together(summaries)
    used, matched = together.used, together.matched
    aligned = align(used, matched)
    if aligned.clocks.aligned and not (possible := consistent(matched, aligned)).all():
        aligned, matched = aligned.take(parts.spread(possible, matched.first)), matched.take(possible)
        together = replace(together, matched=matched)
    waits = measure_waits(matched, aligned, all_ranks_seen=together.all_ranks_seen)
    grid = grid_of(used, matched)
    alike = groups_alike(used)
    factor = device_factors(used, alike)
    excess = excess_of(grid, alike)
    routing = routing_of(matched, slowness_before(matched, grid, excess, factor), alike, len(used))
    uneven = routing.of_experts & (routing.imbalance is not None and routing.imbalance >= UNEVEN.value)
    links = None
    if aligned.clocks.aligned:
        links = measure_links(matched, waits, alike, len(used), without=uneven)
    suspicion = find_late(grid, excess, factor, links, routing, alike)
    if not grid.step_count:
        suspicion = find_by_votes(matched, aligned, waits)
    charged = charged_to(matched, waits, grid, suspicion, alike)
    return Judged(together, aligned, waits, grid, alike, factor, excess, links, routing, suspicion, charged)


def analysis_of(judged: Judged) -> RunAnalysis:
    """The figures as they are handed on."""
    together, grid, charged = judged.together, judged.grid, judged.charged
    by_step = lay_by_step(together.matched, judged.waits, judged.charged, grid)
    ranks = figures_of_ranks(judged, by_step)
    return RunAnalysis(
        ranks=ranks,
        world_size=size.ranks if (size := together.world_size) else None,
        world_size_from=size.said if size else None,
        groups=tuple(
            LikeGroup(
                one.fingerprint, one.places, medians_of(grid.length_ns[list(one.places)].reshape(1, -1))[0]
            )
            for one in judged.alike
        ),
        late=_late(judged, ranks),
        clocks=judged.aligned.clocks,
        wait_ns=int(charged.waited_ns.sum()),
        wait_by_kind_ns=charged.by_kind_ns,
        transfer_ns=charged.transfer_ns,
        instance_count=len(together.matched),
        step_count=grid.step_count,
        imbalance=judged.routing.imbalance,
        without=replay_without(judged),
        problems=together.problems,
        pipeline=pipeline_of(together.used, together.matched, judged.waits, grid),
        experts=experts_of(together.used, together.matched, grid, judged.routing, judged.factor),
        traffic=bytes_of(
            together.used,
            together.matched,
            judged.waits,
            judged.charged.counted,
            all_ranks_seen=together.all_ranks_seen,
        ),
        separated=_separated(judged),
        host_clocks=host_clocks(together.used, judged.aligned.clocks),
        steps_per_column=by_step.steps_per_column,
    )


def _separated(judged: Judged) -> Separated:
    together = judged.together
    complete = together.world_size is not None and together.all_ranks_seen
    return separate(together.used, together.matched, judged.waits, judged.charged, all_ranks_seen=complete)


def _late(judged: Judged, ranks: Sequence[RankFigures]) -> Late | Missing:
    if missing := _untold(judged):
        return missing
    one = judged.suspicion
    place = None if one.place == UNKNOWN else one.place
    return Late(
        cause=one.cause,
        place=place,
        rank=None if place is None else ranks[place].rank,
        wait_ns=judged.charged.late_ns,
        cost_ns=round(one.cost_ns),
        by_step=tuple(None if late == UNKNOWN else late for late in one.by_step),
        group=None if one.group == UNKNOWN else one.group,
    )


def _untold(judged: Judged) -> Missing | None:
    """Why nobody can say who is late; None where it can be said."""
    if missing := judged.aligned.clocks.missing:
        return Missing("run.late", missing.reason, missing.cure)
    together = judged.together
    strangers = sum(
        len(one.indices)
        for one in together.problems
        if one.left_out and one.kind is not ProblemKind.DUPLICATE
    )
    if strangers >= len(together.used):
        reason = "the recordings are of several runs, and none of these has most of them"
        return Missing("run.late", reason, "give the recordings of one run")
    waited = judged.waits.wait_ns.any() or not together.all_ranks_seen
    if (judged.waits.last == NOBODY).all() and waited:
        reason = "of every group a rank is missing, and all that are here may have waited for that one"
        return Missing("run.late", reason, "record every rank, or all ranks of some groups")
    if judged.grid.step_count == 1:
        return Missing("run.late", "one step does not show who is always late", "record several steps")
    return None


__all__ = ["Judged", "Late", "LikeGroup", "RankFigures", "RunAnalysis", "analyse_run", "analysis_of", "judge"]
