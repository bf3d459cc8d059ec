"""MEM-4: activations and weights in FP8 or FP4, for their memory.

Changes the format linear layers keep their inputs and weights in, so that less has to be recomputed or
offloaded. Helps where activations fill memory and the GPU multiplies FP8. Which recipe suits
which GPU is in the guide's table; the same change as CMP-3. Forbidden before a run in a wider precision is
stable, and with Transformer Engine too old for the recipe.
"""

from typing import Final

from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.low_precision import advice, change

FIX: Final = Fix(
    id="MEM-4",
    wall="memory",
    title="Keep activations and weights in FP8",
    change=change,
    advice=advice,
    versions=(
        "Transformer Engine 2.2 for current scaling, 2.3 for blockwise, 2.1 for MXFP8, 2.7 for NVFP4 "
        "(Megatron-Core 0.15); before Megatron-Core 0.16 the padding is spelled moe_router_padding_for_fp8"
    ),
    gains=(
        Gain(
            "16 GB per GPU, 12 % of its activations: DeepSeek-V3, 256 GPUs, PP4 VPP4 EP64",
            "Megatron-Bridge, skills/nemo-mbridge-perf-moe-optimization-workflow/card.yaml at 067f987d",
        ),
    ),
    side_effects=(
        "quantising kernels and their launches: a run near the host wall gets host-bound",
        "padding of token counts adds a wait of the host per layer with the alltoall dispatcher",
        "MXFP8 still gathers BF16 parameters",
        "recompute of moe_act or layernorm beside it needs Transformer Engine 2.6, and no delayed scaling",
        "numerics change: compare the loss",
    ),
    excludes=("CMP-3", "MEM-7"),
    verify="FP8 GEMMs and quantising kernels run; peak memory and recompute fall",
    sources=(
        "Megatron-LM, megatron/core/transformer/moe/README.md and transformer_config.py at d98e8a64",
        "Megatron-Bridge, src/megatron/bridge/training/mixed_precision.py at 067f987d",
        "Megatron-Bridge skill perf-moe-optimization-workflow",
    ),
    wins=("recompute", "allocator"),  # with room, both can go
)
