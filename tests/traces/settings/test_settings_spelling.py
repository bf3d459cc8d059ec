"""Changes in each framework's spelling, and back."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.run.given import Given
from heuristics.run.observed import Observed
from heuristics.run.run import Run
from traces.settings.knobs import Knob, by_flag, knobs
from traces.settings.settings import Framework, Value
from traces.settings.spelling import can_spell, change_of, spell

VERSIONS = [
    None,
    "0.12.0",
    "0.13.0",
    "0.14.0",
    "0.15.0",
    "0.16.1",
    "0.17.0",
    "0.17.1",
    "0.18.0",
    "0.19.0",
    "main",
]
FRAMEWORKS: tuple[Framework, ...] = ("megatron_lm", "megatron_bridge")
EXAMPLES: dict[str, Value] = {"int": 3, "float": 0.25, "str": "a", "list": ("a", 2), "int|list": (0, 1, 1)}


def examples(knob: Knob) -> list[Value]:
    """Values of each form that the knob takes; null where leaving it out means that."""
    if knob.id == "pipeline_model_parallel_layout":
        return ["Et*3|(tt|)*29m|L", None]
    nulls: list[Value] = [None] if not knob.defaults or knob.defaults[-1][1] is None else []
    if knob.kind == "bool":
        return [True, False]
    if knob.choices:
        words = knob.choices
        return [words[:2] if knob.kind == "list" else words[-1], *nulls]
    if knob.kind == "int|list":
        return [2, (0, 1, 1), (1,), *nulls]
    return [EXAMPLES.get(knob.kind, 0.5), *nulls]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_spelled_is_read_back(framework: Framework, version: str | None) -> None:
    spelled = 0
    for knob in knobs().values():
        if not can_spell(knob.id, framework, version):
            continue
        for value in examples(knob):
            lines = spell({knob.id: value}, framework, version)
            found = change_of(lines, framework)
            assert found.unknown == (), lines
            assert found.knobs[knob.id] == value, lines
            assert set(found.knobs) <= with_the_same_flag(knob, framework)
            spelled += 1
    assert spelled > 300


def with_the_same_flag(knob: Knob, framework: Framework) -> set[str]:
    """Knobs that one flag of Megatron-LM sets together."""
    if framework == "megatron_bridge" or not (knob.flag or knob.off_flag):
        return {knob.id}
    return {other.id for other, _ in by_flag()[knob.flag or knob.off_flag]}


CHANGES = st.dictionaries(
    st.sampled_from(sorted(one.id for one in knobs().values() if can_spell(one.id, "megatron_bridge"))),
    st.integers(0, 1),
    max_size=6,
).map(
    lambda picked: {
        knob: examples(knobs()[knob])[at % len(examples(knobs()[knob]))] for knob, at in picked.items()
    }
)


@given(changes=CHANGES)
def test_a_whole_change_is_read_back(changes: dict[str, Value]) -> None:
    assert change_of(spell(changes, "megatron_bridge"), "megatron_bridge").knobs == changes


def test_names_follow_the_release() -> None:
    change: dict[str, Value] = {"cuda_graph_modules": ("attn", "moe_router")}
    assert spell(change, "megatron_lm", "0.17.0") == ("--cuda-graph-scope attn moe_router",)
    assert spell(change, "megatron_lm", "0.18.0") == ("--cuda-graph-modules attn moe_router",)
    assert spell(change, "megatron_bridge", "0.17.0") == ("model.cuda_graph_scope=[attn,moe_router]",)
    assert spell(change, "megatron_bridge") == ("model.cuda_graph_modules=[attn,moe_router]",)


def test_a_switch_is_set_by_its_flag_or_left_out() -> None:
    assert spell({"bf16": True}, "megatron_lm") == ("--bf16",)
    assert spell({"bf16": False}, "megatron_lm") == ("(leave out --bf16)",)
    assert spell({"add_bias_linear": False}, "megatron_lm") == ("--disable-bias-linear",)
    assert spell({"add_bias_linear": True}, "megatron_lm") == ("(leave out --disable-bias-linear)",)


def test_one_flag_for_two_knobs_is_written_once() -> None:
    both: dict[str, Value] = {"rng.te_rng_tracker": True, "use_te_rng_tracker": True}
    assert spell(both, "megatron_lm") == ("--te-rng-tracker",)


def test_a_knob_without_a_spelling_is_refused() -> None:
    assert not can_spell("comm_overlap.tp_comm_overlap", "megatron_lm")
    assert not can_spell("moe_flex_dispatcher_backend", "megatron_lm", "0.15.0")
    with pytest.raises(ValueError, match="no spelling"):
        spell({"comm_overlap.tp_comm_overlap": True}, "megatron_lm")


def test_leaving_a_flag_out_is_a_change() -> None:
    found = change_of(
        ["(leave out --recompute-granularity)", "--recompute-modules moe_act layernorm"], "megatron_lm"
    )
    assert found.knobs == {"recompute_granularity": None, "recompute_modules": ("moe_act", "layernorm")}


RUNS = [
    Run(
        Observed(moe=moe, dispatcher=dispatcher, recompute_modules=modules),
        Given(gpu=gpu, core_version=core, ep=32, tp=2, pp=4, vpp=2, nvlink_domain=8, stage="tuned",
              precision=precision, memory_tight=bool(modules), flex_package=True),
    )
    for moe, dispatcher, modules, gpu, core, precision in product(
        (True, False), ("alltoall", "hybridep"), ((), ("moe",)), ("H100", "GB200"),
        (None, "0.14.0", "0.16.1", "0.19.0"), ("bf16", "mxfp8"),
    )
]  # fmt: skip

PLACEHOLDERS = ("2N", " N", "=N", "LAYOUT", "COMMAND")
"""In lines of cards for values that only the reader of the report knows."""

NOT_KNOBS = ("(and DEEP_EP", "(on every node")
"""Lines of cards that set none: remarks."""


def test_every_line_of_every_card_is_understood() -> None:
    seen = set()
    for run, fix in product(RUNS, CATALOGUE.values()):
        card = fix.knobs(run)
        seen |= {("megatron_lm", line) for line in (*card.megatron_lm, *card.environment)}
        seen |= {("megatron_bridge", line) for line in (*card.megatron_bridge, *card.bridge_harness)}
    assert len(seen) > 100
    unknown = []
    for framework, line in sorted(seen):
        told = change_of([line], "megatron_lm" if framework == "megatron_lm" else "megatron_bridge").unknown
        unknown += [one for one in told if not one.startswith(NOT_KNOBS)]
    assert [line for line in unknown if not any(mark in line for mark in PLACEHOLDERS)] == []
