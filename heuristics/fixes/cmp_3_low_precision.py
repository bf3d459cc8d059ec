"""CMP-3: GEMMs in FP8 or FP4.

Changes the format linear layers multiply in, the experts' grouped GEMMs above all; the router stays in
FP32. Helps where GEMMs fill the step and neither communication nor the host does; on filled SMs it is a
lever, not a cure. Which recipe suits which GPU is in the guide's table; the same change as MEM-4. Forbidden
before a run in a wider precision is stable, and with Transformer Engine too old for the recipe.
"""

from typing import Final

from heuristics.fixes import mem_4_low_precision
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.low_precision import advice, change

FIX: Final = Fix(
    id="CMP-3",
    wall="compute",
    title="Run GEMMs in low precision",
    kinds=("grouped_gemm", "gemm"),
    change=change,
    advice=advice,
    versions=mem_4_low_precision.FIX.versions,
    gains=(
        Gain(
            "1.2 to 1.5 times on linear layers, typically; less where they are a small part of the step",
            "Megatron-Bridge, docs/performance-guide.md at 067f987d",
        ),
        Gain(
            "MXFP8 against BF16 on 256 GB200: +22 % for DeepSeek-V3, +23 % for Qwen3-235B",
            "per a digest of arXiv 2603.07685",
        ),
    ),
    side_effects=(
        "MFU can look lower, as the peak it is held against is higher: compare tokens/s or TFLOP/s per GPU",
        *mem_4_low_precision.FIX.side_effects,
    ),
    excludes=("MEM-4", "MEM-7"),
    verify=(
        "FP8 GEMMs run, not only quantising kernels; the unprofiled step is shorter. Judge by step time, "
        "not by MFU"
    ),
    sources=mem_4_low_precision.FIX.sources,
    direct=(),  # shorter GEMMs leave as many SMs empty
)
