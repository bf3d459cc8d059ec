"""What a page asks of a typed result instead of reading its sentences."""

from __future__ import annotations

import pytest

from heuristics.config.about import Given
from heuristics.judging.judgement import Configured, judge
from tests.doubles.opinions import rank
from traces.settings.settings import Setting, Settings, Value


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
