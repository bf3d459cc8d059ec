"""Configuration files of every kind, read into the same knobs, and words of a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.places import DATA
from traces.settings.read import configuration_of, read_configuration
from traces.settings.settings import Value

SETTINGS = DATA / "settings"


def read(text: str, name: str = "run.sh", core: str | None = None) -> dict[str, Value]:
    found = configuration_of(text, name, core).settings.by_knob
    return {knob: setting.value for knob, setting in found.items()}


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
