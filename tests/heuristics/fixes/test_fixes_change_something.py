"""What a fix lists to change is never what the run has already."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.change import Change, lines
from heuristics.run.run import Run
from tests.configurations.golden import Case, cases, judgement_of
from tests.doubles.fixes import configured
from traces.settings.settings import Framework, Value, settings
from traces.settings.spelling import can_spell, spell, with_twins

FRAMEWORKS: tuple[Framework, ...] = ("megatron_bridge", "megatron_lm")
CASES = [case for case in cases() if "error" not in case.expected]


def _lines_of(run: Run, framework: Framework) -> set[str]:
    """Every setting of a run as a line of its framework."""
    return {
        line
        for knob, setting in run.config.settings.by_knob.items()
        if can_spell(knob, framework)
        for line in spell({knob: setting.value}, framework)
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}")
def test_no_fix_of_a_golden_case_lists_what_the_configuration_has(case: Case) -> None:
    judged = judgement_of(case).run
    values = {knob: setting.value for knob, setting in judged.settings.by_knob.items()}
    for framework in FRAMEWORKS:
        own = with_twins(values) if framework == "megatron_lm" else values
        run = replace(judged, settings=settings(own, "run", framework))
        there = _lines_of(run, framework)
        for fix in CATALOGUE.values():
            knobs = fix.knobs(run)
            assert not there & {*getattr(knobs, framework), *knobs.environment}, fix.id


def test_a_change_lists_only_what_is_new_also_for_the_harness() -> None:
    there: dict[str, Value] = {"ddp.overlap_grad_reduce": True, "env.NVTE_FWD_LAYERNORM_SM_MARGIN": "16"}
    run = configured({**there, "moe_token_dispatcher_type": "alltoall", "moe_flex_dispatcher_backend": None})
    flag = "--moe_flex_dispatcher_backend None"
    new = lines(Change({**there, "moe_router_dtype": "fp32"}, harness=(flag,)), run)
    assert new.megatron_bridge == ("model.moe_router_dtype=fp32",)
    assert (new.bridge_harness, new.environment) == ((), ())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}")
def test_no_step_of_a_plan_leaves_nothing_to_set(case: Case) -> None:
    judged = judgement_of(case)
    for one in judged.plan.fixes:
        set_here = one.knobs.megatron_bridge or one.knobs.environment
        assert set_here or not one.change.in_run(judged.run), one.fix.id
