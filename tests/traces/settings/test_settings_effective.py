"""What the frameworks make of settings."""

from __future__ import annotations

import pytest

from tests.places import DATA
from traces.settings.effective import effective, recipe
from traces.settings.knobs import knobs
from traces.settings.read import read_configuration
from traces.settings.settings import Framework, Settings, Value, settings

BRIDGE: Framework = "megatron_bridge"
LM: Framework = "megatron_lm"


def made(values: dict[str, Value], framework: Framework, core: str | None = None) -> Settings:
    return effective(settings(values, "file", framework), core)


def test_comm_overlap_writes_its_default_over_the_models_value() -> None:
    found = effective(read_configuration(DATA / "settings" / "bridge.yaml").settings)
    assert found.value("overlap_moe_expert_parallel_comm") is False
    assert "CommOverlapConfig" in found.said("overlap_moe_expert_parallel_comm")


def test_a_precision_recipe_is_written_over_the_model() -> None:
    found = made({"mixed_precision": "bf16_with_mxfp8_mixed", "bf16": False}, BRIDGE)
    assert (found.value("bf16"), found.value("fp8"), found.value("fp8_recipe")) == (True, "e4m3", "mxfp8")
    assert found.value("ddp.reuse_grad_buf_for_mxfp8_param_ag") is True


def test_every_recipe_of_the_table_has_fields_that_are_knobs() -> None:
    for name in knobs()["mixed_precision"].choices:
        assert recipe(name)
        assert {f"mixed_precision.{field}" for field in recipe(name)} <= knobs().keys()


@pytest.mark.parametrize(
    ("values", "core", "knob", "value"),
    [
        ({"enable_cuda_graph": True}, "0.16.1", "cuda_graph_impl", "local"),
        ({"external_cuda_graph": True}, "0.16.1", "cuda_graph_impl", "transformer_engine"),
        ({"cuda_graph_modules": ("full",)}, "0.16.1", "cuda_graph_modules", ()),
        ({"cuda_graph_impl": "local", "cuda_graph_modules": ("full_iteration",)}, "0.18.0", "cuda_graph_impl",
         "full_iteration"),
        ({"cuda_graph_impl": "local", "cuda_graph_modules": ("full_iteration",)}, "0.17.0", "cuda_graph_impl",
         "local"),
        ({"moe_enable_deepep": True}, "0.16.1", "moe_flex_dispatcher_backend", "deepep"),
        ({"moe_layer_recompute": True}, "0.16.1", "recompute_modules", ("moe",)),
        ({"recompute_granularity": "selective", "recompute_modules": None}, None, "recompute_modules",
         ("core_attn",)),
        ({"moe_deepep_num_sms": 24}, "0.19.0", "moe_flex_dispatcher_num_sms", 24),
        ({"tensor_model_parallel_size": 4, "expert_tensor_parallel_size": None}, None,
         "expert_tensor_parallel_size", 4),
        ({"tensor_model_parallel_size": 1, "sequence_parallel": True}, None, "sequence_parallel", False),
        ({"virtual_pipeline_model_parallel_size": None, "overlap_p2p_comm": True}, None, "overlap_p2p_comm",
         False),
        ({"ddp.use_megatron_fsdp": True}, None, "ddp.use_distributed_optimizer", True),
        ({"cpu_offloading_num_layers": 4}, None, "cpu_offloading", True),
        ({"cuda_graph_impl": "transformer_engine"}, None, "rng.te_rng_tracker", True),
        ({"hidden_size": 1024, "ffn_hidden_size": None}, None, "ffn_hidden_size", 4096),
        ({"hidden_size": 1024, "num_attention_heads": 8, "kv_channels": None}, None, "kv_channels", 128),
    ],
)  # fmt: skip
def test_megatron_lm_migrates_and_fills_in(
    values: dict[str, Value], core: str | None, knob: str, value: Value
) -> None:
    found = made(values, LM, core)
    assert found.value(knob) == value
    assert (knob in values and values[knob] == value) or found.said(knob) != "file"


def test_what_is_made_is_made_once() -> None:
    data = DATA / "settings"
    for name in ("run.sh", "bridge.yaml", "harness.sh", "log.txt"):
        once = effective(read_configuration(data / name).settings)
        assert effective(once) == once
