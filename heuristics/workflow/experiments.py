"""A plan as experiments: the baseline first, then one variable at a time, and the whole winner
last.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Final

from msgspec.structs import replace

from heuristics.config.features import GRAPH_MODULES
from heuristics.fixes.fix import Variable
from heuristics.plan.planned import Plan, Planned
from heuristics.result.configured import Experiment, Experiments
from heuristics.rules.check import errors
from heuristics.run.run import WALL_IDS, Run
from heuristics.words import say
from traces.limits import Limit
from traces.sections.tables import WallId
from traces.spelling import spoken
from traces.texts import Texts

STEPS: Final = Limit(
    50,
    "unprofiled steps",
    "Megatron-Bridge, docs/training/moe-optimization.md, Phase 5: the best one runs at least 50 "
    "steps",
)
_OF_EXPERTS: Final = ("routing mode", "dispatcher")
"""What only a run with experts can hold fixed."""
MEASURE: Final = (
    say("workflow.measure-step"),
    say("workflow.measure-throughput"),
    say("workflow.measure-memory"),
    say("workflow.measure-loss"),
)


def plan_of_experiments(run: Run, plan: Plan) -> Experiments:
    """Turn a plan into experiments in its order; without fixes, the baseline and the levers."""
    wall = plan.fixes[0].fix.wall if plan.fixes else None
    of_wall, of_others = list[Planned](), list[Planned]()
    for planned in plan.fixes:
        (of_wall if planned.fix.wall == wall else of_others).append(planned)
    same = tuple(_experiments(run, of_wall))
    later = tuple(_experiments(run, (*of_others, *plan.levers)))
    title = say("workflow.baseline-that-fits" if run.does_not_fit else "workflow.baseline")
    baseline = Experiment(
        say("workflow.baseline-corrected") if _refused_knobs(run) else title,
        "",
        "nothing",
        held_fixed(run),
        MEASURE,
        STEPS.whole,
        say("workflow.next-change" if wall else "workflow.next-levers"),
    )
    winner = Experiment(
        say("workflow.winner"),
        "",
        say("workflow.winner-varies"),
        held_fixed(run),
        (*MEASURE, say("workflow.measure-ran")),
        STEPS.whole,
        say("workflow.next-wall"),
    )
    last = (winner,) if same or later else ()
    return Experiments((baseline, *same[:1]), same[1:], (*later, *last))


def held_fixed(run: Run, varied: Collection[Variable] = ()) -> Texts:
    """What must be the same on both sides, with its value where known; without what is varied.

    Source: Megatron-Bridge, skill perf-moe-dispatcher-selection, pitfalls 1 and 4.
    """
    held = {
        "routing mode": run.tells("routing_now"),
        "parallel layout": run.tells("layout_now"),
        "CUDA graphs": _graphs(run),
        "dispatcher": run.config.configured_or_seen_dispatcher or "",
        "precision": "" if {"fp8", "fp4"} & _refused_knobs(run) else run.precision or "",
        "recompute": "",
        "batch shape": "",
        "container and versions": "",
    }
    without = {*varied, *(_OF_EXPERTS if run.active.moe is False else ())}
    return tuple(
        f"{name} ({now})" if now else name for name, now in held.items() if name not in without
    )


def _refused_knobs(run: Run) -> set[str]:
    return set(chain.from_iterable(rule.knobs for rule in errors(run)))


def _graphs(run: Run) -> str:
    if run.config.full_iteration:
        return "full_iteration"
    impl, held = run.config.graph_impl, run.config.graph_parts or ()
    if impl not in ("none", "local", "transformer_engine"):
        return ""
    return " ".join((impl, *(module for module in held if module in GRAPH_MODULES)))


def _experiments(run: Run, steps: Iterable[Planned]) -> Iterator[Experiment]:
    """One experiment of each, or one for each arm where no guide names a winner."""
    for planned in steps:
        fix = planned.fix
        then, shared = _after(run, fix.wall), ", ".join(planned.shares_with)
        made = Experiment(
            fix.title,
            fix.id,
            " and ".join(fix.varies) or f"{fix.id} alone",
            held_fixed(run, fix.varies),
            (*MEASURE, fix.verify),
            STEPS.whole,
            say("workflow.keep-of-shared", after=then, others=shared)
            if shared
            else say("workflow.keep", after=then),
        )
        arms = tuple(fix.arms(run))
        if not arms:
            yield made
        for arm in arms:
            after = say("workflow.compare-arms", arms=" and ".join(arms), then=made.next)
            yield replace(made, title=f"{made.title}: {arm}", next=after)


def _after(run: Run, wall: WallId) -> str:
    """The largest other wall by what it costs today; without costs, the workflow's order."""
    costs = {**run.total_frac, wall: 0.0}
    largest = max(costs, key=costs.__getitem__)
    if costs[largest] > 0:
        return say("workflow.largest-next", wall=spoken(largest), cost_frac=costs[largest])
    following = WALL_IDS[WALL_IDS.index(wall) + 1 :]
    if following:
        return say("workflow.usual-next", wall=spoken(following[0]))
    return say("workflow.no-larger")
