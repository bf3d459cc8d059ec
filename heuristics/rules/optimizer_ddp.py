"""What the optimizer, data parallelism and tensor-parallel overlap ask for.

Read at core_v0.12.0 to core_v0.19.0 and d98e8a64 (training/arguments.py, optimizer_config.py,
distributed_data_parallel_config.py); Bridge v0.3.1 to v0.6.0 and 067f987d.
"""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.rules.legacy import BRIDGE_OVERLAP, LM, Condition, Rule

_DISTRIBUTED: Final = "ddp.use_distributed_optimizer"
_FSDP: Final = "ddp.use_megatron_fsdp"
_GATHER: Final = "ddp.overlap_param_gather"
_REDUCE: Final = "ddp.overlap_grad_reduce"
_AWARE: Final = "optimizer.use_precision_aware_optimizer"
_OFFLOAD: Final = "optimizer.optimizer_cpu_offload"
_STEP: Final = "optimizer.overlap_param_gather_with_optimizer_step"
_DTYPES: Final = tuple(
    f"optimizer.{name}"
    for name in ("exp_avg_dtype", "exp_avg_sq_dtype", "main_grads_dtype", "main_params_dtype")
)
_OPTIMIZER: Final = "Megatron-Core, optimizer/optimizer_config.py"
_DDP: Final = "Megatron-Core, distributed/distributed_data_parallel_config.py"
_BUFFERS: Final = "Megatron-Bridge, skill perf-memory-tuning"
_TP_OVERLAP: Final = "tp_comm_overlap"
_BRIDGE_TP_OVERLAP: Final = f"comm_overlap.{_TP_OVERLAP}"


def _expandable(config: Config) -> bool | None:
    return config.holds("env.PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")


def _not_fp32(knob: str) -> Condition:
    return lambda c: negated(c.one_of(knob, None, "fp32", "float32", "torch.float32"))


def _muon(config: Config) -> bool | None:
    name = config.value("optimizer.optimizer")
    return "muon" in name if isinstance(name, str) else None


RULES: Final = (
    Rule(
        "param-gather-optimizer",
        (_GATHER, _DISTRIBUTED, _FSDP),
        "overlap_param_gather needs the distributed optimizer, or Megatron-FSDP",
        lambda c: all_of(c.on(_GATHER), negated(c.on(_DISTRIBUTED)), negated(c.on(_FSDP))),
        "megatron_lm",
        LM,
        "ddp.use_distributed_optimizer on",
        fix="COM-4",
    ),
    Rule(
        "param-gather-reduce",
        (_GATHER, _REDUCE),
        "overlap_param_gather needs overlap_grad_reduce",
        lambda c: all_of(c.on(_GATHER), negated(c.on(_REDUCE))),
        "megatron_lm",
        LM,
        "ddp.overlap_grad_reduce on",
        fix="COM-4",
    ),
    Rule(
        "param-gather-step",
        (_STEP, _DISTRIBUTED, _GATHER, "virtual_pipeline_model_parallel_size"),
        "gathering parameters with the optimizer step needs the distributed optimizer, overlap_param_gather "
        "and virtual stages",
        lambda c: all_of(
            c.on(_STEP),
            any_of(
                negated(c.on(_DISTRIBUTED)),
                negated(c.on(_GATHER)),
                c.null("virtual_pipeline_model_parallel_size"),
            ),
        ),
        "megatron_lm",
        LM,
        "overlap_param_gather_with_optimizer_step off",
    ),
    Rule(
        "precision-aware-distributed",
        (_AWARE, _DISTRIBUTED, "optimizer.use_distributed_optimizer"),
        "the precision-aware optimizer needs the distributed optimizer",
        lambda c: all_of(c.on(_AWARE), negated(_distributed(c))),
        "ours",
        _OPTIMIZER,
        "ddp.use_distributed_optimizer on",
        fix="MEM-3",
    ),
    Rule(
        "precision-aware-adam",
        (_AWARE, "optimizer.optimizer"),
        "the precision-aware optimizer is Adam's",
        lambda c: all_of(c.on(_AWARE), negated(c.one_of("optimizer.optimizer", "adam"))),
        "ours",
        _OPTIMIZER,
        "optimizer adam",
        fix="MEM-3",
    ),
    Rule(
        "optimizer-dtypes",
        (_AWARE, *_DTYPES),
        "moments, main gradients and main parameters are fp32 without the precision-aware optimizer",
        lambda c: all_of(negated(c.on(_AWARE)), any_of(*(_not_fp32(knob)(c) for knob in _DTYPES))),
        "ours",
        _OPTIMIZER,
        "optimizer.use_precision_aware_optimizer on",
        fix="MEM-3",
    ),
    Rule(
        "main-grads-and-fp32-reduce",
        ("ddp.grad_reduce_in_fp32", "optimizer.main_grads_dtype", "bf16"),
        "main gradients are fp32 where gradients are reduced in fp32",
        lambda c: all_of(
            c.on("bf16"), c.on("ddp.grad_reduce_in_fp32"), _not_fp32("optimizer.main_grads_dtype")(c)
        ),
        "megatron_lm",
        LM,
        "optimizer.main_grads_dtype fp32",
    ),
    Rule(
        "optimizer-offload-aware",
        (_OFFLOAD, _AWARE),
        "optimizer offload needs the precision-aware optimizer",
        lambda c: all_of(c.on(_OFFLOAD), negated(c.on(_AWARE))),
        "megatron_lm",
        LM,
        "optimizer.use_precision_aware_optimizer on",
        fix="MEM-3",
    ),
    Rule(
        "optimizer-graph-version",
        ("optimizer.optimizer_cuda_graph",),
        "a CUDA graph of the optimizer came with Megatron-Core 0.17",
        lambda c: c.on("optimizer.optimizer_cuda_graph"),
        "ours",
        "Megatron-LM, tags core_v0.16.1 and core_v0.17.0",
        "Megatron-Core 0.17 or later",
        until="0.17.0",
        fix="HST-8",
    ),
    Rule(
        "muon-overlap",
        ("optimizer.optimizer", _REDUCE, _GATHER, _DISTRIBUTED, _FSDP),
        "Muon goes without overlap of gradients or parameters, distributed optimizer and FSDP",
        lambda c: all_of(_muon(c), any_of(c.on(_REDUCE), c.on(_GATHER), c.on(_DISTRIBUTED), c.on(_FSDP))),
        "megatron_lm",
        f"{LM}, core_v0.16.1",
        "Adam, or these switches off",
        since="0.16.0",
        until="0.18.0",
    ),
    Rule(
        "user-buffers-segments",
        ("ddp.nccl_ub", "env.PYTORCH_CUDA_ALLOC_CONF"),
        "NCCL user buffers do not go with expandable segments before PyTorch 2.11",
        lambda c: all_of(c.on("ddp.nccl_ub"), _expandable(c), c.before("torch", "2.11.0")),
        "ours",
        f"{_DDP}; {_BUFFERS}",
        "one of the two",
        since="0.14.0",
        fix="MEM-1",
    ),
    Rule(
        "tp-overlap-sequence-parallel-lm",
        (_TP_OVERLAP, "sequence_parallel"),
        "tp_comm_overlap needs sequence parallelism",
        lambda c: all_of(c.on(_TP_OVERLAP), negated(c.on("sequence_parallel"))),
        "megatron_lm",
        LM,
        "sequence_parallel on",
        fix="COM-5",
    ),
    Rule(
        "tp-overlap-dropped-bridge",
        (_BRIDGE_TP_OVERLAP, "tensor_model_parallel_size", "sequence_parallel"),
        "Bridge switches tp_comm_overlap off without TP of 2 or more and sequence parallelism",
        lambda c: all_of(
            c.on(_BRIDGE_TP_OVERLAP),
            any_of(negated(c.more_than_one(c.tp)), negated(c.on("sequence_parallel"))),
        ),
        "megatron_bridge",
        BRIDGE_OVERLAP,
        "sequence_parallel on with TP of 2 or more",
        level="ignored",
        fix="COM-5",
    ),
    Rule(
        "cross-entropy-te",
        ("cross_entropy_loss_fusion", "cross_entropy_fusion_impl"),
        "Transformer Engine's fused cross entropy is refused: it was not stable",
        lambda c: all_of(c.on("cross_entropy_loss_fusion"), c.one_of("cross_entropy_fusion_impl", "te")),
        "megatron_lm",
        LM,
        "cross_entropy_fusion_impl native",
        since="0.19.0",
        fix="HST-4",
    ),
)


def _distributed(config: Config) -> bool | None:
    """By either switch, which are one to both frameworks, or by Megatron-FSDP, which sets them."""
    knobs = (_DISTRIBUTED, "optimizer.use_distributed_optimizer", _FSDP)
    known = [config.on(knob) for knob in knobs if config.known(knob)]
    return any(known) if known else None
