"""Names of a recording -> the framework whose run it is, by the rows of `frameworks.toml`."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Literal

Framework = Literal["megatron", "pytorch", "jax", "tensorflow", "none"]
FRAMEWORKS: Final[tuple[Framework, ...]] = ("megatron", "pytorch", "jax", "tensorflow", "none")
"""`megatron`: Megatron-Core, or Transformer Engine, on whatever it stands; `none`: no name shows any."""


@dataclass(frozen=True, slots=True)
class _Row:
    framework: Framework
    what: str
    pattern: re.Pattern[str]


@cache
def _rows() -> tuple[_Row, ...]:
    text = files("traces.names").joinpath("frameworks.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["rows"]
    return tuple(_Row(row["framework"], row["what"], re.compile(row["pattern"])) for row in rows)


def framework_by_names(names: Mapping[str, Iterable[str]]) -> Framework:
    """The framework that names show; `names`: those of kernels, ranges, threads and groups.

    Where PyTorch's own kernels run it is not JAX, whatever a Triton kernel or a range is called.
    """
    native = any(_shows(row, names) for row in _rows() if (row.framework, row.what) == ("pytorch", "kernels"))
    rows = (row for row in _rows() if not (native and row.framework == "jax"))
    return next((row.framework for row in rows if _shows(row, names)), "none")


def _shows(row: _Row, names: Mapping[str, Iterable[str]]) -> bool:
    return any(map(row.pattern.search, names.get(row.what, ())))
