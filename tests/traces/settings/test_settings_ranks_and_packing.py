"""What every way of starting a run says of its ranks, its GPU, its model and its data.

Rows name what they answer: W and item numbers of the audit of the guides.
"""

from __future__ import annotations

import pytest

from traces.settings.read import configuration_of
from traces.settings.settings import Configuration, Value

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


def test_items_112_to_115_the_flags_of_the_harness_are_read() -> None:
    settings = read(HARNESS + "-g h100 -c bf16 -ng 16 -gn 8", "w15.sh").settings
    told = {
        "launcher.gpu": "h100",
        "launcher.gpus_per_node": 8,
        "world_size": 16,
        "mixed_precision": "bf16_mixed",
        "num_layers": 48,
        "num_moe_experts": 128,
        "expert_model_parallel_size": 16,
        "train.global_batch_size": 1024,
        "seq_length": 4096,
    }
    assert {knob: settings.value(knob) for knob in told} == told


@pytest.mark.parametrize(
    "named", ["-m qwen -mr qwen3_30b_a3b", "-m qwen3 -s 30b_a3b", "--model_name qwen3 --model_size 30b_a3b"]
)
def test_item_113_a_model_is_known_by_its_recipe_or_by_family_and_size(named: str) -> None:
    settings = read(f"python run_script.py {named} -g h100 -ng 16", "w15.sh").settings
    assert (settings.value("num_layers"), settings.value("mixed_precision")) == (48, "bf16_mixed")


def test_a_flag_outweighs_what_its_recipe_sets() -> None:
    settings = read(HARNESS + "-g h100 -ng 16 -ep 8", "w15.sh").settings
    assert (settings.value("expert_model_parallel_size"), settings.said("expert_model_parallel_size")) == (
        8,
        "w15.sh:1",
    )


@pytest.mark.parametrize(
    ("flags", "core", "batch"),
    [
        ("-ng 16", "0.16.1", 1024),
        ("-ng 32", "0.16.1", 2048),
        ("-ng 64", "0.19.0", 4096),
        ("-ng 32 -tp 2", "0.16.1", 2048),
        ("-ng 32 -tp 2", "0.19.0", 1024),
        ("-ng 32 -gb 512", "0.19.0", 512),
    ],
)
def test_the_batch_of_a_preset_grows_with_the_gpus_and_since_0_6_with_the_data_parallel_ranks(
    flags: str, core: str, batch: int
) -> None:
    settings = configuration_of(f"{HARNESS} -g h100 {flags}", "w15.sh", core).settings
    assert settings.value("train.global_batch_size") == batch


def test_the_stages_of_a_recipe_are_cut_as_it_cuts_them() -> None:
    text = "python run_script.py -m deepseek -mr deepseek_v3 -g gb200 -c fp8_mx -ng 256 -pp 8 -vp 2"
    settings = read(text, "run.sh").settings
    assert settings.value("pipeline_model_parallel_layout") == "Et*4|(t*4|)*14tmL"


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
