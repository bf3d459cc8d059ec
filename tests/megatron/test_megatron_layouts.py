"""Worlds of up to 1,024 ranks, their pipeline stages and one MoE layer, laid out by megatron-core itself."""

from __future__ import annotations

import pytest

from heuristics.rules.check import check_rules
from heuristics.rules.megatron.answer import Answer
from tests.configurations.megatron_layouts import FITS, request_for, run_for
from tests.megatron.conftest import Ask
from traces.settings.settings import Value

pytestmark = pytest.mark.megatron


NO_WORLD: dict[str, tuple[dict[str, Value], str]] = {
    "EP6 of 8": ({"world": 8, "ep": 6},
     "world_size (8) is not divisible by expert_tensor_model_pipeline_parallel size (6)"),
    "TP8 of 12": ({"world": 12, "tp": 8}, "world_size (12) is not divisible by 8"),
    "PP2 EP8 of 8": ({"world": 8, "pp": 2, "ep": 8},
     "world_size (8) is not divisible by expert_tensor_model_pipeline_parallel size (16)"),
}  # fmt: skip
"""What the groups cannot be set up for: a RuntimeError, no refusal. Rules of ours know of it."""

REJECTED: dict[str, tuple[dict[str, Value], str]] = {
    "60 experts EP8": ({"world": 8, "ep": 8, "num_moe_experts": 60},
     "AssertionError at assert self.config.num_moe_experts % ep_size == 0"),
    "18 layers PP4": ({"world": 4, "pp": 4, "num_layers": 18},
     "num_layers should be divisible by pipeline_model_parallel_size"),
    "16 layers PP4 VPP3": ({"world": 4, "pp": 4, "vpp": 3, "num_layers": 16},
     "num_layers_per_pipeline_rank 4 should be divisible by vp_size 3"),
    "all_to_all": ({"world": 8, "ep": 8, "dispatcher": "all_to_all"},
     "Unsupported token dispatcher type: all_to_all"),
    "a backend that is none": ({"world": 8, "ep": 8, "dispatcher": "flex", "backend": "nonsense"},
     "Invalid backend: nonsense"),
    "flex on one rank": ({"world": 1, "dispatcher": "flex"}, "Flex token dispatcher requires TPxEP > 1"),
}  # fmt: skip
DEEPEP: dict[str, Value] = {"world": 8, "ep": 8, "dispatcher": "flex", "backend": "deepep"}
HYBRIDEP: dict[str, Value] = {**DEEPEP, "backend": "hybridep"}


@pytest.fixture(scope="module")
def answers(ask: Ask) -> dict[str, tuple[Answer, Answer]]:
    requests = {name: request_for(knobs) for name, knobs in FITS.items()}
    requests |= {name: request_for(knobs) for name, (knobs, _) in {**NO_WORLD, **REJECTED}.items()}
    requests["DeepEP"] = request_for(DEEPEP)
    requests["HybridEP"] = request_for(HYBRIDEP)
    requests["DeepEP there"] = request_for(DEEPEP, flex_package=True)
    requests["HybridEP there"] = request_for(HYBRIDEP, flex_package=True)
    requests["60 experts DeepEP"] = request_for(DEEPEP | {"num_moe_experts": 60})
    graph: dict[str, Value] = {"cuda_graph_impl": "full_iteration", "world": 8, "ep": 8}
    requests["newer whole graph"] = request_for(graph, core_version="0.18.0")
    odd: dict[str, Value] = {"params_dtype": "no_such_type", "attention_backend": "odd", "world": 8}
    requests["values that are none"] = request_for(odd)
    requests["after it"] = request_for({"world": 8})
    return dict(zip(requests, ask(list(requests.values())), strict=True))


@pytest.mark.parametrize("name", FITS)
def test_a_layout_that_fits_is_built(name: str, answers: dict[str, tuple[Answer, Answer]]) -> None:
    config, layer = answers[name]
    assert (config.answer, layer.answer) == ("ok", "ok"), layer.text
    assert layer.text.startswith(f"{FITS[name]['world']} ranks")


@pytest.mark.parametrize("name", REJECTED)
def test_a_layout_that_does_not_fit_is_rejected_in_megatron_cores_words(
    name: str, answers: dict[str, tuple[Answer, Answer]]
) -> None:
    _, layer = answers[name]
    assert layer.answer == "rejected"
    assert layer.text.startswith(REJECTED[name][1])


@pytest.mark.parametrize("name", NO_WORLD)
def test_a_world_that_groups_cannot_be_made_for_is_no_refusal_and_breaks_a_rule_of_ours(
    name: str, answers: dict[str, tuple[Answer, Answer]]
) -> None:
    knobs, said = NO_WORLD[name]
    _, layer = answers[name]
    assert layer.answer == "not_checked"
    assert f"RuntimeError: {said}" in layer.text
    whole = run_for({"tp": 1, "pp": 1, "cp": 1, "ep": 1, "etp": 1, **knobs})
    assert {rule.id for rule in check_rules(whole)} & {"world-attention-mesh", "world-expert-mesh"}


@pytest.mark.parametrize("package", ["DeepEP", "HybridEP"])
def test_a_package_this_host_lacks_is_no_rejection(
    package: str, answers: dict[str, tuple[Answer, Answer]]
) -> None:
    assert answers[package][1].answer == "needs"
    assert package in answers[package][1].text
    assert answers[f"{package} there"][1].answer == "ok"


def test_a_rejection_behind_a_package_this_host_lacks_still_shows(
    answers: dict[str, tuple[Answer, Answer]],
) -> None:
    assert answers["60 experts DeepEP"][1].answer == "rejected"


def test_a_newer_spelling_of_graphs_is_understood(answers: dict[str, tuple[Answer, Answer]]) -> None:
    assert answers["newer whole graph"][0].answer == "ok"


def test_values_that_are_none_are_answered_and_the_next_is_too(
    answers: dict[str, tuple[Answer, Answer]],
) -> None:
    assert answers["values that are none"][0].answer == "not_checked"
    assert answers["after it"][0].answer == "ok"
