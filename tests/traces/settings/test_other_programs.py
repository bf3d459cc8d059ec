"""Configurations of torchtitan and DeepSpeed: what is alike is read, the rest is named."""

from __future__ import annotations

import pytest

from traces.settings.read import configuration_of
from traces.settings.settings import NotAConfiguration

TITAN = """
[model]
name = "llama3"
[training]
local_batch_size = 2
global_batch_size = -1
seq_len = 8192
[parallelism]
tensor_parallel_degree = 4
expert_parallel_degree = 8
"""
SCRIPT = """CONFIG_FILE=./llama3_8b.toml ./run_train.sh --training.seq_len=8192 \\
  --parallelism.tensor_parallel_degree 2
"""
DEEPSPEED = (
    '{"bf16": {"enabled": true}, "zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 1}'
)


def values(text: str, name: str) -> dict[str, object]:
    found = configuration_of(text, name)
    assert [one.text for one in found.problems if "is read" in one.text]
    return {knob: one.value for knob, one in found.settings.by_knob.items()}


def test_a_toml_of_torchtitan_gives_batch_and_sizes() -> None:
    found = values(TITAN, "run.toml")
    assert (found["train.micro_batch_size"], found["seq_length"]) == (2, 8192)
    assert (found["tensor_model_parallel_size"], found["expert_model_parallel_size"]) == (4, 8)
    assert "train.global_batch_size" not in found  # -1: torchtitan computes it


def test_flags_of_torchtitan_are_read_with_their_lines() -> None:
    found = configuration_of(SCRIPT, "run.sh").settings
    assert found.framework == "torchtitan"
    assert (found.value("seq_length"), found.said("seq_length")) == (8192, "run.sh:1")
    assert found.said("tensor_model_parallel_size") == "run.sh:2"


def test_deepspeeds_json_gives_its_stage_and_batch() -> None:
    found = values(DEEPSPEED, "ds.json")
    assert (found["deepspeed.zero_stage"], found["train.micro_batch_size"], found["bf16"]) == (3, 1, True)


def test_a_toml_of_one_section_alone_is_no_torchtitans() -> None:
    with pytest.raises(NotAConfiguration):
        configuration_of('[model]\nname = "llama3"\n', "run.toml")
