"""What a page asks of a typed result instead of reading its sentences."""

from __future__ import annotations

from typing import get_args

import pytest

from heuristics.judgement import Configured, judge
from heuristics.result.judged import Reason, ReasonId, Verdict
from heuristics.run.given import Given
from tests.opinions_doubles import rank
from traces.settings.settings import Setting, Settings, Value


def verdict(*reasons: Reason) -> Verdict:
    made = dict.fromkeys(Verdict.__struct_fields__)
    return Verdict(**{**made, "confidence_reasons": reasons})  # type: ignore[arg-type]


def test_the_decisive_reason_is_the_gravest_wherever_it_stands() -> None:
    steps, startup = Reason("few_steps", "only 2 steps"), Reason("startup", "start-up takes 30 %")
    assert verdict(steps, startup).decisive_reason == startup
    assert verdict(startup, steps).decisive_reason == startup
    assert verdict(steps).decisive_reason == steps


def test_without_a_reason_none_is_decisive() -> None:
    assert verdict().decisive_reason is None


def test_every_reason_has_a_place_in_the_order() -> None:
    assert all(verdict(Reason(one, "")).decisive_reason for one in get_args(ReasonId))


@pytest.mark.parametrize(
    ("given", "knobs", "forced"),
    [
        (Given(), {}, False),
        (Given(routing="force_balance"), {}, True),
        (Given(routing="dropless"), {}, False),
        (Given(), {"moe_router_force_load_balancing": True}, True),
        (Given(), {"moe_router_force_load_balancing": False}, False),
        (
            Given(),
            {
                "moe_router_force_load_balancing": True,
                "moe_expert_capacity_factor": 1.0,
                "moe_pad_expert_input_to_capacity": True,
            },
            True,
        ),
    ],
)
def test_routing_that_is_forced_to_balance_is_known_from_options_and_configuration(
    given: Given, knobs: dict[str, Value], forced: bool
) -> None:
    settings = Settings({knob: Setting(value, "run.yaml:1") for knob, value in knobs.items()}, "megatron_lm")
    assert judge([rank()], given, Configured(settings)).forced_routing is forced
