"""Names of a recording -> the framework whose run it is, by the rows of `frameworks.toml`."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, Literal, get_args

from traces.patterns import Pattern
from traces.toml_tables import TableRow, read_table

Framework = Literal["megatron", "pytorch", "jax", "tensorflow", "none"]
FRAMEWORKS: Final[tuple[Framework, ...]] = get_args(Framework)
"""`megatron`: Megatron-Core, or Transformer Engine, on whatever it stands; `none`: no name shows
any."""


class _Row(TableRow):
    framework: Framework
    what: Literal["kernels", "ranges", "threads", "groups"]
    pattern: Pattern
    source: str


@cache
def _rows() -> tuple[_Row, ...]:
    return read_table("traces.names", "frameworks.toml", dict[str, tuple[_Row, ...]])["rows"]


def framework_by_names(names: Mapping[str, Iterable[str]]) -> Framework:
    """The framework that names show; `names`: those of kernels, ranges, threads and groups.

    Where PyTorch's own kernels run it is not JAX, whatever a Triton kernel or a range is called.
    """
    native = any(
        _shows(row, names) for row in _rows() if (row.framework, row.what) == ("pytorch", "kernels")
    )
    for row in _rows():
        if not (native and row.framework == "jax") and _shows(row, names):
            return row.framework
    return "none"


def _shows(row: _Row, names: Mapping[str, Iterable[str]]) -> bool:
    return any(map(row.pattern.search, names.get(row.what, ())))
