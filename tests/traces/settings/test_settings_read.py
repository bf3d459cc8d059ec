"""Configuration files of every kind, read into the same knobs, and words of a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.places import DATA
from traces.settings.expressions import pattern_of
from traces.settings.read import configuration_of, read_configuration
from traces.settings.settings import Value
from traces.settings.values import layout_of, stage_count, unrolled

SETTINGS = DATA / "settings"


def read(text: str, name: str = "run.sh", core: str | None = None) -> dict[str, Value]:
    found = configuration_of(text, name, core).settings.by_knob
    return {knob: setting.value for knob, setting in found.items()}


def test_a_configuration_said_to_be_empty_tells_nothing() -> None:
    assert read("{}\n", "run.yaml") == {}


DUMPED = "model:\n  _target_: megatron.bridge.models.gpt_provider.GPTModelProvider\n"


@pytest.mark.parametrize(
    ("fields", "modules"),
    [
        ("cuda_graph_modules: [attn]\n  cuda_graph_scope: null", ("attn",)),
        ("cuda_graph_modules: full\n  cuda_graph_scope: [moe_router]", ("moe_router",)),
        ("cuda_graph_scope: [moe_router]\n  cuda_graph_modules: full", ("moe_router",)),
    ],
)
def test_an_older_name_in_a_dump_counts_where_it_is_set_and_is_no_problem(
    fields: str, modules: tuple[str, ...]
) -> None:
    found = configuration_of(f"{DUMPED}  {fields}\n  enable_cuda_graph: false\n", "dump.yaml", "0.20.0")
    assert found.settings.value("cuda_graph_modules") == modules
    assert found.problems == ()


def test_a_dump_may_hold_a_set_and_functions_of_any_module() -> None:
    text = f"{DUMPED}  activation_func:\n    _call_: false\n    _target_: megatron.core.fusions.quick_gelu\n"
    found = configuration_of(f"{text}peft:\n  params_to_save: !!set {{}}\n", "dump.yaml")
    assert found.settings.value("activation_func") == "quick_gelu"
    assert found.problems == ()


def test_a_functional_test_merges_its_base_and_keeps_later_runs_out() -> None:
    text = (
        "BASE: &base\n  --num-layers: 4\n  --hidden-size: 8\n"
        "MODEL_ARGS:\n  <<: *base\n  --hidden-size: 16\n  --recompute-modules: '[moe_act layernorm]'\n"
        "MODEL_ARGS_2:\n  --hidden-size: 32\nTEST_TYPE: regular\n"
    )
    found = configuration_of(text, "model_config.yaml")
    assert found.settings.value("num_layers") == 4
    assert found.settings.value("hidden_size") == 16
    assert found.settings.value("recompute_modules") == ("moe_act", "layernorm")
    assert found.problems == ()


def test_nothing_of_bridge_is_defaulted() -> None:
    found = read_configuration(SETTINGS / "overrides.txt").settings
    assert {setting.said for setting in found.by_knob.values()} == {
        f"overrides.txt:{n}" for n in range(2, 10)
    }
    assert found.value("recompute_modules") == ("moe_act", "layernorm")
    assert "recompute_method" in found
    assert found.value("env.NCCL_NVLS_ENABLE") == "0"


def test_the_arguments_of_a_log_are_read_behind_a_rank() -> None:
    found = read_configuration(SETTINGS / "log.txt")
    value = found.settings.value
    assert value("cuda_graph_modules") == ("attn", "moe_router")
    assert value("moe_layer_freq") == (0, 1, 1, 1)
    assert value("recompute_modules") == ("moe_act", "layernorm")
    assert value("share_embeddings_and_output_weights") is False
    assert value("num_query_groups") is None
    assert value("virtual_pipeline_model_parallel_size") == 2
    assert found.settings.said("num_layers") == "log.txt:14"
    assert found.versions == {"core_at_least": "0.16.0", "core_before": "0.17.0"}
    assert "moe_flex_dispatcher_num_sms" not in found.settings
    assert found.problems == ()


def test_arguments_that_break_off_are_a_problem_and_get_no_defaults() -> None:
    whole = (SETTINGS / "log.txt").read_text(encoding="utf-8")
    found = configuration_of(whole.partition("0: -----")[0] + whole[50:600], "log.txt")
    assert [one.text for one in found.problems] == ["the arguments end before their last line"]
    assert "moe_router_topk" not in found.settings


SPELLINGS = {
    "a.sh": "pretrain_gpt.py --num-experts 8 --moe-grouped-gemm --recompute-modules moe_act layernorm",
    "a.yaml": "model:\n  num_moe_experts: 8\n  moe_grouped_gemm: true\n"
    "  recompute_modules: [moe_act, layernorm]\n",
    "a.json": '{"model": {"num_moe_experts": 8,\n\t"moe_grouped_gemm": true,'
    ' "recompute_modules": ["moe_act", "layernorm"]}}',
    "a.txt": "model.num_moe_experts=8\nmodel.moe_grouped_gemm=true\n"
    "model.recompute_modules=[moe_act, layernorm]\n",
    "b.yaml": "num_experts: 8\nmoe_grouped_gemm: true\nrecompute_modules: [moe_act, layernorm]\n",
    "c.yaml": "MODEL_ARGS:\n  --num-experts: 8\n  --moe-grouped-gemm: true\n"
    "  --recompute-modules: moe_act layernorm\n",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_same_run_is_the_same_in_every_spelling(name: str) -> None:
    found = read(SPELLINGS[name], name)
    assert found["num_moe_experts"] == 8
    assert found["moe_grouped_gemm"] is True
    assert found["recompute_modules"] == ("moe_act", "layernorm")


def test_flags_hidden_in_a_variable_leave_no_default_certain() -> None:
    found = configuration_of("python pretrain_gpt.py $MODEL_ARGS --bf16 --num-layers 4", "run.sh")
    assert "moe_router_topk" not in found.settings
    assert found.settings.value("num_layers") == 4
    assert any("flags come from outside" in problem.text for problem in found.problems)


def test_a_condition_inside_quotes_leaves_their_flags_unknown() -> None:
    script = 'A="--bf16"\nif [ $X ]; then A="$A --fp8-format hybrid"; fi\nbash -c "python pretrain_gpt.py $A"'
    assert not {"bf16", "fp8"} & read(script).keys()


def test_a_text_that_a_condition_lengthens_keeps_what_it_had() -> None:
    script = 'A="--bf16"\nif [ $X ]; then A="$A --fp8-format hybrid"; fi\npython pretrain_gpt.py $A'
    found = read(script)
    assert found["bf16"] is True
    assert "fp8" not in found


def test_a_recipe_that_bridge_does_not_register_stops_the_run_and_the_nearest_are_named(
    tmp_path: Path,
) -> None:
    file = tmp_path / "run.yaml"
    text = "model:\n  num_layers: 2\ntrain:\n  micro_batch_size: 1\nddp:\n  overlap_grad_reduce: true\n"
    file.write_text(text + "mixed_precision: bf16_with_mxfp8_mxied\n", encoding="utf-8")
    (problem,) = read_configuration(file).problems
    assert problem.effect == "stops"
    assert problem.text.startswith("mixed_precision takes bf16_with_mxfp8_mixed, ")
    assert problem.instead == "bf16_with_mxfp8_mixed or fp16_with_mxfp8_mixed"


def test_layer_patterns_and_layouts_are_unrolled() -> None:
    assert pattern_of("([0]*3+[1]*2)*2") == [0, 0, 0, 1, 1] * 2
    assert unrolled("Et*2|(t|)*2mL") == "Ett|t|t|mL"
    assert stage_count("Et*3|(tt|)*29m|L") == 32
    assert layout_of([["embedding", "decoder"], ["mtp", "loss"]]) == "Et|mL"
    assert stage_count("(t|)*9999*9999") is None
    with pytest.raises(ValueError):  # noqa: PT011
        pattern_of("[1]*9999")
