"""What memory is for, by the stack that took it, and what of a stack may be shown."""

from collections.abc import Sequence
from functools import cache
from typing import Final, Literal

from traces.names.frames import public_file
from traces.patterns import Pattern, compiled
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

Taken = Literal["optimizer", "gradients", "backward", "parameters", "forward"]
"""Where in a step memory was taken."""

OWN_CODE: Final = "(own code)"
_FUNCTION: Final = compiled(r"[A-Za-z_]\w{0,60}")
_OURS: Final = compiled(r"(?:torch::autograd|at|c10)::[\w:<>]{1,80}")


class _Row(TableRow):
    category: Taken
    function: Pattern
    file: Pattern | None = None


@cache
def _rows() -> tuple[_Row, ...]:
    return read_table("traces.names", "allocations.toml", dict[str, tuple[_Row, ...]])["rows"]


@cache
def taken(frames: tuple[tuple[str, str], ...]) -> Taken | None:
    """Where in a step a stack took memory; None where no frame tells."""
    for row in _rows():
        for file, function in frames:
            if (row.file is None or row.file.search(file)) and row.function.fullmatch(function):
                return row.category
    return None


@cache
def shown(frames: tuple[tuple[str, str], ...], most: int) -> Texts:
    """Frames of known packages as package path and function, innermost first; all else is own code,
    once.
    """
    texts: list[str] = []
    for file, function in frames:
        text = _shown(file, function)
        if not texts or texts[-1] != text:
            texts.append(text)
        if len(texts) == most:
            break
    return tuple(texts)


def _shown(file: str, function: str) -> str:
    known = public_file(file)
    if known is not None and _FUNCTION.fullmatch(function):
        return f"{known}: {function}"
    if _OURS.fullmatch(function):
        return function
    return OWN_CODE


def category_at_peak(frames: Sequence[tuple[str, str]], *, began: bool, kept: bool) -> str:
    """What memory that is in use at the peak is for. `began`: while recorded; `kept`: in use at the
    end.
    """
    where = taken(tuple(frames))
    if where in ("optimizer", "gradients", "parameters"):
        return where
    if where == "backward":
        if kept:
            return "gradients"
        return "temporary"
    if where == "forward":
        return "activations"
    if began:
        return "unknown"
    return "before_recording"
