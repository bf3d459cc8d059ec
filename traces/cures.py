"""What to record or type to learn what a trace does not say, in the terms of what recorded it."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from traces.recording.line import recording, schedule
from traces.recording.recorder import NSYS, TORCH, recorded_by
from traces.toml_tables import TableRow, read_table

_OTHERWISE: Final = (
    "record the run with nsys or the PyTorch profiler (moe-diag capture), which can note it"
)
_FILLED: Final[Mapping[str, Callable[[], str]]] = {
    "<schedule>": schedule,
    "<nsys>": lambda: recording().nsys,
}


class _Cure(TableRow):
    """A row of the table; `all`: whoever recorded the trace."""

    nsys: str = ""
    torch: str = ""
    other: str = _OTHERWISE
    all: str = ""


@cache
def _cures() -> dict[str, _Cure]:
    return read_table("traces", "cures.toml", dict[str, _Cure])


def cure(missing: str, kind: str | None) -> str:
    """The cure for what is missing in a trace of this kind (`traces[].kind`); nsys's where there is
    none.

    Raises KeyError for something that no recording would tell.
    """
    row = _cures()[missing]
    recorder = NSYS if kind is None else recorded_by(kind)
    text = row.all or {NSYS: row.nsys, TORCH: row.torch}.get(recorder, row.other)
    for place, fill in _FILLED.items():
        if place in text:
            text = text.replace(place, fill())
    return text


def cures(kind: str) -> dict[str, str]:
    """Every cure for a trace of this kind."""
    return {missing: cure(missing, kind) for missing in _cures()}
