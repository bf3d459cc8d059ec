"""Matrix work in fewer bits: GEMMs get faster, casts come up, and the host has less time to launch."""

from __future__ import annotations

from typing import Final

from heuristics.comparison.suspects.direction import way
from heuristics.comparison.suspects.rules.rule import Rule, Signs, way_of
from heuristics.comparison.suspects.rules.signs import LAUNCHES
from heuristics.comparison.suspects.view import View
from heuristics.result.told import known

KNOBS: Final = (
    "fp8",
    "fp4",
    "fp8_recipe",
    "fp4_recipe",
    "mixed_precision",
    "mixed_precision.fp8*",
    "mixed_precision.fp4*",
    "precision",
)


def _fewer_bits(view: View) -> Signs:
    signs: tuple[str, ...] = ()
    for change in view.changes("detected.precision"):
        if way(change) == -1:
            return None
        signs += (view.arrow("precision in the trace", change.base, change.new),)
    none, some = view.counts.get("compute.quantize", (0.0, 0.0))
    if not none and some:
        signs += (view.arrow("kernels that cast to fewer bits a step", "0", f"{some:.0f}"),)
    told = [known(rank.detected.precision) for rank in (view.before, view.after)]
    return signs or (() if None in told or told[0] != told[1] else None)


LOWER: Final = Rule(
    id="lower_precision",
    title="Matrix work runs in fewer bits: GEMMs change, and the host's share with them",
    mirrored="Matrix work runs in more bits: GEMMs change, and the host's share with them",
    slower=("compute.quantize", "compute.elementwise", "compute.memory", *LAUNCHES),
    either=("compute.gemm", "compute.grouped_gemm", "compute.attention"),
    seen=_fewer_bits,
    said=KNOBS,
    says=way_of(1),
    next="judge by tokens a second, not by MFU; then try CUDA graphs (HST-3) with the lower precision",
    source=(
        "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64; catalogue of fixes, CMP-3: with "
        "FP8 the peak that MFU is told by doubles, and the host's share grows"
    ),
)

RULES: Final = (LOWER,)
