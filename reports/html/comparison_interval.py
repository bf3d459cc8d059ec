"""The difference on a line: its interval, zero and the gate's limit, as places in percent of the width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reports.comparison.figures import signed, signed_percent
from reports.document import Document

_MARGIN: Final = 0.12
"""Of the line, left free on either side of what stands on it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One place on the line, what it is called, and where its text lies: `start`, `middle` or `end` of it."""

    percent: str
    words: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Range:
    """The interval: from where to where, how wide, and its words."""

    low: str
    high: str
    width: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class IntervalLine:
    """`interval` is None where there is none, `gate` where none was asked for; `said` is all in words."""

    zero: Mark
    value: Mark
    interval: Range | None
    gate: Mark | None
    said: str


def interval_line(document: Document) -> IntervalLine | None:
    """The picture of `size`; None where the runs are not comparable, so that the difference says nothing."""
    size, gate = document["size"], document["gate"]
    if document["verdict"] == "not_comparable":
        return None
    ends = [size[key] for key in ("low_frac", "high_frac") if size[key] is not None]
    limits = [gate["limit_frac"]] if gate else []
    axis = _Axis([0.0, size["delta_frac"], *ends, *limits])
    value = f"{signed(size['delta_ns'])} ms, {signed_percent(size['delta_frac'])}"
    return IntervalLine(
        zero=axis.mark(0.0, "0: no difference"),
        value=axis.mark(size["delta_frac"], value),
        interval=axis.range(ends, _ends_words(size)) if ends else None,
        gate=axis.mark(gate["limit_frac"], f"gate {signed_percent(gate['limit_frac'])}") if gate else None,
        said=_said(document),
    )


class _Axis:
    def __init__(self, values: list[float]) -> None:
        low, high = min(values), max(values)
        room = (high - low) * _MARGIN or 1.0
        self._start, self._length = low - room, high - low + 2 * room

    def mark(self, value: float, words: str) -> Mark:
        share = self._share(value)
        anchor = "start" if share < 0.4 else "end" if share > 0.6 else "middle"
        return Mark(_percent(share), words, anchor)

    def range(self, ends: list[float], words: str) -> Range:
        low, high = map(self._share, ends)
        return Range(_percent(low), _percent(high), _percent(high - low), self.mark(sum(ends) / 2, words))

    def _share(self, value: float) -> float:
        return (value - self._start) / self._length


def _percent(share: float) -> str:
    return f"{share * 100:.3f}%"


def _ends_words(size: Document) -> str:
    return f"{size['level_frac'] * 100:g} %: {signed(size['low_ns'])} to {signed(size['high_ns'])} ms"


def _said(document: Document) -> str:
    """The picture in words, for those who do not see it."""
    size, gate = document["size"], document["gate"]
    said = [f"{signed(size['delta_ns'])} ms ({signed_percent(size['delta_frac'])})"]
    said.append("no interval" if size["low_ns"] is None else f"interval {_ends_words(size)}")
    if gate:
        said.append(f"limit of the gate {signed_percent(gate['limit_frac'])}")
    return f"The difference on a line: {', '.join(said)}."
