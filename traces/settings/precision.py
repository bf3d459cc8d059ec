"""Precision of the matrix work: its names, the bits of an element, and which one a configuration
has.
"""

from typing import Final

from traces.settings.settings import KnobView
from traces.toml_tables import TableRow, read_table


class _Precision(TableRow):
    """A row of `precisions.toml`, which says what its fields are."""

    bits: int
    recipe: str = ""
    bridge: str = ""


class _Table(TableRow):
    precisions: dict[str, _Precision]
    types: dict[str, str]


_TABLE: Final = read_table("traces.settings", "precisions.toml", _Table)
BITS: Final = {name: row.bits for name, row in _TABLE.precisions.items()}
RECIPES: Final = {name: row.recipe for name, row in _TABLE.precisions.items() if row.recipe}
"""A precision by our name -> `fp8_recipe` of Megatron-Core."""
DTYPES: Final = _TABLE.types
_HALVES: Final = ("bf16", "fp16")


def bits_of(precision: str | None) -> int | None:
    """Bits of a matrix element; None where the precision is unknown or mixed."""
    return BITS.get(precision or "")


def low_bytes(precision: str | None) -> float | None:
    """Bytes of a matrix element of eight bits or fewer; None where the precision is wider, or
    unknown.

    The element alone: block scales (1/32 of MXFP8, 1/16 of NVFP4) are left out.
    """
    bits = bits_of(precision)
    if bits is None or bits > 8:
        return None
    return bits / 8


def configured_precision(view: KnobView) -> str | None:
    """Precision by its knobs, over which a named recipe of Megatron-Bridge is written already.

    None where a format is unknown: BF16 alone does not say that the matrices are not in FP8.
    """
    named = view.word("mixed_precision")
    if named and not any(map(view.known, ("fp8", "fp4"))):
        for name, row in _TABLE.precisions.items():
            if row.bridge and row.bridge in named:
                return name
        return None
    if view.on("fp4", "mixed_precision.fp4"):
        return "nvfp4"
    is_fp8 = view.on("fp8", "mixed_precision.fp8")
    if is_fp8:
        recipe = view.first("mixed_precision.fp8_recipe", "fp8_recipe")
        for name, core in RECIPES.items():
            if core == recipe:
                return name
        return "fp8"
    if is_fp8 is None:
        return None
    for half in _HALVES:
        if view.value(half) is True:
            return half
    if all(map(view.known, _HALVES)):
        return "fp32"
    return None
