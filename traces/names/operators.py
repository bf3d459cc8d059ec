"""Operators whose multiplications follow from the shapes of their arguments, by
`operators.toml`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

from traces.toml_tables import TableRow, read_table

Rule = Literal[
    "matrix",
    "batched",
    "linear",
    "attention",
    "attention_backward",
    "convolution",
    "convolution_backward",
]
"""How the multiplications follow from the shapes."""

Dtype = Literal["fp64", "fp32", "fp16", "bf16", "fp8", "int8"]

DTYPES: Final[Mapping[str, tuple[Dtype, int]]] = {
    **dict.fromkeys(("double", "c10::Double"), ("fp64", 8)),
    **dict.fromkeys(("float", "c10::Float"), ("fp32", 4)),
    "c10::Half": ("fp16", 2),
    "c10::BFloat16": ("bf16", 2),
    "c10::Float8_e4m3fn": ("fp8", 1),
    "c10::Float8_e5m2": ("fp8", 1),
    "signed char": ("int8", 1),
}
"""Type of an argument as the profiler writes it ("Input type") -> its name here, and bytes of an
element."""


class Operator(TableRow):
    """One row: what the multiplications follow from, and the places of the arguments that say
    so.
    """

    rule: Rule
    at: tuple[int, ...]


@cache
def operators() -> Mapping[str, Operator]:
    """Every operator of the table by its name."""
    return read_table("traces.names", "operators.toml", dict[str, Operator])
