"""Two of anything that a reader gives, compared with all that is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def assert_same(first: Any, second: Any, *but: str) -> None:
    """Both hold the same, but for fields of these names. The AssertionError names the first that differs."""
    assert (found := difference(first, second, but)) is None, f"other {found}"


def difference(first: Any, second: Any, but: tuple[str, ...], path: str = "value") -> str | None:
    """Where two values differ, None where they do not."""
    if is_dataclass(first) and type(first) is type(second):
        names = [one.name for one in fields(first) if one.name not in but]
        parts = [(f"{path}.{name}", getattr(first, name), getattr(second, name)) for name in names]
    elif isinstance(first, Mapping) and isinstance(second, Mapping) and first.keys() == second.keys():
        parts = [(f"{path}[{key}]", first[key], second[key]) for key in first]
    elif isinstance(first, list | tuple) and type(first) is type(second) and len(first) == len(second):
        parts = [(path, *both) for both in zip(first, second, strict=True)]
    elif isinstance(first, np.ndarray):
        return None if np.array_equal(first, second, equal_nan=first.dtype.kind == "f") else path
    else:
        return None if first == second or (first != first and second != second) else path
    return next((found for name, one, other in parts if (found := difference(one, other, but, name))), None)
