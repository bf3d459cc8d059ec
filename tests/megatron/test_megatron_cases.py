"""The ninety configurations, what megatron-core says of each, and what only this host lacks."""

from __future__ import annotations

from typing import Any

import pytest

from heuristics.rules.megatron.answer import Answer
from tests.configurations.megatron_cases import CASES, request_for
from tests.megatron.conftest import Ask

pytestmark = pytest.mark.megatron

NOT_SAID = {49}
"""A KeyError of Python's enums, as core looks a name up: no refusal of its own."""
HOST = {55, 57, 58, 59, 60, 64, 66}
REJECTED_BY_OLD_TE = {
    55: "TE version >= 2.10.0 is required for delay_wgrad_compute with partial cuda graph",
    57: "Only transformer-engine>=1.7.0 supports MoE FP8 training, but your version is 1.3.0.",
    58: "Only transformer-engine>=1.7.0 supports MoE FP8 training, but your version is 1.3.0.",
    59: "Only transformer-engine>=1.7.0 supports MoE FP8 training, but your version is 1.3.0.",
    60: "Only transformer-engine>=1.7.0 supports MoE FP8 training, but your version is 1.3.0.",
    64: "fused permutation is not available. Please install TE >= 2.1.0.",
    66: "apply_rope_fusion is not available. Please install TE >= 1.4.",
}
Answers = dict[tuple[int, str | None], tuple[Answer, Answer]]


@pytest.fixture(scope="module")
def answers(ask: Ask) -> Answers:
    keys = [(case["number"], te) for case in CASES for te in (None, "2.12.0", "1.3.0")]
    by_number = {case["number"]: case for case in CASES}
    asked = ask([request_for(by_number[number], te) for number, te in keys])
    return dict(zip(keys, asked, strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['number']}-{case['name']}")
def test_a_case_is_answered_as_megatron_core_answers_it(case: dict[str, Any], answers: Answers) -> None:
    config, _ = answers[case["number"], None]
    assert config.version == "0.16.1"
    if case["number"] in HOST:
        assert (config.answer, "Transformer Engine" in config.text) == ("needs", True)
    elif case["number"] == 87:
        assert config.answer == "no_such_knob"
        assert "moe_a2a_overlap" in config.text
    elif case["number"] in NOT_SAID:
        assert (config.answer, case["error"]) == ("not_checked", "KeyError")
        assert config.text.startswith(f"could not ask: KeyError: {case['message']}")
    else:
        assert config.answer == case["answer"], config.text
        said = config.text.rstrip("…").removeprefix(f"{case.get('error')}: ")
        assert case.get("message", "") == "" or said.startswith(case["message"])


@pytest.mark.parametrize("number", sorted(HOST))
def test_with_transformer_engine_said_the_host_is_no_matter(number: int, answers: Answers) -> None:
    assert answers[number, "2.12.0"][0].answer == "ok"
    assert "Transformer Engine 2.12.0 taken as given" in answers[number, "2.12.0"][0].text
    old = answers[number, "1.3.0"][0]
    assert (old.answer, old.text) == ("rejected", REJECTED_BY_OLD_TE[number])
