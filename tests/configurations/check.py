"""A run's configuration, log and symptoms as files, for the tests of what a user meets."""

from __future__ import annotations

import json
from pathlib import Path

from tests.configurations.logs import iteration

SCRIPT = """#!/bin/bash
# A mixture of experts of 30 billion parameters on four nodes.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS=8
NODES=4
WORLD_SIZE=$((GPUS * NODES))
MODEL=(
    --num-layers 48 --hidden-size 2048 --ffn-hidden-size 6144
    --num-attention-heads 32 --group-query-attention --num-query-groups 4 --kv-channels 128
    --qk-layernorm --swiglu --normalization RMSNorm --disable-bias-linear
    --untie-embeddings-and-output-weights --position-embedding-type rope
    --seq-length 4096 --max-position-embeddings 4096 --vocab-size 151936
)
MOE=(
    --num-experts 128 --moe-router-topk 8 --moe-ffn-hidden-size 768
    --moe-grouped-gemm --moe-permute-fusion --moe-token-dispatcher-type alltoall
    --moe-router-dtype fp32
)
PARALLEL=(
    --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1
    --expert-model-parallel-size 8 --use-distributed-optimizer
    --overlap-grad-reduce --overlap-param-gather
)
TRAIN=(--bf16 --micro-batch-size 1 --global-batch-size 256 --manual-gc)
torchrun --nproc_per_node $GPUS --nnodes $NODES pretrain_gpt.py \\
    "${MODEL[@]}" "${MOE[@]}" "${PARALLEL[@]}" "${TRAIN[@]}"
"""

BRIDGE = """model:
  num_layers: 48
  hidden_size: 2048
  moe_ffn_hidden_size: 768
  num_attention_heads: 32
  num_moe_experts: 128
  moe_router_topk: 8
  seq_length: 4096
  tensor_model_parallel_size: 1
  pipeline_model_parallel_size: 1
  expert_model_parallel_size: 8
  moe_token_dispatcher_type: alltoall
  overlap_moe_expert_parallel_comm: true
comm_overlap:
  overlap_moe_expert_parallel_comm: true
ddp:
  use_distributed_optimizer: true
mixed_precision: bf16_mixed
train:
  micro_batch_size: 1
  global_batch_size: 256
"""
CONTRADICTS = BRIDGE.replace(
    "  overlap_moe_expert_parallel_comm: true\ncomm_overlap:\n  overlap_moe_expert_parallel_comm: true",
    "  moe_flex_dispatcher_backend: deepep\n"
    "  overlap_moe_expert_parallel_comm: true\ncomm_overlap:\n  overlap_moe_expert_parallel_comm: false",
)
"""A backend without its type, and an overlap that is overwritten."""
ILLEGAL = BRIDGE.replace(
    "comm_overlap:", "  recompute_granularity: full\n  moe_shared_expert_overlap: true\ncomm_overlap:"
)
"""EP overlap beside full recompute, and beside shared-expert overlap."""

COMMUNICATION = {
    "budget_frac": {"compute": 0.70, "exposed_comm": 0.26, "idle": 0.04},
    "exposed_comm_by_kind_frac": {"ep_dispatch": 0.13, "ep_combine": 0.13},
    "hidden_comm_by_kind_frac": {"ep_dispatch": 0.0, "ep_combine": 0.0},
    "absent_frac": {
        "launch_starved": {"launch": 0.04},
        "blocking": {"ep_dispatch": 0.13, "ep_combine": 0.13},
    },
    "detected": {
        "dispatcher": "alltoall", "precision": "bf16", "graph_share_frac": 0.0, "ep_overlap": False,
        "training_step": True,
    },
}  # fmt: skip
"""Exposed expert all-to-all for 26 % of the step."""

ABOUT = ("--gpu-model", "H100", "--core-version", "0.16.1", "--no-megatron")
"""Options of the run, so that what is said does not hang on what is installed."""


def log_lines(step_ms: float = 4000.0, peak_mb: float = 60_000.0, batch: int = 256) -> list[str]:
    """Twenty steady iterations after a slow first, to the end of training, with a report of memory."""
    lengths = [9_000.0, *[step_ms] * 19]
    lines = [iteration(index, ms, total=20, batch=batch) for index, ms in enumerate(lengths, start=1)]
    memory = (
        f"[Rank 0] (after 1 iterations) memory (MB) | allocated: 40000.00 | max allocated: {peak_mb:.2f} |"
        " reserved: 65000.00 | max reserved: 66000.00"
    )
    return [lines[0], memory, *lines[1:]]


def written(folder: Path, name: str, text: str) -> Path:
    """A file of this text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def script(folder: Path) -> Path:
    """The script of Megatron-LM."""
    return written(folder, "train.sh", SCRIPT)


def symptoms(folder: Path) -> Path:
    """The communication wall as symptoms."""
    return written(folder, "symptoms.json", json.dumps(COMMUNICATION))


def log(folder: Path, step_ms: float = 4000.0, batch: int = 256) -> Path:
    """The log of the run."""
    return written(folder, "train.log", "\n".join(log_lines(step_ms, batch=batch)) + "\n")
