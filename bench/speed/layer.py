"""A layer of the made-up run: its kernels, with name, stream, mean length and shape (kernels.csv)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple


class Kernel(NamedTuple):
    """One kind of kernel."""

    name: str
    short: str
    stream: int
    mean_ns: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_bytes: int


def _kernel(row: Mapping[str, str]) -> Kernel:
    stream, mean_ns, grid, block, registers, shared_bytes = map(int, list(row.values())[1:7])
    shape = (grid, 1, 1), (block, 1, 1)
    return Kernel(row["name"], row["short"], stream, mean_ns, *shape, registers, shared_bytes)


with Path(__file__).with_name("kernels.csv").open(encoding="utf-8", newline="") as _file:
    KERNELS: Final = {row["key"]: _kernel(row) for row in csv.DictReader(_file)}
LAYER: Final = (
    *("norm", "gemm", "elem", "elem", "attn", "gemm", "elem", "ag"),
    *("norm", "gemm", "topk", "elem", "elem", "topk", "perm", "elem"),
    *("a2a", "shared", "shared", "elem", "perm", "elem", "elem", "elem"),
    *("ggemm", "elem", "elem", "ggemm", "elem", "elem", "elem", "elem"),
    *("a2a", "elem", "perm", "elem", "rs", "elem", "elem", "elem"),
)
BLOCKS: Final = (
    ("attention", 0, 8),
    ("router", 8, 16),
    ("dispatch", 16, 24),
    ("experts", 24, 32),
    ("combine", 32, 40),
)
"""Named parts of a layer: first kernel, and the one after the last."""
