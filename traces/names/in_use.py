"""Names of a recording -> what the run does already, so that nobody advises it, by rows of
`in_use.toml`.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal, get_args

from traces.patterns import Pattern
from traces.toml_tables import TableRow, read_table

Loader = Literal["dali", "ffcv", "tf_data"]
InUse = Loader | Literal["compiled", "fused_optimizer", "rollout_engine", "rocm"]
"""`compiled`: by torch.compile; `dali`, `ffcv`, `tf_data`: loaders that are not
PyTorch's; `rollout_engine`: vLLM, SGLang; `rocm`: AMD."""


class _Row(TableRow):
    use: InUse
    what: Literal["kernels", "ranges", "threads", "frames", "calls"]
    pattern: Pattern
    source: str


@cache
def _rows() -> tuple[_Row, ...]:
    return read_table("traces.names", "in_use.toml", dict[str, tuple[_Row, ...]])["rows"]


def in_use(names: Mapping[str, Iterable[str]]) -> tuple[InUse, ...]:
    """What names show; `names`: those of kernels, ranges, threads, frames and calls."""
    return tuple(
        dict.fromkeys(
            row.use for row in _rows() if any(map(row.pattern.search, names.get(row.what, ())))
        )
    )


def is_of_loader(frame: str) -> bool:
    """Whether a frame of Python is of a loader that is not PyTorch's."""
    for row in _rows():
        if row.what == "frames" and row.use in get_args(Loader) and row.pattern.search(frame):
            return True
    return False
