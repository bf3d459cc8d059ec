"""A run of many ranks, from their summaries alone: who is in it, who makes whom wait, and why."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from typing import Final

import numpy as np
from msgspec.structs import replace

from traces.arrays import FloatArray
from traces.missing import Missing, gap, or_gap, unless
from traces.ranks import parts
from traces.ranks.arrivals import arrives_last
from traces.ranks.bubbles import pipeline_of
from traces.ranks.chains import chains_of, roles_of
from traces.ranks.charge import ByStep, charged_to, find_by_votes, lay_by_step, separate
from traces.ranks.clocks import agreed, align, consistent, fits_of
from traces.ranks.experts import experts_of
from traces.ranks.first_steps import without_warm_ups
from traces.ranks.group_links import slow_groups
from traces.ranks.late import LINK, find_late
from traces.ranks.mend import Judged
from traces.ranks.nodes import across, nodes_of, whole_node
from traces.ranks.pauses import Held, by_sum, pauses_of
from traces.ranks.peers import bytes_of
from traces.ranks.problems import Problem
from traces.ranks.routing import UNEVEN, routing_of
from traces.ranks.side_by_side import (
    NO_STEPS,
    Alike,
    Grid,
    device_factors,
    excess_of,
    grid_of,
    groups_alike,
    means_of,
    medians_of,
    slowness_before,
    step_of,
)
from traces.ranks.summary import UNKNOWN, RankSummary
from traces.ranks.together import put_together
from traces.ranks.turns import counted_from_one_step
from traces.ranks.waits import NOBODY, measure_links, measure_waits
from traces.ranks.without import replay_without
from traces.sections.cause import ProblemKind
from traces.sections.run import ArrivesLast, Clocks, Late, LikeRanks, RankInRun, Run, RunProblem

_NO_WORLD: Final = gap(
    "no recording names the number of ranks", "give --world-size N, or the run's --config or --log"
)
_NONE_KNOWN: Final = gap("no communication was recorded", "record ranks that communicate")


def analyse_run(summaries: Sequence[RankSummary]) -> Run:
    """Analyse a run; the order of the summaries does not matter. What repairs it is for others to say."""
    return run_of(judge(summaries), [one.identity.trace for one in summaries])


def judge(summaries: Sequence[RankSummary]) -> Judged:
    """Match, align, measure and compare."""
    together = put_together(without_warm_ups(summaries))
    used, matched = together.used, together.matched
    aligned = align(used, matched)
    if aligned.clocks.aligned and not (possible := consistent(matched, aligned)).all():
        aligned = agreed(used, matched, aligned, possible)
        rows, matched = parts.spread(possible, matched.first), matched.take(possible)
        aligned = changed(aligned, start_ns=aligned.start_ns[rows], end_ns=aligned.end_ns[rows])
        together = changed(together, matched=matched)
    waits = measure_waits(matched, aligned, all_ranks_seen=together.all_ranks_seen)
    grid = grid_of(used, matched)
    step = step_of(matched, grid)
    matched = counted_from_one_step(matched, grid, step)
    together = changed(together, matched=matched)
    alike = groups_alike(used)
    factor = device_factors(used, alike)
    excess = excess_of(grid, alike)
    routing = routing_of(matched, slowness_before(matched, grid, excess, factor), alike, len(used))
    uneven = routing.of_experts & (routing.imbalance is not None and routing.imbalance >= UNEVEN.value)
    links, groups, nodes = None, None, nodes_of(used)
    if aligned.clocks.aligned:
        links = measure_links(matched, waits, alike, len(used), without=uneven)
        rails = np.array([one.identity.device for one in used])
        groups = slow_groups(matched, waits, aligned.end_ns, LINK.value, nodes, rails, without=uneven)
    suspicion = find_late(grid, excess, factor, links, groups, routing, alike)
    beside = across(used, grid, alike, nodes)
    suspicion = whole_node(suspicion, beside, grid, links)
    role = roles_of(matched, alike, len(used), step)
    chains = chains_of(matched, aligned, role)
    pause_ns = pauses_of(matched, chains, role, step)
    suspicion = by_sum(suspicion, pause_ns, Held(used, grid, matched, aligned, chains, step))
    if not grid.step_count:
        suspicion = find_by_votes(matched, aligned, waits)
    charged = charged_to(matched, waits, grid, step, suspicion, alike)
    return Judged(
        together,
        aligned,
        waits,
        grid,
        alike,
        factor,
        excess,
        links,
        routing,
        suspicion,
        charged,
        pause_ns,
        chains,
        role,
    )


def run_of(judged: Judged, names: Sequence[str]) -> Run:
    """The run as its section; `names`: of the recordings, as their summaries were given."""
    together, grid, charged = judged.together, judged.grid, judged.charged
    by_step = lay_by_step(together.matched, judged.waits, charged, grid)
    late, size, clocks, waits = _late(judged), together.world_size, judged.aligned.clocks, judged.waits
    used, matched, seen = together.used, together.matched, together.all_ranks_seen
    separated = separate(used, matched, waits, charged, all_ranks_seen=seen and size is not None)
    waiting_ns = sum(separated.late_exposed_ns.values())
    exposed_frac = min(1.0, waiting_ns / separated.exposed_ns) if separated.exposed_ns else None
    traffic = bytes_of(used, matched, waits, charged.counted, all_ranks_seen=seen)
    return Run(
        ranks_seen=len(used),
        world_size=size.ranks if size else _NO_WORLD,
        world_size_from=size.said if size else None,
        groups=tuple(_like(one, grid) for one in judged.alike),
        late=late if isinstance(late, Missing) else replace(late, exposed_frac=exposed_frac),
        clocks=Clocks(
            clocks.aligned, unless(clocks.missing, clocks.residual_ns), tuple(fits_of(used, clocks))
        ),
        ranks=figures_of_ranks(
            judged, by_step, late, traffic if isinstance(traffic, Missing) else traffic.by_rank
        ),
        wait_ns=int(charged.waited_ns.sum()),
        wait_by_kind_ns=charged.by_kind_ns,
        transfer_ns=charged.transfer_ns,
        collectives=len(matched),
        steps=grid.step_count,
        imbalance=judged.routing.imbalance,
        without=replay_without(judged),
        problems=tuple(_problem(one, names) for one in together.problems),
        pipeline=pipeline_of(used, matched, waits, grid),
        experts=experts_of(used, matched, grid, judged.routing, judged.factor),
        traffic=traffic if isinstance(traffic, Missing) else traffic.traffic,
        complete_frac=_NONE_KNOWN if separated.complete_frac is None else separated.complete_frac,
        late_exposed_by_kind_ns=separated.late_exposed_ns,
        transfer_by_kind_ns=separated.moving_ns,
        steps_per_column=by_step.steps_per_column,
        arrives_last=_last(judged),
    )


def _last(judged: Judged) -> ArrivesLast | Missing | None:
    """Who arrives last, where clocks or steps do not show who is late, and why; else None."""
    if _untold(judged) is None:
        return None
    together = judged.together
    seen = together.all_ranks_seen
    found = arrives_last(
        together.used, together.matched, judged.waits, judged.grid.step_count, all_ranks_seen=seen
    )
    return found if isinstance(found, Missing) else replace(found, host=_host(judged, found.indices))


def _like(one: Alike, grid: Grid) -> LikeRanks:
    return LikeRanks(
        ranks=one.places,
        attention_kernels=one.fingerprint.attention,
        router_kernels=one.fingerprint.routers,
        has_experts=one.fingerprint.has_experts,
        has_embedding=one.fingerprint.has_embedding,
        has_loss=one.fingerprint.has_loss,
        step_ns=or_gap(medians_of(grid.length_ns[list(one.places)].reshape(1, -1))[0], NO_STEPS),
    )


_NO_KIND: Final = gap("no sizes of this rank's collectives are recorded", "as for traffic")


def figures_of_ranks(
    judged: Judged, by_step: ByStep, late: Late | Missing, given: Sequence[Mapping[str, int]] | Missing
) -> tuple[RankInRun, ...]:
    """The figures of the ranks used, in their order. `given`: bytes that each gives, by kind.

    Times are of a mean step of the run: waiting in collectives for others, and what others waited for this
    one. `device_factor`: how many times as long its kernels take as those of ranks like it. `expert_ns`: its
    grouped GEMMs.
    """
    together, grid, charged = judged.together, judged.grid, judged.charged
    group_of = {place: number for number, group in enumerate(judged.alike) for place in group.places}
    steps, known = max(1, grid.step_count), judged.aligned.clocks.aligned
    unknown = late if isinstance(late, Missing) else gap("clocks could not be aligned", "record more steps")
    caused_ns, by_step_caused_ns = (charged.caused_ns // steps).tolist(), _whole(by_step.caused_ns)
    step_ns, waited_ns = medians_of(grid.length_ns), (charged.waited_ns // steps).tolist()
    factor, expert_ns = judged.factor.tolist(), means_of(grid.grouped_ns)
    lengths_ns, by_step_waited_ns = _whole(by_step.length_ns), _whole(by_step.waited_ns)
    return tuple(
        RankInRun(
            index=place,
            rank=summary.identity.rank,
            group=group_of[place],
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
        for place, summary in enumerate(together.used)
    )


def _whole(table: FloatArray) -> list[tuple[int | None, ...]]:
    unknown = np.isnan(table)
    whole = np.rint(np.where(unknown, 0.0, table)).astype(np.int64).astype(object)
    whole[unknown] = None
    return list(map(tuple, whole.tolist()))


def _problem(one: Problem, names: Sequence[str]) -> RunProblem:
    traces = tuple(dict.fromkeys(names[index] for index in one.indices))
    return RunProblem(one.kind, traces, one.reason, one.left_out, one.ranks)


def _late(judged: Judged) -> Late | Missing:
    """`wait_ns` is what the others waited for it in the steps of the run, all together, and `cost_ns` the
    late rank's own time beyond like ranks in a mean step. `by_step`: of each step the place that was late,
    where that changes. `group` is that of the ranks with more layers, for `PIPELINE_IMBALANCE`.
    """
    if (missing := _untold(judged)) is not None:
        return missing
    one = judged.suspicion
    place = None if one.place == UNKNOWN else one.place
    return Late(
        index=place,
        rank=None if place is None else judged.together.used[place].identity.rank,
        indices=one.places,
        host=_host(judged, one.places),
        cause=one.cause,
        wait_ns=judged.charged.late_ns,
        cost_ns=round(one.cost_ns),
        by_step=tuple(None if late == UNKNOWN else late for late in one.by_step),
        group=None if one.group == UNKNOWN else one.group,
        repair="",
    )


def _host(judged: Judged, places: Sequence[int]) -> str | None:
    """The node whose ranks these are, all of them and no other, counted by the devices of the ranks."""
    used = judged.together.used
    ranks = [one.identity.rank for one in used]
    if len(places) < 2 or None in ranks:
        return None
    begins = nodes_of(used).tolist()
    mine = {begins[place] for place in places}
    whole = len(mine) == 1 and sum(begin in mine for begin in begins) == len(places)
    return f"node {sorted({*begins}).index(*mine)}" if whole and len({*begins}) > 1 else None


def _untold(judged: Judged) -> Missing | None:
    """Why nobody can say who is late; None where it can be said."""
    if (missing := judged.aligned.clocks.missing) is not None:
        return missing
    together = judged.together
    strangers = sum(
        len(one.indices)
        for one in together.problems
        if one.left_out and one.kind is not ProblemKind.DUPLICATE
    )
    if strangers >= len(together.used):
        reason = "the recordings are of several runs, and none of these has most of them"
        return gap(reason, "give the recordings of one run")
    waited = judged.waits.wait_ns.any() or not together.all_ranks_seen
    if (judged.waits.last == NOBODY).all() and waited:
        reason = "of every group a rank is missing, and all that are here may have waited for that one"
        return gap(reason, "record every rank, or all ranks of some groups")
    if judged.grid.step_count == 1:
        return gap("one step does not show who is always late", "record several steps")
    return None
