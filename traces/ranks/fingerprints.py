"""Fingerprints: numbers that are equal where what they stand for is, and that tell nothing else."""

from hashlib import blake2b
from typing import Final

import numpy as np

from traces.columns import IntArray

_SOME: Final = 4096
"""Of so many rows at the beginning a table is known."""


def of_text(text: str) -> int:
    """Of a text."""
    return _number(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8))


def of_pair(communicator: int, one: int, other: int) -> int:
    """Of two ranks of a communicator, by their places in it, in either order."""
    low, high = sorted((one, other))
    return of_text(f"{communicator} {low} {high}")


def of_columns(*columns: IntArray) -> int:
    """Of columns, by their lengths and their first rows."""
    digest = blake2b(digest_size=8)
    for column in columns:
        digest.update(len(column).to_bytes(8, "big"))
        digest.update(np.ascontiguousarray(column[:_SOME], dtype=np.int64).tobytes())
    return _number(digest)


def _number(digest: blake2b) -> int:
    return int.from_bytes(digest.digest(), "big", signed=True)
