"""Runs of which little is known, and what a fix says of them."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.change import NO_LINES
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.result.judged import Knobs
from heuristics.run.run import Run
from traces.settings.settings import Value, settings
from traces.training_log.log import TrainingLog


def need(fix: Fix, run: Run, part: str) -> Precondition:
    (found,) = [one for one in fix.preconditions(run) if part in one.text]
    return found


def states(fix: Fix, part: str, *runs: Run) -> list[str]:
    return [need(fix, run, part).state for run in runs]


COMPLETE: dict[str, Value] = {
    "world_size": 64, "num_layers": 48, "num_attention_heads": 32, "num_query_groups": 8,
    "num_moe_experts": 128, "moe_grouped_gemm": True, "moe_layer_freq": 1,
    "moe_shared_expert_intermediate_size": 2048, "moe_shared_expert_overlap": False,
    "moe_token_dispatcher_type": "alltoall", "gated_linear_unit": True, "multi_latent_attention": False,
    "mtp_num_layers": None, "expert_model_parallel_size": 16, "expert_tensor_parallel_size": 1,
    "tensor_model_parallel_size": 4, "pipeline_model_parallel_size": 2,
    "virtual_pipeline_model_parallel_size": None, "context_parallel_size": 1, "sequence_parallel": True,
    "train.micro_batch_size": 1, "train.global_batch_size": 1024, "bf16": True, "recompute_granularity": None,
    "cuda_graph_impl": "none", "cpu_offloading": False, "fine_grained_activation_offloading": False,
    "overlap_moe_expert_parallel_comm": False, "delay_wgrad_compute": False, "tp_comm_overlap": False,
    "transformer_impl": "transformer_engine", "gradient_accumulation_fusion": True, "add_bias_linear": False,
    "add_qkv_bias": False, "variable_seq_lengths": False, "ddp.use_distributed_optimizer": True,
    "ddp.use_megatron_fsdp": False, "ddp.overlap_grad_reduce": False, "ddp.overlap_param_gather": False,
    "ddp.nccl_ub": False, "optimizer.optimizer": "adam", "optimizer.optimizer_cpu_offload": False,
    "env.CUDA_DEVICE_MAX_CONNECTIONS": "1",
}  # fmt: skip
"""A run of 64 ranks of which everything that fixes ask for is written down: DP 8, 24 layers a stage."""


def configured(*changes: dict[str, Value], log: TrainingLog | None = None, **facts: object) -> Run:
    """A run that only its configuration tells of, and facts that were given."""
    merged = {knob: value for one in changes for knob, value in one.items()}
    return Run(Observed(), replace(Given(), **facts), settings=settings(merged, "config.yaml:1"), log=log)  # type: ignore[arg-type]


def complete(*changes: dict[str, Value], **facts: object) -> Run:
    """The run whose configuration is complete, on H100, with some knobs otherwise."""
    told: dict[str, object] = {"gpu": "H100", "core_version": "0.19.0", "te_version": "2.14.0", **facts}
    return configured(COMPLETE, *changes, **told)  # type: ignore[arg-type]


def spelled_as(**written: tuple[str, ...]) -> Knobs:
    """A change as some ways write it, by the names of the fields."""
    return structs.replace(NO_LINES, **written)
