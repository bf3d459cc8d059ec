"""What Bridge's scripts make of a recipe and flags, and each way of starting a run of its ranks."""

from __future__ import annotations

import pytest

from traces.settings.read import configuration_of
from traces.settings.settings import Configuration, Settings, Value

QWEN = "python run_script.py -m qwen -mr qwen3_235b_a22b -g gb300 -c bf16 -ng 256"
ALL = ("attn", "moe_router", "moe_preprocess")
DISPATCHER, BACKEND = "moe_token_dispatcher_type", "moe_flex_dispatcher_backend"


def _read(text: str, core: str | None = None) -> Settings:
    return configuration_of(text, "run.sh", core).settings


def test_what_a_recipe_sets_is_configured_and_a_flag_wins_over_it() -> None:
    settings = _read(QWEN)
    assert (settings.value(DISPATCHER), settings.value(BACKEND)) == ("flex", "hybridep")
    assert settings.value("cuda_graph_modules") == ("attn", "moe_router", "moe_preprocess")
    assert settings.value("comm_overlap.overlap_moe_expert_parallel_comm") is False
    without = _read(QWEN + " --moe_flex_dispatcher_backend None --cuda_graph_impl none")
    assert (without.value(DISPATCHER), without.value(BACKEND)) == ("alltoall", None)
    assert without.value("cuda_graph_impl") == "none"
    assert "cuda_graph_modules" not in without


@pytest.mark.parametrize(
    ("command", "core", "stages", "backend", "modules", "batch"),
    [
        ("-m deepseek -s v3", None, 4, "hybridep", ("moe_router", "moe_preprocess"), 2048),
        ("-m deepseek -mr deepseek_v3 -cv v1", "0.16.1", 4, "hybridep", ALL, 2048),
        ("-m deepseek -mr deepseek_v3 -cv v2", "0.16.1", 4, "hybridep", ALL, 4096),
        ("-m deepseek -mr deepseek_v3 -cv v1", "0.19.0", 4, "hybridep", ALL, 4096),
        ("-m qwen -mr qwen3_next_80b_a3b", "0.17.0", 2, "hybridep", ALL, 4096),
        ("-m qwen -mr qwen3_next_80b_a3b", "0.16.1", 1, None, (), 4096),
        ("-m kimi -mr kimi_k2 -cv v1", "0.18.0", 4, "hybridep", ("moe_router", "moe_preprocess"), 2048),
    ],
)
def test_a_preset_is_of_its_release_and_variant(
    command: str, core: str | None, stages: int, backend: Value, modules: Value, batch: int
) -> None:
    settings = _read(f"python run_script.py {command} -g gb200 -ng 256", core)
    assert settings.value("pipeline_model_parallel_size") == stages
    assert (settings.value(BACKEND), settings.value("cuda_graph_modules")) == (backend, modules)
    assert settings.value("train.global_batch_size") == batch


def test_presets_of_a_gpu_that_were_not_read_are_unknown_and_not_missing() -> None:
    command = "python run_script.py -m llama -mr llama31_405b -g vr200 -c bf16 -ng 256"
    for core, is_known in (("0.18.2", False), ("0.19.0", True)):
        read = configuration_of(command, "run.sh", core)
        assert read.problems == ()
        assert read.settings.value("launcher.recipe_values_known") is is_known


def test_a_preset_may_offload_layers_and_a_flag_for_recompute_leaves_that() -> None:
    settings = _read("python run_script.py -m llama -mr llama3_70b -g gb200 -ng 64 -cv v1 -rl 4", "0.18.2")
    assert (settings.value("cpu_offloading"), settings.value("cpu_offloading_num_layers")) == (True, 20)
    assert (settings.value("recompute_num_layers"), settings.value("ddp.use_megatron_fsdp")) == (4, True)


@pytest.mark.parametrize(
    ("command", "core", "instead"),
    [
        ("-mr gpt_oss_120b -g h100 -c fp8_mx", None, ["-c bf16 or -c fp8_cs"]),
        ("-mr gpt_oss_120b -g h100 -c fp8_cs", "0.18.2", []),
        ("-mr deepseek_v3 -g gb200 -c nvfp4", "0.16.1", ["-c bf16 or -c fp8_cs or -c fp8_mx"]),
        ("-mr deepseek_v3 -g gb200 -c nvfp4", None, []),
        ("-mr kimi_k2 -g b300 -c bf16", "0.16.1", ["a GPU that has a preset"]),
        ("-mr gpt_oss_120b -g h100 -c fp8_mx -cv large_scale", "0.18.2", []),
    ],
)
def test_the_scripts_stop_where_no_preset_has_the_precision(
    command: str, core: str | None, instead: list[str]
) -> None:
    read = configuration_of(f"python run_script.py -m any -ng 64 {command}", "run.sh", core)
    assert [one.instead for one in read.problems if one.effect == "stops"] == instead


@pytest.mark.parametrize(
    "other", ["-g gb300 -c fp8_sc", "-g gb300 -cv large_scale", "-g h200", "-g gb300 --task sft", ""]
)
def test_a_preset_that_the_table_does_not_have_stays_unknown(other: str) -> None:
    settings = _read(f"python run_script.py -m qwen -mr qwen3_235b_a22b -ng 256 {other}")
    assert settings.value("num_moe_experts") == 128
    assert not {DISPATCHER, "pipeline_model_parallel_size", "cuda_graph_impl"} & set(settings.by_knob)


@pytest.mark.parametrize(
    ("gpu", "core", "dispatcher", "backend"),
    [
        *(("h100", "0.19.0", "flex", "deepep"), ("gb300", "0.19.0", "alltoall", None)),
        *(("gb300", None, "alltoall", None), ("gb300", "0.18.2", "flex", "hybridep")),
    ],
)
def test_the_scripts_fall_back_from_deepep_by_gpu_and_release(
    gpu: str, core: str | None, dispatcher: Value, backend: Value
) -> None:
    settings = _read(QWEN.replace("gb300", gpu) + " --moe_flex_dispatcher_backend deepep", core)
    assert (settings.value(DISPATCHER), settings.value(BACKEND)) == (dispatcher, backend)
    assert ("launcher.flex_backend" in settings) == (gpu == "gb300")


@pytest.mark.parametrize(
    ("task", "core", "stops"),
    [
        ("lora", "0.19.0", 1), ("peft", "0.19.0", 0), ("lora", "0.18.2", 0), ("peft", "0.18.2", 1),
        ("lora", None, 0),
    ],
)  # fmt: skip
def test_a_task_is_one_of_its_release(task: str, core: str | None, stops: int) -> None:
    command = (
        f"python scripts/performance/run_script.py -m qwen -mr qwen3_30b_a3b --task {task} -g h100 -ng 16"
    )
    read = configuration_of(command, "run.sh", core)
    assert sum(one.effect == "stops" for one in read.problems) == stops


LAYOUT = """
model:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 4
  context_parallel_size: 1
"""
HARNESS = "python scripts/performance/run_script.py -m qwen -mr qwen3_30b_a3b --task pretrain "


def read(text: str, name: str = "run.yaml") -> Configuration:
    return configuration_of(text, name, "0.16.1")


def test_w5_a_field_for_the_ranks_that_bridge_does_not_have_is_named_with_the_option_that_takes_it() -> None:
    problems = read(LAYOUT + "  world_size: 64\n").problems
    assert [problem.instead for problem in problems] == ["--world-size N of moe-diag in its place"]


@pytest.mark.parametrize(
    ("flags", "core", "batch"),
    [
        ("-ng 16", "0.16.1", 1024), ("-ng 32", "0.16.1", 2048), ("-ng 32 -tp 2", "0.16.1", 2048),
        ("-ng 32 -tp 2", "0.19.0", 1024), ("-ng 32 -gb 512", "0.19.0", 512), ("", "0.19.0", None),
        ("-mr gpt_oss_20b -g b300 -c fp8_mx -ng 17", "0.18.0", None),
    ],
)  # fmt: skip
def test_the_batch_of_a_preset_grows_with_the_gpus_and_since_0_6_with_the_data_parallel_ranks(
    flags: str, core: str, batch: int | None
) -> None:
    settings = configuration_of(f"{HARNESS} -g h100 {flags}", "w15.sh", core).settings
    assert settings.value("train.global_batch_size") == batch


@pytest.mark.parametrize(
    ("text", "offline", "in_batch"),
    [
        ("dataset:\n  packed_sequence_specs:\n    packed_sequence_size: 4096\n", True, None),
        ("dataset:\n  packed_sequence_specs:\n    packed_sequence_size: -1\n", False, None),
        ("dataset:\n  packed_sequence_specs: null\n", False, None),
        ("dataset:\n  pack_sequences_in_batch: true\n", None, True),
        ("dataset:\n  enable_offline_packing: true\n  enable_in_batch_packing: false\n", True, False),
        ("dataset:\n  enable_in_batch_packing: true\n", None, True),
    ],
)
def test_item_6_packing_is_read_in_the_spelling_of_every_release(
    text: str, offline: Value, in_batch: Value
) -> None:
    read_ = read("model:\n  bf16: true\n" + text)
    assert not read_.problems
    assert read_.settings.value("dataset.enable_offline_packing") == offline
    assert read_.settings.value("dataset.enable_in_batch_packing") == in_batch


@pytest.mark.parametrize("key", ["env", "env_vars"])
def test_w17_a_yaml_has_a_place_for_the_environment(key: str) -> None:
    found = read(f"model:\n  bf16: true\n{key}:\n  NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN: 64\n")
    assert found.settings.value("env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN") == "64"
    assert not found.problems


def test_a_window_of_attention_is_read_as_its_two_sizes() -> None:
    text = "torchrun pretrain_gpt.py --bf16 --window-size '(128, 0)' --window-attn-skip-freq 2"
    settings = read(text, "run.sh").settings
    assert (settings.value("window_size"), settings.value("window_attn_skip_freq")) == ((128, 0), 2)
