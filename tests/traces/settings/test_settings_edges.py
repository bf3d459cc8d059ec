"""Edges of what a configuration means: views of it, values, facts that follow,
and what frameworks fill in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from traces.settings.derive import add_derived, with_ranks
from traces.settings.effective import effective
from traces.settings.expressions import pattern_of, sum_of
from traces.settings.knobs import is_before_tables, knobs, release
from traces.settings.precision import bits_of, configured_precision, low_bytes
from traces.settings.read import configuration_of
from traces.settings.settings import (
    MOST_PROBLEMS,
    Draft,
    Framework,
    KnobView,
    Setting,
    Settings,
    Value,
    settings,
)
from traces.settings.shell import read_script
from traces.settings.values import NotAValue, Raw, fullest_rank, unrolled, value_of

NAMES: Final[dict[str, Value]] = {
    **{"yes": True, "no": False, "null": None, "zero": 0, "three": 3, "half": 0.5, "word": "a, [b]"},
    **{"off": "Off", "text": "1", "list": ("a", 1), "env.A": "1", "env.B": None, "env.C": 0},
}
VIEW: Final = KnobView(Settings({**settings(NAMES, "a:1").by_knob, "usual": Setting(1, "default")}))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (VIEW.on("yes"), True), (VIEW.on("no"), False), (VIEW.on("null"), False), (VIEW.on("nobody"), None),
        (VIEW.on("nobody", "null"), False), (VIEW.on("nobody", "no", "yes"), False), (VIEW.on("null", "yes"),
         True),
        (VIEW.on("zero"), False), (VIEW.on("half"), True), (VIEW.on("off"), False), (VIEW.on("text"), True),
        (VIEW.any_on("no", "nobody", "yes"), True), (VIEW.any_on("no", "nobody"), False),
         (VIEW.any_on("nobody"), None),
        (VIEW.null("null"), True), (VIEW.null("no"), False), (VIEW.null("nobody"), None),
        (VIEW.one_of("three", 2, 3), True), (VIEW.one_of("three", 2), False), (VIEW.one_of("nobody", None),
         None),
        (VIEW.number("half"), 0.5), (VIEW.number("yes"), None), (VIEW.number("text"), None),
        (VIEW.count("three"), 3), (VIEW.count("half"), None), (VIEW.count("yes"), None),
        (VIEW.positive("three"), 3), (VIEW.positive("zero"), None), (VIEW.positive("yes"), None),
        (VIEW.positive("null", "three"), 3), (VIEW.positive("zero", "three"), None), (VIEW.positive("half"),
         None),
        (VIEW.above("three", 2), True), (VIEW.above("three", 3), False), (VIEW.above("null", 0), False),
        (VIEW.above("nobody", 0), None), (VIEW.above("word", 0), None),
        (VIEW.word("text"), "1"), (VIEW.word("three"), None),
        (VIEW.names("word"), ("a", "b")), (VIEW.names("list"), ("a", "1")), (VIEW.names("null"), ()),
        (VIEW.names("three"), ()), (VIEW.names("nobody"), None),
        (VIEW.holds("list", "a"), True), (VIEW.holds("list", "b"), False), (VIEW.holds("nobody", "a"), None),
        (VIEW.env("A"), "1"), (VIEW.env("B"), ""), (VIEW.env("C"), "0"), (VIEW.env("D"), None),
        (VIEW.env_is("A", "1"), True), (VIEW.env_is("A", "2"), False), (VIEW.env_is("D", "1"), None),
        (VIEW.size("three"), 3), (VIEW.size("null"), 1), (VIEW.size("zero"), None), (VIEW.size("nobody"),
         None),
        (VIEW.where("yes"), "a:1"), (VIEW.where("usual"), "the framework's defaults"),
        (VIEW.where("nobody"), "the options"), (VIEW.group("env."), ("env.A", "env.B", "env.C")),
    ],
)  # fmt: skip
def test_a_view_answers_with_none_for_what_is_unknown(asked: object, answer: object) -> None:
    assert (type(asked), asked) == (type(answer), answer)


def test_other_settings_win_and_keep_their_place_and_framework() -> None:
    below, above = settings({"a": 1, "b": 2}, "file", "megatron_lm"), settings({"b": None}, "option")
    found = below.under(above)
    assert (found.value("a"), found.value("b"), found.said("b"), found.said("c")) == (1, None, "option", "")
    assert (found.framework, above.under(below).framework) == ("megatron_lm", "megatron_lm")
    assert "b" in found
    assert "c" not in found


def test_problems_are_told_once_and_a_hundred_at_most() -> None:
    draft, strict = Draft("a.sh"), Draft("a.sh", is_strict=True)
    for one in (draft, strict):
        one.problem(1, "twice", effect="stops")
        one.problem(1, "twice", effect="stops")
        one.problem(2, "always", effect="stops", always=True)
    assert [(one.where, one.effect) for one in draft.problems] == [("a.sh:1", "unread"), ("a.sh:2", "stops")]
    assert [one.effect for one in strict.problems] == ["stops", "stops"]
    for line in range(int(MOST_PROBLEMS.value) - 2):
        draft.problem(line, "more")
    assert not draft.is_full
    draft.problem(None, "one more")
    assert draft.is_full
    assert (draft.problems[-1].where, draft.problems[-1].text) == ("a.sh", "more problems from here on")
    draft.problem(None, "another")
    assert len(draft.problems) == MOST_PROBLEMS.value + 1


# values


@pytest.mark.parametrize(
    ("knob", "raw", "value"),
    [
        ("num_layers", 10**15, 10**15), ("num_layers", 10**15 + 1, NotAValue), ("num_layers", -4, -4),
        ("num_layers", "9" * 15, 10**15 - 1), ("num_layers", "9" * 16, NotAValue), ("num_layers", 4.0, 4),
        ("num_layers", "1_000", 1000), ("num_layers", [4], 4), ("num_layers", [], NotAValue),
        ("num_layers", True, NotAValue), ("num_layers", "null", None), ("num_layers", " ", None),
        ("optimizer.lr", "1e-3", 0.001), ("optimizer.lr", True, NotAValue), ("optimizer.lr", "inf",
         NotAValue),
        ("optimizer.lr", 1, 1.0),
        ("bf16", "yes", True), ("bf16", "Off", False), ("bf16", 1, True), ("bf16", "2", NotAValue),
        ("params_dtype", "torch.bfloat16", "bf16"),
        ("params_dtype", {"_target_": "torch.half"}, "fp16"), ("params_dtype", {"_name_": "bf16"}, "bf16"),
        ("moe_layer_freq", "([0]*1+[1]*2)", (0, 1, 1)), ("moe_layer_freq", 2, 2), ("moe_layer_freq", [1],
         (1,)),
        ("recompute_modules", "moe_act, layernorm", ("moe_act", "layernorm")),
        ("recompute_modules", ["moe_act layernorm"], ("moe_act", "layernorm")),
        ("recompute_modules", "['moe_act']", ("moe_act",)), ("recompute_modules", "(mlp,)", ("mlp",)),
        ("data.path", "/a", "given"), ("data.path", [], None), ("data.path", "null", None),
    ],
)  # fmt: skip
def test_a_value_is_read_up_to_its_limits(knob: str, raw: Raw, value: Any) -> None:
    if value is NotAValue:
        with pytest.raises(NotAValue):
            value_of(knobs()[knob], raw)
    else:
        found = value_of(knobs()[knob], raw)
        assert (type(found), found) == (type(value), value)


def test_the_fullest_rank_computes_most_layers_the_embedding_counting_none() -> None:
    assert fullest_rank("Et|tt|ttt|tmL", 2) == 5  # stages 1 and 3, beside 2 and 3 with MTP and loss
    assert fullest_rank("Ett|tL", 2) == 2
    assert fullest_rank("Et|x", 2) is None


def test_a_layout_has_4096_letters_at_most() -> None:
    assert unrolled("Et*4088L") == "E" + "t" * 4088 + "L"  # with the eight letters of its text
    assert unrolled("Et*4089L") is None


@pytest.mark.parametrize(
    ("text", "result"),
    [("7 / -2", -3), ("-7 / -2", 3), ("-7 % 2", -1), ("7 % -2", 1), ("10**15", None), ("A", 5),
     ("$A+${B}", 8),
     ("1000000000000000", None), ("999999999999999 + 1", 10**15), ("999999999999999 + 2", None)],
)  # fmt: skip
def test_a_sum_is_cut_towards_zero_up_to_its_largest(text: str, result: int | None) -> None:
    assert sum_of(text, {"A": 5, "B": 3}.get) == result


def test_a_pattern_of_layers_has_4096_entries_at_most() -> None:
    assert len(pattern_of("[0,1]*2048")) == 4096
    with pytest.raises(ValueError):  # noqa: PT011
        pattern_of("[0,1]*2048+[1]")


@pytest.mark.parametrize(
    ("version", "known", "before"),
    [("0.11.9", (0, 12, 0), True), ("0.12.0", (0, 12, 0), False), ("core_v0.16.1rc2", (0, 16, 1), False),
     ("0.9", (0, 12, 0), True), ("main", (0, 20, 0), False), ("1.2", (1, 2, 0), False), ("x", None, False),
     (None, None, False)],
)  # fmt: skip
def test_a_release_older_than_the_tables_counts_as_their_first(
    version: str | None, known: tuple[int, ...] | None, before: bool
) -> None:
    assert (release(version), is_before_tables(version)) == (known, before)


# facts that follow

VPP: Final = "virtual_pipeline_model_parallel_size"
EACH: Final = "num_layers_per_virtual_pipeline_stage"
LAYOUT: Final = "pipeline_model_parallel_layout"
PATTERN: Final = "hybrid_layer_pattern"
NOT_THERE: Final = "not there"


def derived(values: Mapping[str, Value], is_complete: bool = False) -> Settings:
    draft = Draft("a.sh", by_knob=dict(settings(values, "a.sh:1").by_knob))
    add_derived(draft, is_complete)
    return Settings(draft.by_knob)


@pytest.mark.parametrize(
    ("values", "stages"),
    [
        ({LAYOUT: "Et|t|t|tL"}, 2), ({LAYOUT: "Et|tL"}, None), ({LAYOUT: "Et|t|tL"}, NOT_THERE),
        ({LAYOUT: "Et|t|t|tL", VPP: 4}, 4), ({EACH: 2, "num_layers": 16}, 4), ({EACH: 8, "num_layers": 16},
         None),
        ({EACH: 3, "num_layers": 16}, NOT_THERE), ({EACH: 0, "num_layers": 16}, NOT_THERE), ({EACH: 2},
         NOT_THERE),
        ({EACH: 1, "num_layers": 14, "account_for_embedding_in_pipeline_split": True,
          "account_for_loss_in_pipeline_split": True}, 8),
        ({EACH: 1, "num_layers": 14, "account_for_embedding_in_pipeline_split": False}, 7),
        ({PATTERN: "ME|M*|ME|M*"}, 2), ({PATTERN: "MEM*"}, None), ({PATTERN: "ME|M*"}, None),
        ({PATTERN: "M|E|M"}, NOT_THERE), ({PATTERN: "M|E/M|M"}, None), ({PATTERN: "ME|M*|ME|M*", VPP: 3}, 3),
         ({}, NOT_THERE),
    ],
)  # fmt: skip
def test_virtual_stages_follow_where_two_ranks_divide_what_is_said(
    values: dict[str, Value], stages: Value
) -> None:
    found = derived({"pipeline_model_parallel_size": 2, **values})
    assert (found.value(VPP) if VPP in found else NOT_THERE) == stages
    assert VPP in derived({"pipeline_model_parallel_size": 2}, is_complete=True)
    assert VPP not in derived({k: v for k, v in values.items() if k != VPP})


@pytest.mark.parametrize(
    ("values", "knob", "value"),
    [
        ({PATTERN: "M|E*/MM", "num_layers": 99}, "num_layers", 3),
        ({"gated_linear_unit": True}, "activation_func", "silu"),
        ({"gated_linear_unit": False, "squared_relu": True}, "activation_func", "squared_relu"),
        ({"gated_linear_unit": False}, "activation_func", NOT_THERE),
        ({"gated_linear_unit": True, "activation_func": "gelu"}, "activation_func", "gelu"),
        ({"group_query_attention": False}, "num_query_groups", None),
        ({"group_query_attention": True}, "num_query_groups", NOT_THERE),
        ({"group_query_attention": False, "num_query_groups": 4}, "num_query_groups", 4),
        ({"overlap_p2p_comm": False}, "batch_p2p_comm", True),
        ({"overlap_p2p_comm": True}, "batch_p2p_comm", False),
        ({"bf16": True, "fp16": True}, "params_dtype", "bf16"),
        ({"fp16": True}, "pipeline_dtype", "fp16"),
        ({"bf16": False, "fp16": False}, "params_dtype", "fp32"),
        ({"bf16": False}, "params_dtype", NOT_THERE),
        ({"bf16": True, "params_dtype": "fp32"}, "params_dtype", "fp32"),
    ],
)
def test_what_follows_is_set_only_where_nothing_was_said(
    values: dict[str, Value], knob: str, value: Value
) -> None:
    found = derived(values)
    assert (found.value(knob) if knob in found else NOT_THERE) == value


def test_bars_of_a_pattern_and_a_head_for_each_query_outweigh_defaults_and_other_facts_do_not() -> None:
    said: dict[str, Value] = {PATTERN: "ME|M*|ME|M*", "pipeline_model_parallel_size": 2}
    said |= {"group_query_attention": False, "overlap_p2p_comm": False}
    defaults = {VPP: None, "num_query_groups": 1, "batch_p2p_comm": False}
    usual = {knob: Setting(value, "default") for knob, value in defaults.items()}
    draft = Draft("a.sh", by_knob={**settings(said, "a.sh:1").by_knob, **usual})
    add_derived(draft, False)
    assert [draft.by_knob[knob].value for knob in defaults] == [2, None, False]


def test_only_a_whole_set_of_arguments_has_what_nobody_said() -> None:
    values: dict[str, Value] = {"gated_linear_unit": False}
    whole, part = derived(values, is_complete=True), derived(values)
    assert (whole.value("activation_func"), whole.value("variable_seq_lengths")) == ("gelu", False)
    assert "variable_seq_lengths" not in part


@pytest.mark.parametrize(
    ("sizes", "ranks", "copies"),
    [
        ({"tp": 2, "pp": 2, "cp": 2, "world": 16}, 16, 2), ({"tp": 2, "pp": 2, "cp": 2, "dp": 3}, 24, 3),
        ({"tp": 2, "pp": 2, "cp": 2, "world": 12}, 12, None), ({"tp": 2, "pp": 2, "world": 16}, 16, None),
        ({"tp": 2, "pp": 2, "cp": 2, "world": 16, "dp": 4}, 16, 2),
        ({"tp": 2, "pp": 2, "cp": 1, "overlap": 3}, 12, None),
         ({"tp": 2, "pp": 1, "cp": 1, "dp": 2, "overlap": 3}, 4, 2),
    ],
)  # fmt: skip
def test_ranks_and_copies_of_the_model_agree_or_the_ranks_stand(
    sizes: dict[str, int], ranks: int, copies: int | None
) -> None:
    names = {
        **{"tp": "tensor_model_parallel_size", "pp": "pipeline_model_parallel_size"},
        **{"cp": "context_parallel_size", "world": "world_size", "dp": "data_parallel_size"},
        "overlap": "comm_overlap.data_parallel_size",
    }
    found = with_ranks(settings({names[name]: size for name, size in sizes.items()}, "a"))
    assert (found.value("world_size"), found.value("data_parallel_size")) == (ranks, copies)


# what the frameworks make of it

LM: Final[Framework] = "megatron_lm"
BRIDGE: Final[Framework] = "megatron_bridge"
TP, PP, EP, ETP = (f"{name}_parallel_size" for name in (
    "tensor_model", "pipeline_model", "expert_model", "expert_tensor"))  # fmt: skip
SECTION: Final[dict[str, Value]] = {"comm_overlap.tp_comm_overlap": False}
SHARDED: Final[dict[str, Value]] = {**SECTION, "ddp.use_distributed_optimizer": True}


@pytest.mark.parametrize(
    ("framework", "core", "values", "knob", "value"),
    [
        (LM, None, {TP: 2, "sequence_parallel": True}, "sequence_parallel", True),
        (LM, None, {VPP: None}, "batch_p2p_comm", True), (LM, None, {VPP: 2}, "batch_p2p_comm", NOT_THERE),
        (LM, None, {VPP: None}, "ddp.align_param_gather", False),
        (LM, None, {"ddp.use_megatron_fsdp": True, "ddp.megatron_fsdp_version": 2},
         "ddp.use_distributed_optimizer", NOT_THERE),
        (LM, None, {"ddp.use_megatron_fsdp": True}, "ddp.reuse_grad_buf_for_mxfp8_param_ag", False),
        (LM, None, {"cuda_graph_impl": "local"}, "rng.te_rng_tracker", NOT_THERE),
        (LM, None, {"cuda_graph_impl": "local", "transformer_impl": "transformer_engine"},
         "use_te_rng_tracker", True),
        (LM, None, {"cuda_graph_impl": "none", "transformer_impl": "transformer_engine"},
         "rng.te_rng_tracker", NOT_THERE),
        (LM, None,
         {"hidden_size": 96, "gated_linear_unit": True, "activation_func": "silu", "ffn_hidden_size": None},
         "ffn_hidden_size", 256),
        (LM, None,
         {"hidden_size": 96, "gated_linear_unit": True, "activation_func": "gelu", "ffn_hidden_size": None},
         "ffn_hidden_size", 384),
        (LM, None, {"position_embedding_type": "none", "apply_rope_fusion": True}, "apply_rope_fusion",
         False),
        (LM, None, {"position_embedding_type": "rope", "apply_rope_fusion": True}, "apply_rope_fusion", True),
        (LM, None, {"apply_rope_fusion": True}, "apply_rope_fusion", True),
        (LM, None, {"cpu_offloading_num_layers": 0}, "cpu_offloading", NOT_THERE),
        (LM, "0.14.0", {"enable_cuda_graph": True}, "cuda_graph_impl", NOT_THERE),
        (LM, "0.15.0", {"enable_cuda_graph": True, "external_cuda_graph": True}, "cuda_graph_impl", "local"),
        (LM, "0.16.1", {"external_cuda_graph": True, "cuda_graph_impl": "local"}, "cuda_graph_impl", "local"),
        (LM, "0.15.3", {"cuda_graph_modules": ("full",)}, "cuda_graph_modules", ("full",)),
        (LM, "0.16.0", {"cuda_graph_modules": ("full", "attn")}, "cuda_graph_modules", ("full", "attn")),
        (LM, "0.18.0", {"cuda_graph_modules": ("attn", "full_iteration")}, "cuda_graph_modules", ("attn",)),
        (LM, "0.15.3", {"moe_enable_deepep": True}, "moe_flex_dispatcher_backend", NOT_THERE),
        (LM, None, {"moe_layer_recompute": True, "recompute_granularity": "full"}, "recompute_granularity",
         "full"),
        (LM, None, {"moe_layer_recompute": True, "recompute_modules": ("moe", "mlp")}, "recompute_modules",
         ("moe", "mlp")),
        (LM, None, {"moe_layer_recompute": True, "recompute_modules": ("mlp",)}, "recompute_modules",
         ("mlp", "moe")),
        (BRIDGE, None, {"moe_layer_recompute": True}, "recompute_modules", NOT_THERE),
        (BRIDGE, None,
         {"moe_layer_recompute": True, "recompute_granularity": None, "recompute_modules": None},
         "recompute_granularity", "selective"),
        (LM, "0.18.2", {"moe_deepep_num_sms": 24}, "moe_flex_dispatcher_num_sms", NOT_THERE),
        (LM, "0.19.0", {"moe_deepep_num_sms": 24, "moe_hybridep_num_sms": 32}, "moe_flex_dispatcher_num_sms",
         24),
        (LM, "0.19.0", {"moe_hybridep_num_sms": 32, "moe_flex_dispatcher_num_sms": 8},
         "moe_flex_dispatcher_num_sms", 8),
        (LM, None, {"hidden_size": 100, "num_attention_heads": 8, "kv_channels": None}, "kv_channels", None),
        (LM, None, {"num_attention_heads": 8, "num_query_groups": None}, "num_query_groups", 8),
        (LM, None, {"ffn_hidden_size": 64, "num_moe_experts": 8, "moe_ffn_hidden_size": None},
         "moe_ffn_hidden_size", 64),
        (LM, None, {"ffn_hidden_size": 64, "num_moe_experts": None, "moe_ffn_hidden_size": None},
         "moe_ffn_hidden_size", None),
        (LM, None, {TP: 4}, ETP, NOT_THERE),
        (BRIDGE, None, {**SECTION, PP: 2, VPP: 2}, "overlap_p2p_comm", True),
        (BRIDGE, None, {**SECTION, PP: 2, VPP: 2}, "batch_p2p_comm", False),
        (BRIDGE, None, {**SECTION, PP: 2, VPP: 1}, "overlap_p2p_comm", False),
        (BRIDGE, None, {**SECTION, PP: 2, VPP: None}, "batch_p2p_comm", True),
        (BRIDGE, None, {**SECTION, PP: 1}, "batch_p2p_comm", False),
        (BRIDGE, None, {**SECTION, PP: 2}, "overlap_p2p_comm", NOT_THERE), (BRIDGE, None, {PP: 1},
         "overlap_p2p_comm", NOT_THERE),
        (BRIDGE, None, {**SECTION, PP: 2, VPP: 2, "comm_overlap.overlap_p2p_comm": False}, "overlap_p2p_comm",
         False),
        (BRIDGE, None, {**SHARDED, "data_parallel_size": 2}, "ddp.overlap_param_gather", True),
        (BRIDGE, None, {**SHARDED, "data_parallel_size": 1}, "ddp.overlap_param_gather", False),
        (BRIDGE, None, {**SHARDED, "data_parallel_size": 1}, "ddp.bucket_size", None),
        (BRIDGE, None, {**SHARDED, "data_parallel_size": 2}, "ddp.bucket_size", 128 * 1024 * 1024),
        (BRIDGE, None, {**SHARDED, "data_parallel_size": 1, "comm_overlap.data_parallel_size": 2},
         "ddp.overlap_grad_reduce", True),
        (BRIDGE, None, SHARDED, "ddp.overlap_grad_reduce", NOT_THERE),
        (BRIDGE, None, {**SHARDED, "comm_overlap.bucket_size": 5}, "ddp.bucket_size", 5),
        (BRIDGE, None, {**SECTION, "data_parallel_size": 2}, "ddp.overlap_grad_reduce", NOT_THERE),
        (BRIDGE, None, {**SECTION, "delay_wgrad_compute": True}, "delay_wgrad_compute", False),
        (BRIDGE, None, {"comm_overlap.tp_comm_overlap": True, TP: 2}, "tp_comm_overlap", NOT_THERE),
        (BRIDGE, None, {"tp_comm_overlap": True, **SECTION}, "tp_comm_overlap", False),
        (BRIDGE, None, {"overlap_moe_expert_parallel_comm": True}, "overlap_moe_expert_parallel_comm", True),
        (BRIDGE, None, {"comm_overlap.overlap_moe_expert_parallel_comm": True}, "delay_wgrad_compute",
         NOT_THERE),
        (BRIDGE, None, {"comm_overlap.overlap_moe_expert_parallel_comm": True}, "tp_comm_overlap", NOT_THERE),
        *((BRIDGE, None, {"comm_overlap.tp_comm_overlap": True, "sequence_parallel": on, TP: size},
         "tp_comm_overlap", made)
          for size, on, made in ((1, True, False), (2, False, False), (2, True, True))),
        (BRIDGE, None, {"comm_overlap.tp_comm_overlap": True, "sequence_parallel": True}, "tp_comm_overlap",
         NOT_THERE),
        (BRIDGE, None, {"comm_overlap.tp_comm_overlap": True, "sequence_parallel": False}, "tp_comm_overlap",
         False),
        *((BRIDGE, core, {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": backend},
           "moe_token_dispatcher_type", made)
          for core, backend, made in ((None, None, "alltoall"), ("0.19.0", None, "flex"),
           (None, "deepep", "flex"))),
        (BRIDGE, None, {"rng.te_rng_tracker": True}, "use_te_rng_tracker", True),
        (BRIDGE, None, {"use_te_rng_tracker": False}, "rng.te_rng_tracker", NOT_THERE),
        (BRIDGE, None, {PP: 2, "pipeline_dtype": None, "params_dtype": "fp16"}, "pipeline_dtype", "fp16"),
        (BRIDGE, None, {PP: 2, "pipeline_dtype": None}, "pipeline_dtype", "bf16"),
        (BRIDGE, None, {PP: 1, "pipeline_dtype": None}, "pipeline_dtype", None),
        (BRIDGE, "0.16.1", {TP: 1, "sequence_parallel": True}, "sequence_parallel", True),
        (BRIDGE, "0.17.0", {TP: 1, "sequence_parallel": True}, "sequence_parallel", False),
        (BRIDGE, "0.18.2", {EP: 2, ETP: None, TP: 4}, ETP, 4), (BRIDGE, "0.19.0", {EP: 2, ETP: None, TP: 4},
         ETP, 1),
        (BRIDGE, "0.19.0", {EP: 1, ETP: None, TP: 4}, ETP, 4),
        (BRIDGE, None, {"cp_comm_type": ("p2p", "a2a+p2p")}, "hierarchical_context_parallel_sizes", None),
        (BRIDGE, None, {"cp_comm_type": "p2p"}, "hierarchical_context_parallel_sizes", NOT_THERE),
        (BRIDGE, None, {"mixed_precision": "fp16_mixed"}, "fp16", True),
        (BRIDGE, None, {"mixed_precision": "own", "mixed_precision.bf16": True}, "bf16", True),
    ],
)  # fmt: skip
def test_a_framework_fills_in_or_drops_what_its_release_does(
    framework: Framework, core: str | None, values: dict[str, Value], knob: str, value: Value
) -> None:
    found = effective(settings(values, "file", framework), core)
    assert (found.value(knob) if knob in found else NOT_THERE) == value


@pytest.mark.parametrize(
    ("values", "wide"),
    [
        ({"bf16": True}, True),
        ({"bf16": False}, False),
        ({"bf16": True, "optimizer.main_grads_dtype": "bf16"}, False),
    ],
)
def test_gradients_of_bf16_are_summed_wide_unless_something_was_said(
    values: dict[str, Value], wide: bool
) -> None:
    knob = "ddp.grad_reduce_in_fp32"
    nobody = settings({knob: False}, "default", LM).under(settings(values, "file"))
    assert effective(nobody).value(knob) is wide
    assert effective(nobody.changed({knob: False}, "file")).value(knob) is False


@pytest.mark.parametrize(
    ("values", "precision"),
    [
        ({"bf16": True, "fp8": None}, "bf16"), ({"fp16": True, "fp8": False}, "fp16"), ({"bf16": True}, None),
        ({"bf16": False, "fp16": False, "fp8": None}, "fp32"), ({"bf16": False, "fp8": None}, None),
        ({"fp8": "e4m3", "fp8_recipe": "blockwise"}, "fp8_blockwise"), ({"fp8": "e4m3", "fp8_recipe": "own"},
         "fp8"),
        ({"fp8": "e4m3", "fp4": "e2m1"}, "nvfp4"), ({"mixed_precision.fp8": "e4m3", "fp8": None,
          "mixed_precision.fp8_recipe": "mxfp8", "fp8_recipe": "delayed"}, "mxfp8"),
        ({"mixed_precision": "my_current_scaling"}, "fp8_current"), ({"mixed_precision": "own"}, None),
        ({"mixed_precision": "bf16_with_mxfp8", "fp8": None, "bf16": True}, "bf16"),
    ],
)  # fmt: skip
def test_a_precision_is_by_its_fields_before_its_name(
    values: dict[str, Value], precision: str | None
) -> None:
    assert configured_precision(KnobView(settings(values, "a"))) == precision


def test_an_element_of_more_than_eight_bits_is_not_low() -> None:
    assert [low_bytes(one) for one in ("nvfp4", "fp8", "bf16", "mixed", None)] == [0.5, 1, None, None, None]
    assert bits_of("mixed") is None


# scripts


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("A=1\n[ $X ] && A=2\nrun $A", False), ("A=1\n[[ $X ]] || A=2\nrun $A", False),
        ("A=1\ntest $X && B=1 && A=2\nrun $A", False), ("A=1\n[ $X ] ; A=2\nrun $A", True),
        ("A=1\ncd x && A=2\nrun $A", True), ("A=1\nif a; then b; fi\nA=2\nrun $A", True),
        ("A=1\nif a; then if b; then c; fi; A=2; fi\nrun $A", False),
         ("A=1\ncase $X in a) A=2;; esac\nrun $A", False),
        ("A=1\nfi\nA=2\nrun $A", True), ("for A in 1 2; do run $A; done", False),
         ("while a; do A=2; done; run $A", True),
        ("A=1\nif a; then A=1; fi\nrun $A", True), ("if a; then A=2; fi\nrun $A", False),
         ("A=$(date)\nrun $A", False),
    ],
)  # fmt: skip
def test_a_word_is_told_unless_a_condition_of_the_script_decides_it(script: str, told: bool) -> None:
    (command,) = [one for one in read_script(script).commands if one.words[0].text == "run"]
    assert command.words[-1].is_told == told


def test_lines_are_kept_through_quotes_arrays_and_nested_commands() -> None:
    script = 'A=(--a\n  --b)\nB="--c\n\n--d"\nrun "${A[@]}" $B --e\nbash -c "run\n--f"\n'
    words = [(word.text, word.line) for command in read_script(script).commands for word in command.words]
    first = [("run", 6), ("--a", 1), ("--b", 2), ("--c", 3), ("--d", 5), ("--e", 6)]
    assert words == [*first, ("run", 7), ("--f", 8)]


@pytest.mark.parametrize(
    ("script", "exported"),
    [
        ("A=1\nexport A", {"A": "1"}), ("export A\nA=2", {"A": "2"}), ("declare -x A=3", {"A": "3"}),
        ("declare -i A=3", {}), ("local A=3", {}), ("A=1", {}), ("export A=1 B=2", {"A": "1", "B": "2"}),
        ("export A=1\nA=2", {"A": "2"}),
    ],
)  # fmt: skip
def test_only_what_is_exported_is_in_the_environment(script: str, exported: dict[str, str]) -> None:
    assert {name: word.text for name, word in read_script(script).exported.items()} == exported


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("pretrain_gpt.py --bf16 true", None), ("pretrain_gpt.py --bf16 1", "takes no value"),
        ("pretrain_gpt.py --bf16 --num-layers", "--num-layers has no value"),
        ("pretrain_gpt.py --bf16 --save $X", None), ("pretrain_gpt.py --bf16 --lr $X", "--lr: its value"),
        ("pretrain_gpt.py --bf16 $X", "flags come from outside"), ("pretrain_gpt.py --bf16 --lr $X $Y",
         "flags come"),
    ],
)  # fmt: skip
def test_a_flag_with_a_value_too_many_or_too_few_is_told(line: str, problem: str | None) -> None:
    found = [one.text for one in configuration_of(f"python {line}", "run.sh", "0.18.2").problems]
    assert any(problem in one for one in found) if problem else found == []


LAYOUT_YAML: Final = """
model:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 4
  context_parallel_size: 1
"""
TRAIN: Final = "python pretrain_gpt.py --bf16"


@pytest.mark.parametrize(
    ("text", "ranks", "copies", "node"),
    [
        (LAYOUT_YAML + "data_parallel_size: 8", 64, 8, None),
        (LAYOUT_YAML + "comm_overlap:\n  data_parallel_size: 8", 64, None, None),
        (LAYOUT_YAML + "  world_size: 64", 64, 8, None),
        ("data_parallel_size: 8", None, 8, None),
        ("torchrun --nproc_per_node 8 --nnodes=2 pretrain_gpt.py --bf16", 16, 16, 8),
        ("torchrun --nproc-per-node=8 pretrain_gpt.py --bf16", 8, 8, 8),
        ("torchrun --nproc-per-node=8 --nnodes $NODES pretrain_gpt.py --bf16", None, None, 8),
        ("python -m torch.distributed.run --nproc-per-node 4 pretrain_gpt.py --bf16", 4, 4, 4),
        (f"srun -N 4 -n 32 {TRAIN}", 32, 32, None),
        (f"srun --nodes=4 --ntasks-per-node=8 {TRAIN}", 32, 32, 8),
        (f"WORLD_SIZE=64\n{TRAIN}", 64, 64, None),
        (f"srun -N 2 --ntasks-per-node 8 bash -c '{TRAIN}'", 16, 16, 8),
        (TRAIN, None, None, None),
        (f"#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\nsrun {TRAIN}", 32, 32, 8),
        (f"#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\nsrun {TRAIN}", None, None, 8),
        (f"#SBATCH --gpus-per-node=4\n#SBATCH --ntasks-per-node=1\nsrun {TRAIN}", None, None, 4),
        ("#SBATCH --ntasks-per-node=1\ntorchrun --nproc-per-node $N pretrain_gpt.py --bf16", None, None,
         None),
        ("python scripts/performance/run_script.py -m qwen -mr qwen3_30b_a3b --task pretrain -g h100 -ng 16",
         16, 16, None),
    ],
)  # fmt: skip
def test_each_way_of_starting_a_run_tells_its_ranks_and_the_gpus_of_a_node(
    text: str, ranks: int | None, copies: int | None, node: int | None
) -> None:
    name = "run.yaml" if "size:" in text else "run.sh"
    found = configuration_of(text + "\n", name, "0.16.1").settings
    sizes = (
        found.value("world_size"),
        found.value("data_parallel_size"),
        found.value("launcher.gpus_per_node"),
    )
    assert sizes == (ranks, copies, node)


def test_a_later_value_wins() -> None:
    found = configuration_of("python pretrain_gpt.py --num-layers 2 --num-layers 4", "run.sh").settings
    assert found.value("num_layers") == 4
