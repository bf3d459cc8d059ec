"""A run of many ranks, judged: who makes whom wait, why, and what the run saves without that."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from heuristics.config.logic import each_once
from heuristics.late.beside import COST, Places, is_node
from heuristics.late.judge import Tried, judged_by_replay, unmatched
from heuristics.late.votes import judged_by_votes
from traces.arrays import BoolArray, FloatArray, distinct, summed, whole
from traces.frozen import frozen
from traces.missing import Missing, gap, or_gap, unless
from traces.ranks.one_run.align import fits_of
from traces.ranks.one_run.problems import RecordingProblem
from traces.ranks.replay.run import MeasuredRun, measure_run
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import UNKNOWN, Summaries
from traces.ranks.waiting.arrivals import arrives_last
from traces.ranks.waiting.bubbles import pipeline_of
from traces.ranks.waiting.charge import (
    ByStep,
    Charged,
    by_kind,
    charge,
    complete_frac,
    exposed_ns,
    lay_by_step,
)
from traces.ranks.waiting.experts import experts_of
from traces.ranks.waiting.peers import bytes_of
from traces.ranks.waiting.side_by_side import (
    NO_STEPS,
    Alike,
    Grid,
    means,
    middles,
    numbers_of,
    rounded,
)
from traces.ranks.waiting.waits import NOBODY
from traces.sections.cause import Cause, ProblemKind
from traces.sections.run import (
    ArrivesLast,
    Clocks,
    Late,
    LikeRanks,
    RankInRun,
    Run,
    RunProblem,
    RunWithout,
)
from traces.sections.section import copied
from traces.spelling import percent


@frozen
class JudgedRun:
    """A run, what makes ranks late in it, None where nothing does, and which instances' waiting is
    of that, shape (n,).
    """

    measured: MeasuredRun
    found: Tried | None
    charged: Charged
    of_cause: BoolArray


def judge(summaries: Summaries) -> JudgedRun:
    """Measure, and judge; the order of the summaries does not matter."""
    run = measure_run(summaries)
    cause = judged_by_replay(run) if run.grid.step_count else judged_by_votes(run)
    charged = charge(run.matched, run.waits, run.grid, run.step)
    of_cause = charged.counted & (charged.last != UNKNOWN)
    if cause is None:
        of_cause[:] = False
    elif cause.edit.places:
        of_cause &= np.isin(charged.last, cause.edit.places)
    elif cause.edit.cause is Cause.PIPELINE_IMBALANCE:
        of_cause &= np.isin(charged.last, run.alike[cause.edit.group].places)
    return JudgedRun(run, cause, charged, of_cause)


def run_of(judged: JudgedRun, names: Sequence[str]) -> Run:
    """The run as its section; `names`: of the recordings, as their summaries were given."""
    run, charged, late = judged.measured, judged.charged, _late(judged)
    together, grid, waits, clocks = run.together, run.grid, run.waits, run.aligned.clocks
    by_step, size = lay_by_step(together.matched, waits, charged, grid), together.world_size
    used, matched, seen = together.used, together.matched, together.all_ranks_seen
    counted = parts.spread(charged.counted, matched.first)
    late_exposed_ns, all_exposed_ns = _late_exposed_ns(judged), exposed_ns(used, matched)
    exposed_frac = None
    if all_exposed_ns:
        exposed_frac = min(1.0, sum(late_exposed_ns.values()) / all_exposed_ns)
    waits_ns = by_kind(matched.kind[counted], waits.wait_ns[counted])
    moving_ns = by_kind(matched.kind[counted], waits.moving_ns[counted])
    traffic = bytes_of(used, matched, waits, charged.counted, all_ranks_seen=seen)
    return Run(
        ranks_seen=len(used),
        world_size=size.ranks
        if size
        else gap(
            "no recording names the number of ranks",
            "give --world-size N, or the run's --config or --log",
        ),
        world_size_from=size.said if size else None,
        groups=tuple(_like(like, grid) for like in run.alike),
        late=late if isinstance(late, Missing) else replace(late, exposed_frac=exposed_frac),
        clocks=Clocks(
            clocks.aligned, unless(clocks.missing, clocks.residual_ns), tuple(fits_of(used, clocks))
        ),
        ranks=figures_of_ranks(
            judged, by_step, late, traffic if isinstance(traffic, Missing) else traffic.by_rank
        ),
        wait_ns=summed(charged.waited_ns),
        wait_by_kind_ns=dict(sorted(waits_ns.items(), key=lambda item: -item[1])),
        transfer_ns=summed(waits.moving_ns[counted]),
        collectives=len(matched),
        steps=grid.step_count,
        imbalance=run.routing.imbalance,
        without=_without(judged),
        problems=tuple(_problem(problem, names) for problem in together.problems),
        pipeline=pipeline_of(used, matched, waits, grid),
        experts=experts_of(used, matched, grid, run.routing, run.factor),
        traffic=traffic if isinstance(traffic, Missing) else traffic.traffic,
        complete_frac=or_gap(
            complete_frac(matched, all_ranks_seen=seen and size is not None),
            gap("no communication on the GPU was recorded", "record ranks that communicate"),
        ),
        late_exposed_by_kind_ns=late_exposed_ns,
        transfer_by_kind_ns=moving_ns,
        steps_per_column=by_step.steps_per_column,
        arrives_last=_last(judged),
    )


def _late_exposed_ns(judged: JudgedRun) -> dict[str, int]:
    """By kind of communication, waiting that is of the cause while surely no compute ran."""
    run, matched = judged.measured, judged.measured.matched
    lasts_ns = matched.length_ns
    hidden_ns = lasts_ns - np.clip(matched.exposed_ns, 0, lasts_ns)
    late = parts.spread(judged.of_cause, matched.first)
    return by_kind(matched.kind[late], np.maximum(0, run.waits.wait_ns - hidden_ns)[late])


def _last(judged: JudgedRun) -> ArrivesLast | Missing | None:
    """Who arrives last, where clocks or steps do not show who is late, and why; else None."""
    if _untold(judged) is None:
        return None
    run, used = judged.measured, judged.measured.together.used
    matched, seen = run.matched, run.together.all_ranks_seen
    arrival = arrives_last(used, matched, run.waits, run.grid.step_count, all_ranks_seen=seen)
    if isinstance(arrival, Missing):
        return arrival
    return replace(arrival, host=_host(run, arrival.indices))


def _like(like: Alike, grid: Grid) -> LikeRanks:
    return copied(
        LikeRanks,
        like.fingerprint,
        ranks=like.places,
        attention_kernels=like.fingerprint.attention,
        router_kernels=like.fingerprint.routers,
        step_ns=or_gap(
            rounded(middles(grid.length_ns[list(like.places)].reshape(1, -1)))[0], NO_STEPS
        ),
    )


_NO_KIND: Final = gap("no sizes of this rank's collectives are recorded", "as for traffic")


def figures_of_ranks(
    judged: JudgedRun,
    by_step: ByStep,
    late: Late | Missing,
    given: Sequence[Mapping[str, int]] | Missing,
) -> tuple[RankInRun, ...]:
    """The figures of the ranks used, in their order. `given`: bytes that each gives, by kind.

    Times are of a mean step of the run: waiting in collectives for others, and what others waited
    for this one. `device_factor`: how many times as long its kernels take as those of ranks like
    it. `expert_ns`: its grouped GEMMs.
    """
    run, charged = judged.measured, judged.charged
    grid, clocks = run.grid, run.aligned.clocks
    group = numbers_of(run.alike, len(run.nodes)).tolist()
    steps, known = max(1, grid.step_count), clocks.missing is None
    unknown = (
        late
        if isinstance(late, Missing)
        else gap("clocks could not be aligned", "record more steps")
    )
    caused_ns, by_step_caused_ns = (charged.caused_ns // steps).tolist(), _whole(by_step.caused_ns)
    step_ns, waited_ns = rounded(middles(grid.length_ns)), (charged.waited_ns // steps).tolist()
    factor, expert_ns = run.factor.tolist(), rounded(means(grid.grouped_ns))
    lengths_ns, by_step_waited_ns = _whole(by_step.length_ns), _whole(by_step.waited_ns)
    return tuple(
        RankInRun(
            index=place,
            rank=summary.identity.rank,
            group=group[place],
            step_ns=or_gap(step_ns[place], NO_STEPS),
            waited_ns=waited_ns[place],
            caused_ns=caused_ns[place] if known else unknown,
            device_factor=None if math.isnan(factor[place]) else factor[place],
            expert_ns=or_gap(expert_ns[place], NO_STEPS),
            given_bytes=given if isinstance(given, Missing) else given[place] or _NO_KIND,
            step_lengths_ns=lengths_ns[place],
            waited_by_step_ns=by_step_waited_ns[place],
            caused_by_step_ns=by_step_caused_ns[place] if known else unknown,
        )
        for place, summary in enumerate(run.together.used)
    )


def _whole(table: FloatArray) -> list[tuple[int | None, ...]]:
    untold = np.isnan(table)
    rows = whole(np.where(untold, 0.0, table)).astype(object)
    rows[untold] = None
    return list(map(tuple, rows.tolist()))


def _problem(problem: RecordingProblem, names: Sequence[str]) -> RunProblem:
    traces = each_once(names[index] for index in problem.indices)
    return RunProblem(problem.kind, traces, problem.reason, problem.left_out, problem.ranks)


_NOBODY_LATE: Final = Late(None, None, Cause.NONE, 0, 0, (), None, "")


def _late(judged: JudgedRun) -> Late | Missing:
    """`wait_ns` is what the others waited for it in the steps of the run, all together, and
    `cost_ns` the late rank's own time beyond like ranks in a mean step. `by_step`: of each step the
    place that was late, where that changes. `group` is that of the ranks with more layers, for
    `PIPELINE_IMBALANCE`.
    """
    if (missing := _untold(judged)) is not None:
        return missing
    tried = judged.found
    if tried is None:
        return _NOBODY_LATE
    edit, used = tried.edit, judged.measured.together.used
    place = edit.places[0] if len(edit.places) == 1 else None
    return replace(
        _NOBODY_LATE,
        index=place,
        rank=None if place is None else used[place].identity.rank,
        indices=edit.places,
        host=_host(judged.measured, edit.places),
        cause=edit.cause,
        wait_ns=summed(judged.charged.wait_ns[judged.of_cause]),
        cost_ns=round(tried.cost_ns),
        by_step=tuple(None if late == UNKNOWN else late for late in edit.by_step),
        group=None if edit.group == UNKNOWN else edit.group,
    )


def _without(judged: JudgedRun) -> RunWithout | Missing:
    """The run replayed without the cause; `Missing` where there is none, or nothing to replay."""
    run, tried = judged.measured, judged.found
    if (missing := run.aligned.clocks.missing) is not None:
        return missing
    if not len(run.matched) or not run.grid.step_count:
        reason = "the ranks share no step with matched collectives, which is what is replayed"
        return gap(reason, "record whole steps of all ranks at the same time")
    if tried is None:
        reason = "no rank makes the others late, so there is nothing to take away"
        return gap(reason, "none is needed")
    if (replay := tried.replayed) is not None:
        return RunWithout(replay.step_ns, replay.without_ns, min(1.0, max(0.0, replay.saved_frac)))
    missed = unmatched(run)
    reason = "the recorded order of collectives contradicts itself, so the run cannot be replayed"
    if missed >= COST.value:
        reason = (
            f"{percent(missed)} of the collectives were not matched, and the way of the delay runs "
            "there"
        )
    return gap(reason, "record NCCL's ranges, or the process groups beside kernels")


def _host(run: MeasuredRun, places: Places) -> str | None:
    """The node whose ranks these are, all of them and no other, counted by the devices of the
    ranks.
    """
    if not is_node(run, places):
        return None
    return f"node {distinct(run.nodes).tolist().index(run.nodes[places[0]])}"


def _untold(judged: JudgedRun) -> Missing | None:
    """Why nobody can say who is late; None where it can be said."""
    run, together = judged.measured, judged.measured.together
    if (missing := run.aligned.clocks.missing) is not None:
        return missing
    strangers = sum(
        len(problem.indices)
        for problem in together.problems
        if problem.left_out and problem.kind is not ProblemKind.DUPLICATE
    )
    if strangers >= len(together.used):
        reason = "the recordings are of several runs, and none of these has most of them"
        return gap(reason, "give the recordings of one run")
    waited = run.waits.wait_ns.any() or not together.all_ranks_seen
    if (run.waits.last == NOBODY).all() and waited:
        reason = (
            "of every group a rank is missing, and all that are here may have waited for that one"
        )
        return gap(reason, "record every rank, or all ranks of some groups")
    if run.grid.step_count == 1:
        return gap("one step does not show who is always late", "record several steps")
    return None
