"""Programs that train with Megatron: their Megatron part is read, their own words are no mistakes."""

from __future__ import annotations

import pytest

from traces.settings.read import configuration_of
from traces.settings.settings import Configuration

VERL = """
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=${ACTOR_TP:-4}
ACTOR=(
  actor_rollout_ref.model.path="Qwen/Qwen3-30B-A3B"
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2
  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=${TP}
  actor_rollout_ref.actor.megatron.expert_model_parallel_size=8
  actor_rollout_ref.actor.megatron.param_offload=True
  +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full
  +actor_rollout_ref.actor.megatron.override_transformer_config.moe_token_dispatcher_type=flex
  +actor_rollout_ref.actor.megatron.override_transformer_config.moe_enable_deepep=True
  actor_rollout_ref.rollout.tensor_model_parallel_size=2
  actor_rollout_ref.ref.megatron.tensor_model_parallel_size=8
)
python3 -m verl.trainer.main_ppo "${ACTOR[@]}" trainer.n_gpus_per_node=8 trainer.nnodes=4 "$@"
"""
NEMO = """
defaults: grpo_math.yaml
grpo: {num_prompts_per_step: 32}
policy:
  model_name: Qwen/Qwen3-30B-A3B
  train_global_batch_size: 512
  train_micro_batch_size: 1
  max_total_sequence_length: 4096
  precision: bfloat16
  megatron_cfg:
    enabled: true
    activation_checkpointing: true
    empty_unused_memory_level: 1
    tensor_model_parallel_size: 4
    context_parallel_size: ${policy.megatron_cfg.expert_tensor_parallel_size}
    expert_tensor_parallel_size: 1
    expert_model_parallel_size: 8
    moe_router_dtype: ${mul:2,32}
    optimizer: {use_distributed_optimizer: true}
    distributed_data_parallel_config: {overlap_grad_reduce: true}
    env_vars: {NCCL_NVLS_ENABLE: "0"}
cluster: {gpus_per_node: 8, num_nodes: 4}
"""
SWIFT = """
PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' NPROC_PER_NODE=8 \\
megatron sft --model Qwen/Qwen3-30B-A3B --dataset someone/private --expert_model_parallel_size 8 \\
  --moe_permute_fusion true --sequence_parallel false --max_length 8192 --packing true
"""
SLIME = """
PERF=(--tensor-model-parallel-size 4 --sequence-parallel --expert-model-parallel-size 8)
ray job submit --address="http://127.0.0.1:8265" -- python3 train.py --actor-num-nodes 2 \\
  --actor-num-gpus-per-node 8 --colocate --hf-checkpoint /root/Qwen3-30B-A3B ${PERF[@]} \\
  --rollout-batch-size 8 --use-dynamic-batch-size --global-batch-size 32
"""


def read(text: str, name: str = "run.sh") -> Configuration:
    return configuration_of(text, name)


def values(found: Configuration, *knobs: str) -> tuple[object, ...]:
    return tuple(found.settings.value(knob) for knob in knobs)


SIZES = ("tensor_model_parallel_size", "expert_model_parallel_size", "world_size", "num_moe_experts")


@pytest.mark.parametrize(
    ("text", "name", "sizes"),
    [
        *((VERL, "run.sh", (4, 8, 32, 128)), (NEMO, "run.yaml", (4, 8, 32, 128))),
        *((SWIFT, "run.sh", (1, 8, 8, 128)), (SLIME, "run.sh", (4, 8, 16, 128))),
    ],
)
def test_sizes_ranks_and_the_named_model_are_read_and_words_of_its_own_are_no_mistakes(
    text: str, name: str, sizes: tuple[int, ...]
) -> None:
    found = read(text, name)
    assert values(found, *SIZES) == sizes
    (problem,) = found.problems
    assert "its Megatron part is read; a setting is written as " in problem.text
    assert problem.effect == "unread"


def test_what_is_the_actors_is_not_the_rollouts() -> None:
    found = read(VERL)
    assert values(found, "moe_token_dispatcher_type", "recompute_granularity") == ("flex", "full")
    assert values(found, "train.micro_batch_size", "sequence_parallel") == (2, True)
    assert values(found, "env.CUDA_DEVICE_MAX_CONNECTIONS") == ("1",)
    assert found.settings.said("sequence_parallel") == "default"


def test_words_that_stand_for_several_settings_and_names_of_other_entries_are_followed() -> None:
    found = read(NEMO, "a.yaml")
    recompute = values(found, "recompute_granularity", "recompute_method", "recompute_num_layers")
    assert recompute == ("full", "uniform", 1)
    assert values(found, "bf16", "seq_length", "context_parallel_size") == (True, 4096, 1)
    assert values(found, "optimizer.use_distributed_optimizer", "ddp.overlap_grad_reduce") == (True, True)
    assert values(found, "env.NCCL_NVLS_ENABLE") == ("0",)
    assert "moe_router_dtype" not in found.settings  # only its resolver could tell


def test_a_yaml_of_verl_is_read_as_its_command_is() -> None:
    text = "actor_rollout_ref:\n  actor:\n    megatron:\n      expert_model_parallel_size: 16\n"
    assert values(read(text, "a.yaml"), "expert_model_parallel_size") == (16,)


def test_switches_with_words_are_on_or_off() -> None:
    found = read(SWIFT)
    assert values(found, "moe_permute_fusion", "sequence_parallel", "seq_length") == (True, False, 8192)
    assert values(found, "env.PYTORCH_CUDA_ALLOC_CONF") == ("expandable_segments:True",)
    assert values(found, "train.global_batch_size", "moe_aux_loss_coeff") == (16, 0.0)


def test_an_unknown_model_gives_no_sizes_and_stops_nothing() -> None:
    found = read(SWIFT.replace("Qwen/Qwen3-30B-A3B", "someone/their-model"))
    assert "num_moe_experts" not in found.settings
    assert values(found, "expert_model_parallel_size") == (8,)
