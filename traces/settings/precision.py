"""Precision of the matrix work: its names, the bits of an element, and which one a configuration has."""

from typing import Final

from traces.settings.settings import KnobView

BITS: Final = {
    "nvfp4": 4,
    "mxfp8": 8,
    "fp8": 8,
    "fp8_blockwise": 8,
    "fp8_rowwise": 8,
    "fp8_per_tensor": 8,
    "fp8_current": 8,
    "fp8_delayed": 8,
    "bf16": 16,
    "fp16": 16,
    "tf32": 32,
    "fp32": 32,
}
"""Bits of a matrix element by the name of its format or recipe; TF32 is stored in 32."""

RECIPES: Final = {
    "fp8_delayed": "delayed",
    "fp8_current": "tensorwise",
    "fp8_blockwise": "blockwise",
    "mxfp8": "mxfp8",
}
"""A precision by our name -> `fp8_recipe` of Megatron-Core."""

_BRIDGE: Final = {
    "delayed_scaling": "fp8_delayed",
    "current_scaling": "fp8_current",
    "subchannel": "fp8_blockwise",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
    "fp8": "fp8",
    "bf16": "bf16",
    "fp16": "fp16",
}
"""Part of a recipe's name in Megatron-Bridge's training/mixed_precision.py (067f987d), what tells most first,
-> precision: for recipes of a run's own, whose fields we do not know."""


def bits_of(precision: str | None) -> int | None:
    """Bits of a matrix element; None where the precision is unknown or mixed."""
    return BITS.get(precision or "")


def low_bytes(precision: str | None) -> float | None:
    """Bytes of a matrix element of eight bits or fewer; None where the precision is wider, or unknown.

    The element alone: block scales (1/32 of MXFP8, 1/16 of NVFP4) are left out.
    """
    bits = bits_of(precision)
    return None if bits is None or bits > 8 else bits / 8


def configured_precision(view: KnobView) -> str | None:
    """Precision by its knobs, over which a named recipe of Megatron-Bridge is written already.

    None where a format is unknown: BF16 alone does not say that the matrices are not in FP8.
    """
    named = view.word("mixed_precision")
    if named and not any(view.known(knob) for knob in ("fp8", "fp4")):
        return next((precision for part, precision in _BRIDGE.items() if part in named), None)
    if view.on("fp4", "mixed_precision.fp4"):
        return "nvfp4"
    if view.on("fp8", "mixed_precision.fp8"):
        recipe = view.first("mixed_precision.fp8_recipe", "fp8_recipe")
        return next((name for name, core in RECIPES.items() if core == recipe), "fp8")
    if view.on("fp8", "mixed_precision.fp8") is None:
        return None
    halves = {name: view.on(name) for name in ("bf16", "fp16")}
    if True in halves.values():
        return next(name for name, is_on in halves.items() if is_on)
    return None if None in halves.values() else "fp32"
