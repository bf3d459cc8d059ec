"""What FSDP asks for: PyTorch's, and Megatron's. Read at core_v0.12.0 to d98e8a64, Bridge v0.3.1 on."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.rules.legacy import BRIDGE, BRIDGE_MAIN, LM, Condition, Rule

_TORCH: Final = "use_torch_fsdp2"
_MEGATRON: Final = "ddp.use_megatron_fsdp"
_FORMAT: Final = "checkpoint.ckpt_format"
_AVERAGE: Final = "ddp.average_in_collective"
_REUSE: Final = "ddp.reuse_grad_buf_for_mxfp8_param_ag"
_VERSION: Final = "ddp.megatron_fsdp_version"
_OPTIMIZER: Final = tuple(
    f"optimizer.{name}"
    for name in ("use_precision_aware_optimizer", "optimizer_cpu_offload", "optimizer_cuda_graph")
)


def _torch(*conditions: Condition) -> Condition:
    return lambda c: all_of(c.on(_TORCH), *(condition(c) for condition in conditions))


def _megatron(*conditions: Condition) -> Condition:
    return lambda c: all_of(c.on(_MEGATRON), *(condition(c) for condition in conditions))


RULES: Final = (
    Rule(
        "torch-fsdp-experts",
        (_TORCH, "expert_model_parallel_size"),
        "PyTorch's FSDP2 does not go with experts over ranks",
        _torch(lambda c: c.more_than_one(c.ep)),
        "megatron_lm",
        LM,
        "Megatron-FSDP instead",
        fix="MEM-10",
    ),
    Rule(
        "torch-fsdp-pipeline",
        (_TORCH, "pipeline_model_parallel_size"),
        "PyTorch's FSDP2 does not go with pipeline stages",
        _torch(lambda c: c.more_than_one(c.pp)),
        "megatron_lm",
        LM,
        "pipeline_model_parallel_size 1",
    ),
    Rule(
        "torch-fsdp-optimizer",
        (_TORCH, "ddp.use_distributed_optimizer"),
        "PyTorch's FSDP2 does not go with the distributed optimizer",
        _torch(lambda c: c.on("ddp.use_distributed_optimizer")),
        "megatron_lm",
        LM,
        "ddp.use_distributed_optimizer off",
    ),
    Rule(
        "torch-fsdp-fusion",
        (_TORCH, "gradient_accumulation_fusion"),
        "PyTorch's FSDP2 does not go with gradient_accumulation_fusion",
        _torch(lambda c: c.on("gradient_accumulation_fusion")),
        "megatron_lm",
        LM,
        "gradient_accumulation_fusion off",
    ),
    Rule(
        "torch-fsdp-fp16",
        (_TORCH, "fp16"),
        "PyTorch's FSDP2 does not go with FP16",
        _torch(lambda c: c.on("fp16")),
        "megatron_lm",
        LM,
        "bf16",
    ),
    Rule(
        "torch-fsdp-checkpoint",
        (_TORCH, _FORMAT),
        "PyTorch's FSDP2 writes torch_dist or torch_dcp checkpoints",
        _torch(lambda c: negated(c.one_of(_FORMAT, "torch_dist", "torch_dcp"))),
        "megatron_lm",
        LM,
        "checkpoint.ckpt_format torch_dist",
    ),
    Rule(
        "two-fsdp",
        (_TORCH, _MEGATRON),
        "PyTorch's FSDP2 and Megatron-FSDP exclude each other",
        _torch(lambda c: c.on(_MEGATRON)),
        "ours",
        BRIDGE,
        "one of the two",
    ),
    Rule(
        "megatron-fsdp-checkpoint",
        (_MEGATRON, _FORMAT),
        "Megatron-FSDP writes fsdp_dtensor checkpoints only",
        _megatron(lambda c: negated(c.one_of(_FORMAT, "fsdp_dtensor"))),
        "ours",
        f"{LM}; {BRIDGE}",
        "checkpoint.ckpt_format fsdp_dtensor",
        since="0.14.0",
        fix="MEM-10",
    ),
    Rule(
        "checkpoint-needs-fsdp",
        (_MEGATRON, _FORMAT),
        "fsdp_dtensor checkpoints are Megatron-FSDP's",
        lambda c: all_of(c.one_of(_FORMAT, "fsdp_dtensor"), negated(c.on(_MEGATRON))),
        "ours",
        f"{LM}; {BRIDGE}",
        "checkpoint.ckpt_format torch_dist",
        since="0.14.0",
    ),
    Rule(
        "megatron-fsdp-average",
        (_MEGATRON, _AVERAGE),
        "Megatron-FSDP switches average_in_collective off",
        _megatron(lambda c: c.on(_AVERAGE)),
        "megatron_bridge",
        BRIDGE,
        "ddp.average_in_collective=false",
        level="ignored",
    ),
    Rule(
        "megatron-fsdp-mxfp8-buffer",
        (_MEGATRON, _REUSE),
        "Megatron-FSDP switches reuse_grad_buf_for_mxfp8_param_ag off",
        _megatron(lambda c: c.on(_REUSE)),
        "ours",
        f"{LM}; {BRIDGE}",
        "ddp.reuse_grad_buf_for_mxfp8_param_ag off",
        level="ignored",
        since="0.16.0",
    ),
    Rule(
        "fsdp-buffers-manual",
        ("ddp.fsdp_manual_registration", _MEGATRON, "ddp.nccl_ub"),
        "fsdp_manual_registration is for Megatron-FSDP with NCCL user buffers",
        lambda c: all_of(
            c.on("ddp.fsdp_manual_registration"),
            any_of(negated(c.on(_MEGATRON)), negated(c.on("ddp.nccl_ub"))),
        ),
        "megatron_lm",
        LM,
        "fsdp_manual_registration off",
        since="0.16.0",
    ),
    Rule(
        "megatron-fsdp-2",
        (
            _MEGATRON,
            _VERSION,
            "num_moe_experts",
            "tensor_model_parallel_size",
            "pipeline_model_parallel_size",
        ),
        "Megatron-FSDP v2 takes dense models without TP, PP, CP and EP only",
        _megatron(
            lambda c: c.one_of(_VERSION, 2),
            lambda c: any_of(
                c.on("num_moe_experts"), *(c.more_than_one(size) for size in (c.tp, c.pp, c.cp, c.ep))
            ),
        ),
        "megatron_bridge",
        BRIDGE,
        "ddp.megatron_fsdp_version=1",
        since=BRIDGE_MAIN,
        fix="MEM-10",
    ),
    Rule(
        "megatron-fsdp-2-optimizer",
        (_MEGATRON, _VERSION, *_OPTIMIZER),
        "Megatron-FSDP v2 goes without precision-aware optimizer, optimizer offload and its CUDA graph",
        _megatron(lambda c: c.one_of(_VERSION, 2), lambda c: any_of(*(c.on(knob) for knob in _OPTIMIZER))),
        "megatron_bridge",
        BRIDGE,
        "ddp.megatron_fsdp_version=1",
        since=BRIDGE_MAIN,
        fix="MEM-10",
    ),
    Rule(
        "fsdp-and-sharded-attention",
        (_TORCH, _MEGATRON, "tensor_model_parallel_size", "context_parallel_size"),
        "before Blackwell FSDP and TP or CP want different CUDA_DEVICE_MAX_CONNECTIONS",
        lambda c: all_of(
            any_of(c.on(_TORCH), c.on(_MEGATRON)),
            c.before_blackwell(),
            any_of(c.more_than_one(c.tp), c.more_than_one(c.cp)),
        ),
        "ours",
        LM,
        "TP and CP 1 with FSDP",
        level="warning",
        fix="COM-13",
    ),
)
