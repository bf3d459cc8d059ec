"""Advice applied and judged again: cures break nothing new and come to an end, plans take nothing back.

`cures`: of a configuration that rules refuse. `steps`: of a plan; `waiting`: of what it refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from heuristics.findings.defects import defects_of
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.judging.judgement import Judgement, judge_observed
from heuristics.plan.planned import Plan
from heuristics.plan.variants import upgraded
from heuristics.result.configured import Defect
from heuristics.rules.check import broken, check_rules
from heuristics.rules.cures import cure_in
from heuristics.rules.rules import Rule
from heuristics.run.run import Run
from tests.megatron.random_runs import RandomRun, planned_runs

MOST_ROUNDS: Final = 40
LEVERS: Final = (
    *(("fp8", "fp4", "bf16"), ("cuda_graph_impl", "cuda_graph_modules", "cuda_graph_scope")),
    *(("pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size"), ("fp8_param", "fp4")),
    *(("ddp.fp8_param_gather", "fp4"), ("ddp.reuse_grad_buf_for_mxfp8_param_ag", "fp4")),
    (
        *("env.CUDA_DEVICE_MAX_CONNECTIONS", "ddp.use_megatron_fsdp", "tp_comm_overlap"),
        "comm_overlap.overlap_moe_expert_parallel_comm",
    ),
)
"""Knobs that are one choice: to go from a graph of modules to one of the whole step takes nothing back."""


def cures(run: Run) -> Iterator[str]:
    """What a cure breaks, a cure that cures nothing, one that another takes back, a rule without an entry."""
    before = broken(run)
    defects = _defects(run)
    told = {id for one in defects for id in one.of}
    yield from (f"{id} has no entry" for id in before - told)
    for one in defects:
        if not one.set:
            continue
        after = broken(run.changed(one.set))
        if one.id in after:
            yield f"{one.id}: its cure leaves it broken"
        yield from (f"{one.id}: its cure breaks {new}" for new in sorted(after - before))
        for other in after & {*one.of}:
            yield f"{one.id}: its cure is to meet {other} and does not"
    yield from _rounds(run)


def _defects(run: Run) -> tuple[Defect, ...]:
    return tuple(
        one for one in defects_of(run, check_rules(run), (), ()) if one.kind in ("rejected", "fails")
    )


def _rounds(run: Run) -> Iterator[str]:
    """One cure after another: none brings back what an earlier one met."""
    met: set[str] = set()
    for _ in range(MOST_ROUNDS):
        refusing = _refusing(run)
        yield from (f"{one.id} is back after its cure" for one in refusing if one.id in met)
        found = next(((rule, values) for rule in refusing if (values := cure_in(run, rule).set)), None)
        if found is None or found[0].id in met:
            return
        met.add(found[0].id)
        run = run.changed(found[1])
    yield "cures come to no end"


def _refusing(run: Run) -> list[Rule]:
    return [one for one in check_rules(run) if one.level == "error"]


def steps(judgement: Judgement) -> Iterator[str]:
    """Rules that a planned step breaks, where the steps are made that it stands on."""
    before = broken(upgraded(judgement.run, judgement.plan.releases))
    for planned, run in planned_runs(judgement):
        yield from (f"{planned.fix.id} breaks {new}" for new in sorted(broken(run) - before))


def taken_back(one: RandomRun, judgement: Judgement) -> Iterator[str]:
    """Steps of the plan after the first is made that set back what it changed."""
    plan = judgement.plan
    if plan.releases or not plan.fixes:
        return
    changes = plan.fixes[0].change.in_run(judgement.run)
    now = judgement.run.changed(changes)
    configured = one.configured.__class__(now.settings, one.configured.log)
    later = judge_observed(one.evidence, now.given, configured)
    for planned in later.plan.fixes:
        then = later.run.changed(planned.change.in_run(later.run))
        for knob in planned.change.in_run(later.run):
            lever = next((several for several in LEVERS if knob in several), (knob,))
            was, met, back = (_values(run, lever) for run in (judgement.run, later.run, then))
            if knob in changes and back == was != met:
                yield f"{planned.fix.id} sets {knob} back after {plan.fixes[0].fix.id}"


def _values(run: Run, knobs: Iterable[str]) -> tuple[object, ...]:
    return tuple(run.settings.value(knob) for knob in knobs)


def waiting(plan: Plan) -> Iterator[str]:
    """Fixes that wait for each other in a circle, or for one that is set already."""
    waits = {
        one.fix.id: one.unlocked_by
        for one in plan.refused
        if one.kind == "needs" and one.unlocked_by in CATALOGUE
    }
    done = {one.fix.id for one in plan.refused if one.is_set}
    for fix in waits:
        seen, at = [fix], waits[fix]
        while at in waits and at not in seen:
            seen.append(at)
            at = waits[at]
        if at in seen:
            yield f"{' waits for '.join((*seen, at))}"
        elif at in done:
            yield f"{' waits for '.join((*seen, at))}, which is set already"
