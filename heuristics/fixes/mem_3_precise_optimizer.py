"""MEM-3: the optimizer's moments in BF16.

Changes the format that both moments of Adam are kept in between steps, not the one it computes in. Helps
where optimizer state keeps activations out: half of the moments' memory, and no time. Needs the distributed
optimizer, Adam of Transformer Engine, and is refused by Megatron-FSDP 2.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import (
    already_so,
    distributed_optimizer,
    no_second_fsdp,
    optimizer_is,
    training,
)
from heuristics.run.run import Run

_PRECISE: Final = "optimizer.use_precision_aware_optimizer"
_MOMENTS: Final = ("optimizer.exp_avg_dtype", "optimizer.exp_avg_sq_dtype")
_WIDE: Final = ("fp32", "float32", "torch.float32")


def change(run: Run) -> Change:
    """Both moments in BF16; gradients and master weights stay in FP32, which is the default."""
    del run
    return Change({_PRECISE: True, **dict.fromkeys(_MOMENTS, "bf16")})


def advice(run: Run) -> tuple[Precondition, ...]:
    """What Megatron-Core asserts of the optimizer."""
    formats = [run.config.first(name) for name in _MOMENTS]
    narrow = all(one is not None and one not in _WIDE for one in formats)
    return (
        *already_so(_MOMENTS[0], narrow and run.config.on(_PRECISE) is True),
        training(run),
        distributed_optimizer(run),
        optimizer_is(run, "the optimizer is Adam", "adam"),
        no_second_fsdp(run),
    )


FIX: Final = Fix(
    id="MEM-3",
    wall="memory",
    title="Keep the optimizer's moments in BF16",
    change=change,
    advice=advice,
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
    verify="allocated memory after the first optimizer step falls by 4 bytes for each parameter it steps",
    sources=(
        "Megatron-LM, megatron/core/optimizer/optimizer_config.py and __init__.py at d98e8a64",
        "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64",
        "Megatron-Bridge, src/megatron/bridge/training/config.py at 067f987d (not with Megatron-FSDP 2)",
        "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d",
    ),
    wins=("recompute", "allocator"),  # with room, both can go
)
