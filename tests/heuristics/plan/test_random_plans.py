"""Plans of whole, legal configurations drawn at random: nothing in them is refused, whatever the symptoms.

What megatron-core itself says of the same runs is in tests/megatron/test_random_plans.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Final

import pytest
from hypothesis import HealthCheck
from hypothesis import given as drawn
from hypothesis import settings as trials

from heuristics.judging.judgement import Judgement, judge_observed
from heuristics.plan.planned import Planned
from heuristics.plan.variants import upgraded
from heuristics.rules.check import check_rules
from heuristics.run.run import Run
from tests.megatron.random_runs import RandomRun, planned_runs, random_run, runs, seeds
from traces.settings.effective import recipe
from traces.settings.knobs import knobs, known_in
from traces.settings.settings import Framework, Value

RUNS: Final = 150
PLAIN_RUNS: Final = 50
SEEDS: Final = 80
FRAMEWORKS: Final[tuple[Framework, Framework]] = ("megatron_lm", "megatron_bridge")
FORMATS: Final = ("fp8", "fp8_recipe", "fp4")
BACKEND: Final = "moe_flex_dispatcher_backend"


def judged(one: RandomRun) -> Judgement:
    """Judged as it will be once the plan's upgrades are made."""
    found = judge_observed(one.evidence, one.given, one.configured)
    return replace(found, run=upgraded(found.run, found.plan.releases))


def change(planned: Planned, framework: Framework, run: Run) -> Mapping[str, Value]:
    return planned.change.of(framework, run.settings)


def errors(run: Run) -> set[str]:
    return {one.id for one in check_rules(run) if one.level == "error"}


def broken(judgement: Judgement) -> Iterator[str]:
    """Rules that a change set breaks; what is drawn breaks none."""
    for planned, run in planned_runs(judgement):
        yield from (f"{planned.fix.id} breaks {rule}" for rule in errors(run))


def too_new(judgement: Judgement) -> Iterator[str]:
    """Knobs set that the run's release does not have."""
    core = judgement.run.config.core_text
    for planned in (*judgement.plan.fixes, *judgement.plan.levers):
        for framework in FRAMEWORKS:
            for knob, value in change(planned, framework, judgement.run).items():
                if value not in (None, False, ()) and known_in(knob, core) is False:
                    yield f"{planned.fix.id} sets {knob}, which {core} does not have"


def unlike(judgement: Judgement) -> Iterator[str]:
    """Knobs that the two spellings of a change leave at different values, off being off in any way."""
    for planned in (*judgement.plan.fixes, *judgement.plan.levers):
        if not (planned.knobs.megatron_lm and planned.knobs.megatron_bridge):
            continue
        first, second = (meant(judgement.run, change(planned, one, judgement.run)) for one in FRAMEWORKS)
        is_flex = second.get("moe_token_dispatcher_type") == "flex"
        for knob in {*first, *second} - (set() if is_flex else {BACKEND}):
            ours, theirs = (one.get(knob, before(judgement.run, knob)) for one in (first, second))
            if (ours or None) != (theirs or None):
                yield f"{planned.fix.id}: {knob} is {ours} in one spelling and {theirs} in the other"


def meant(run: Run, changes: Mapping[str, Value]) -> dict[str, Value]:
    """By the model's and the wrapper's own fields; of a precision what it is called, not all it sets."""
    fields = {model_field(knob): value for knob, value in changes.items() if knob != "mixed_precision"}
    fields |= formats(recipe(str(changes["mixed_precision"]))) if "mixed_precision" in changes else {}
    if {"fp8", "fp4"} & set(fields):
        whole = {knob: fields.get(knob, before(run, knob)) for knob in FORMATS}
        rest = {knob: value for knob, value in fields.items() if not knob.startswith(PRECISION)}
        return rest | formats(whole)
    return fields


PRECISION: Final = ("fp8", "fp4", "ddp.fp8", "ddp.fp4", "ddp.reuse_grad_buf")


def formats(fields: Mapping[str, Value]) -> dict[str, Value]:
    """Whether FP8 or FP4, and the recipe of FP8; e4m3 or hybrid is the recipe's own matter."""
    is_fp8 = bool(fields["fp8"])
    return {"fp8": is_fp8, "fp8_recipe": fields["fp8_recipe"] if is_fp8 else None, "fp4": fields["fp4"]}


def model_field(knob: str) -> str:
    """What a knob of comm_overlap is written over."""
    group, _, name = knob.partition(".")
    if group != "comm_overlap":
        return knob
    return f"ddp.{name}" if f"ddp.{name}" in knobs() else name


def before(run: Run, field: str) -> Value:
    """A field before the change: of comm_overlap, where that names it, or of a recipe of Bridge."""
    section = f"comm_overlap.{field.rpartition('.')[2]}"
    return run.config.value(section if section in run.settings else field)


def wrongs(one: RandomRun) -> list[str]:
    judgement = judged(one)
    looks = (broken, too_new, unlike)
    return [wrong for look in looks for wrong in look(judgement)]


@trials(max_examples=RUNS, suppress_health_check=list(HealthCheck), database=None)
@drawn(seeds())
def test_whatever_runs_no_change_set_is_refused_too_new_or_said_in_two_ways(seed: int) -> None:
    assert wrongs(random_run(Random(seed))) == []


@trials(max_examples=PLAIN_RUNS, suppress_health_check=list(HealthCheck), database=None)
@drawn(runs())
def test_nor_where_most_of_a_run_is_as_plain_as_can_be(one: RandomRun) -> None:
    assert wrongs(one) == []


@pytest.fixture(scope="module")
def some() -> list[Judgement]:
    return [judged(random_run(Random(seed))) for seed in range(SEEDS)]


def test_what_is_drawn_is_legal() -> None:
    for seed in range(SEEDS):
        assert errors(random_run(Random(seed)).run) == set()


def test_what_is_drawn_has_every_wall_and_both_frameworks_and_many_releases(some: list[Judgement]) -> None:
    assert {one.verdict.wall for one in some} >= {"memory", "communication", "host_overhead", "compute"}
    assert {one.run.settings.framework for one in some} == set(FRAMEWORKS)
    assert len({one.run.config.core_text for one in some}) >= 5
    assert any(one.run.does_not_fit for one in some)


def test_most_of_the_catalogue_is_planned_and_part_of_it_is_refused_by_rules(some: list[Judgement]) -> None:
    planned = Counter(one.fix.id for judgement in some for one in judgement.plan.fixes)
    refused = Counter(one.fix.id for judgement in some for one in judgement.plan.refused if one.source)
    assert len(planned) >= 30
    assert planned.total() >= 5 * SEEDS / 2
    assert len(refused) >= 5
