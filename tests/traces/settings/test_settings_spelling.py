"""Changes in each framework's spelling, and back."""

from __future__ import annotations

import pytest

from tests.configurations.spelling import read_back
from traces.settings.knobs import Knob, by_flag, knobs
from traces.settings.settings import Framework, Settings, Value, settings
from traces.settings.spelling import can_spell, in_section, spell, with_twins

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
            if lines[0].startswith("("):
                continue  # what is left out cannot be read
            found = read_back(lines)
            assert found[knob.id] == value, lines
            assert set(found) <= with_the_same_flag(knob, framework)
            spelled += 1
    assert spelled > 190


def with_the_same_flag(knob: Knob, framework: Framework) -> set[str]:
    """Knobs that one flag of Megatron-LM sets together."""
    if framework == "megatron_bridge" or not (knob.flag or knob.off):
        return {knob.id}
    return {other.id for other, _ in by_flag()[knob.flag or knob.off]}


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


def test_a_knob_without_a_spelling_is_refused() -> None:
    assert not can_spell("comm_overlap.tp_comm_overlap", "megatron_lm")
    assert not can_spell("moe_flex_dispatcher_backend", "megatron_lm", "0.15.0")
    with pytest.raises(ValueError, match="no spelling"):
        spell({"comm_overlap.tp_comm_overlap": True}, "megatron_lm")


def test_overlaps_go_into_bridges_section_which_keeps_what_the_model_has_on() -> None:
    said = settings({"overlap_moe_expert_parallel_comm": True}, "run.yaml")
    delay: dict[str, Value] = {"delay_wgrad_compute": True}
    kept = {"comm_overlap.delay_wgrad_compute": True, "comm_overlap.overlap_moe_expert_parallel_comm": True}
    assert in_section(delay, said) == kept
    assert in_section(delay, said.changed({"comm_overlap.bucket_size": 1}, "x")) == {
        "comm_overlap.delay_wgrad_compute": True
    }
    assert in_section({"bf16": True}, said) == {"bf16": True}


def test_reductions_are_of_the_wrapper_unless_the_section_says_them() -> None:
    reduce: dict[str, Value] = {"ddp.overlap_grad_reduce": True}
    assert in_section(reduce, Settings()) == reduce
    section = settings({"comm_overlap.overlap_param_gather": False}, "run.yaml")
    assert in_section(reduce, section) == {"comm_overlap.overlap_grad_reduce": True}


def test_a_flag_sets_the_knobs_that_share_it() -> None:
    off: dict[str, Value] = {"ddp.check_for_nan_in_grad": False}
    assert with_twins(off) == {**off, "rerun.check_for_nan_in_loss": False}
