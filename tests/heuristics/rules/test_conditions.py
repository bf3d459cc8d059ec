"""The language of conditions: names, three values, null, versions, lists, what an unknown one asks for."""

from __future__ import annotations

from random import Random
from types import UnionType
from typing import get_args, get_origin

import pytest

from heuristics.config.about import Given
from heuristics.config.view import Config, Trust
from heuristics.facts.dictionary import read
from heuristics.rules.condition import CONFIGURED, condition
from heuristics.rules.rules import rules
from heuristics.rules.terms import tells
from heuristics.run.run import Run
from heuristics.words import sentences
from tests.configurations.constraints import run_with
from tests.megatron.random_runs import drawn_run
from tests.read_back.source import all_facts
from traces.settings.settings import Value, settings

RUN = {
    "core": "0.16.1",
    "capability": "9.0",
    "bf16": True,
    "num_moe_experts": 64,
    "mtp_num_layers": "null",
    "moe_token_dispatcher_type": "flex",
    "recompute_granularity": "selective",
    "recompute_modules": ["moe_act", "layernorm"],
    "env.CUDA_DEVICE_MAX_CONNECTIONS": "1",
}


def holds(text: str) -> bool | None:
    return condition(text).holds(run_with(RUN).view(Trust.CHECKED))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bf16", True), ("fp16", None), ("bf16 or fp16", True), ("bf16 and fp16", None),
        ("not bf16 and fp16", False), ("mtp_num_layers", False), ("mtp_num_layers is None", True),
        ("mtp_num_layers in (None, 1)", True), ("mtp_num_layers > 1", False),
        ("mtp_num_layers <= 1", False), ("num_layers > 1", None), ("num_moe_experts % 8 == 0", True),
        ("num_moe_experts % 6 == 0", False), ("num_moe_experts % mtp_num_layers == 0", None),
        ("num_moe_experts % 0 == 0", None), ("moe_token_dispatcher_type in ('alltoall', 'flex')", True),
        ("moe_token_dispatcher_type == 'alltoall'", False), ("moe_token_dispatcher_type > 1", None),
        ("core >= '0.16.0' and core < '0.17'", True), ("core == '0.16.1'", True),
        ("capability < '10.0'", True), ("te < '2.8.0'", None), ("'moe_act' in recompute_modules", True),
        ("'moe' in recomputed", False), ("'moe' in offload_modules", None),
        ("recompute_modules & {'moe', 'moe_act'}", True),
        ("recompute_modules <= {'moe', 'moe_act'}", False),
        ("env.CUDA_DEVICE_MAX_CONNECTIONS == '1'", True), ("env.USE_MNNVL == '1'", None),
        ("num_moe_experts * 0.5 + 0 == 32", True), ("num_moe_experts % 8.0 == 0", None),
        ("num_moe_experts / 0 == 1", None), ("num_moe_experts // 0 == 1", None), ("bf16 + 1 == 2", None),
        ("num_moe_experts // 6 == 10", True), ("num_moe_experts - 4 > 60", False),
        ("known(bf16, fp16)", False), ("known(bf16, core)", True),
        ("first(fp16, mtp_num_layers) is None", True), ("first(fp16, mtp_num_layers, bf16)", True),
        ("first(fp16, te)", None), ("recompute_modules & {'moe'}", False),
        ("recompute_modules < {'moe_act', 'layernorm'}", False), ("recompute_modules >= {'moe_act'}", True),
        ("unknown", None), ("bf16 > 0", None), ("core != '0.16.1'", False), ("not fp16", None),
        ("capability >= '9.0'", True), ("core <= '0.16.1'", True), ("core > '0.16.1'", False),
        ("'moe' not in recompute_modules", True), ("{'moe_act'} & recompute_modules", True),
        ("{'moe_act'} <= recompute_modules", True), ("{'moe'} <= recompute_modules", False),
        ("num_moe_experts > mtp_num_layers", False), ("num_moe_experts < mtp_num_layers", False),
        ("mtp_num_layers is not None", False), ("num_moe_experts is not None", True),
        ("fp16 is None", None), ("recompute_modules < {'moe_act', 'layernorm', 'moe'}", True),
        ("first(te, num_moe_experts) == 64", True), ("first(mtp_num_layers, num_moe_experts) == 64", True),
        ("num_moe_experts % 64 < 1", True), ("num_moe_experts % 63 == 1", True), ("te % 2 == 0", None),
    ],
)  # fmt: skip
def test_a_condition_is_true_false_or_unknown(text: str, expected: bool | None) -> None:
    assert holds(text) is expected


@pytest.mark.parametrize("text", ["no_such_knob > 1", "bf16 ===", "len(bf16)", "te < 2.8 < 3", "ddp.no_such"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)."):
        condition(text)


def test_only_what_would_decide_is_asked_for() -> None:
    config = run_with({"ep": "", "bf16": True}).view(Trust.CHECKED)
    assert condition("te < '2.8.0' and fp16").asks(config) == ("fp16", "--te-version")
    assert condition("bf16 or fp16").asks(config) == ()
    assert condition("low_precision").asks(config) == ("fp8", "fp4", "mixed_precision", "--precision")


@pytest.mark.parametrize(("name", "said", "given", "asked"), [
    ("te", {}, Given(), ("--te-version",)), ("te", {}, Given(te_version="2.9"), ("--te-version",)),
    ("low_precision", {}, Given(precision="fp8"), ("fp8", "fp4", "mixed_precision")),
    ("bf16", {}, Given(), ("bf16",)), ("bf16", {"bf16": True}, Given(), ()),
])  # fmt: skip
def test_a_name_is_told_by_what_is_not_said_yet_else_by_its_option_again(
    name: str, said: dict[str, Value], given: Given, asked: tuple[str, ...]
) -> None:
    config = Run(given=given, settings=settings(said, "test")).config
    assert tells(CONFIGURED.named(name), config) == asked


def test_a_condition_speaks_of_the_knobs_of_its_facts() -> None:
    assert condition("ep_overlap and pp > 1 and te < '2.8.0'").knobs == (
        "overlap_moe_expert_parallel_comm",
        "comm_overlap.overlap_moe_expert_parallel_comm",
        "pipeline_model_parallel_size",
    )


def test_its_figures_are_said_by_name_and_no_text_that_nobody_knows() -> None:
    more = {"fp16": False, "moe_layer_freq": "([1]*3)", "offload_modules": [], "cp_comm_type": ["p2p", "a"]}
    config = run_with({**RUN, **more, "moe_flex_dispatcher_backend": "null"}).view(Trust.CHECKED)
    for text, said in (
        ("ep > 1 and te >= '2.8'", "EP not known, Transformer Engine not known"),
        ("mtp_num_layers and bf16 and fp16", "mtp_num_layers not set, bf16 on, fp16 off"),
        ("recomputed & {'a'} and num_moe_experts", "recomputed modules others, num_moe_experts 64"),
        ("recompute_modules & {'a'}", "recompute_modules moe_act, layernorm"),
        ("offload_modules & {'a'} or flex_backend", "offload_modules none, backend not set"),
        ("cp_comm_type & {'a'}", "cp_comm_type p2p, a"),
        ("moe_token_dispatcher_type == 'a'", "moe_token_dispatcher_type flex"),
        ("moe_layer_freq == 'a'", "moe_layer_freq another value"),
        ("moe_layer_freq == '([1]*3)'", "moe_layer_freq ([1]*3)"),
    ):
        assert condition(text).figures(config) == said


def test_a_text_has_the_values_of_limits_and_conditions_in_its_braces() -> None:
    """A word of the text's own may have braces itself."""
    text = "{WALL}, {FEWEST}, {FEWEST * 2}, {num_moe_experts}, {recompute_modules}, {te}, {own}"
    said = CONFIGURED.filled(text, run_with(RUN).view(Trust.CHECKED), {"own": "of {FEWEST}"})
    assert said == "10 %, 3, 6, 64, moe_act, layernorm, ?, of 3"


def test_facts_that_rules_name_are_called_something_in_words() -> None:
    conditions = [one for rule in rules().values() for one in (rule.feature, rule.needs, rule.forbids) if one]
    named = {term.name for one in conditions for term in one.named if term.fact}
    assert named <= {*sentences("facts")} <= {*all_facts()}


def test_a_name_is_one_fact() -> None:
    with pytest.raises(ValueError, match="ep is a fact of Config already"):
        read(Config, "ep")


def test_a_fact_answers_by_its_type() -> None:
    run = drawn_run(Random(7)).run
    assert {"widest_ep", "fragmented", "base.gpu"} <= {*all_facts()}  # of workflow, plan, comparison
    for name, fact in all_facts().items():
        told = getattr(fact.of, "__annotations__", {}).get("return", object)
        kinds = get_args(told) if isinstance(told, UnionType) else (told,)
        if fact.view in (Run, Config):
            answer = fact.of(run if fact.view is Run else run.config)
            assert isinstance(answer, tuple(get_origin(kind) or kind for kind in kinds)), name
