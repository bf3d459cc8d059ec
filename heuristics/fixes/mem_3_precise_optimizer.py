"""MEM-3: the optimizer's moments in BF16.

Changes the format that both moments of Adam are kept in between steps, not the one it computes in. Helps
where optimizer state keeps activations out: half of the moments' memory, and no time. Needs the distributed
optimizer, Adam of Transformer Engine, and is refused by Megatron-FSDP 2.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Gain, Knobs, Precondition
from heuristics.fixes.preconditions import already_so, holds, is_not
from heuristics.run.run import Run

_MOMENTS: Final = ("exp_avg_dtype", "exp_avg_sq_dtype")
_WIDE: Final = ("fp32", "float32", "torch.float32")


def knobs(run: Run) -> Knobs:
    """Both moments in BF16; gradients and master weights stay in FP32, which is the default."""
    del run
    return Knobs(
        megatron_lm=(
            "--use-precision-aware-optimizer",
            *(f"--{name.replace('_', '-')} bf16" for name in _MOMENTS),
        ),
        megatron_bridge=(
            "optimizer.use_precision_aware_optimizer=true",
            *(f"optimizer.{name}=bf16" for name in _MOMENTS),
        ),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """What Megatron-Core asserts of the optimizer."""
    distributed, kind = run.config.distributed_optimizer, run.config.first("optimizer.optimizer")
    return (
        *already_so("optimizer.exp_avg_dtype", _narrow(run)),
        holds("it is a training step, with an optimizer", run.active.training, "record a whole step"),
        holds(
            "the optimizer is distributed",
            distributed,
            "--use-distributed-optimizer",
        ),
        holds("the optimizer is Adam", None if kind is None else kind == "adam", "--optimizer adam"),
        is_not("Megatron-FSDP 2 does not run", run.config.second_fsdp, "--megatron-fsdp-version 1"),
    )


def _narrow(run: Run) -> bool:
    formats = [run.config.first(f"optimizer.{name}") for name in _MOMENTS]
    on = run.config.on("optimizer.use_precision_aware_optimizer")
    return on is True and all(one is not None and one not in _WIDE for one in formats)


FIX: Final = Fix(
    id="MEM-3",
    wall="memory",
    title="Keep the optimizer's moments in BF16",
    kinds=(),
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "every Megatron-Core release here. It refuses other formats of the moments without "
        "use_precision_aware_optimizer; Megatron-Bridge wants optimizer.bf16 as model.bf16 beside it"
    ),
    gains=(
        Gain(
            "half of the memory of both moments: 4 of 8 bytes a parameter, over the ranks that share them",
            "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64",
        ),
    ),
    side_effects=(
        "the moments are rounded: compare the loss",
        "checkpoints of the optimizer change their format",
    ),
    excludes=(),
    verify="allocated memory after the first optimizer step falls by 4 bytes for each parameter it steps",
    sources=(
        "Megatron-LM, megatron/core/optimizer/optimizer_config.py and __init__.py at d98e8a64",
        "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64",
        "Megatron-Bridge, src/megatron/bridge/training/config.py at 067f987d (not with Megatron-FSDP 2)",
        "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d",
    ),
    wins=("recompute", "allocator"),  # with room, both can go
)
