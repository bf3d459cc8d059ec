"""The shape of one step as it ran: columns of one length by stream, by host thread and of lost time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from traces.columns import IntArray, distinct


@dataclass(frozen=True, slots=True)
class Lane:
    """What ran on one stream, in order; all tuples of one length.

    `at_ns` is the start, from the beginning of the timeline. `key` and `name` index those of the timeline;
    `name` is -1 for copies and for kernels without one. `launch_ns` is when the call that launched it began,
    from the beginning of the timeline as well; None where that was not recorded.
    """

    stream: int
    at_ns: tuple[int, ...]
    length_ns: tuple[int, ...]
    key: tuple[int, ...]
    name: tuple[int, ...]
    launch_ns: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class HostLane:
    """CUDA calls or NVTX ranges of one launching thread that lie apart; those within others are one deeper.

    `name` is -1 for a range whose text is not one that may leave the recording.
    """

    thread: int
    kind: Literal["calls", "ranges"]
    depth: int
    at_ns: tuple[int, ...]
    length_ns: tuple[int, ...]
    name: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReasonLane:
    """Stretches without compute, in order; `at_ns` as in `Lane`, `reason` indexes `reasons`.

    `left_out`: shorter stretches that are not among them.
    """

    at_ns: tuple[int, ...]
    length_ns: tuple[int, ...]
    reason: tuple[int, ...]
    reasons: tuple[str, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class StepTimeline:
    """One step, or the window where there are no steps.

    `step` is its index as recorded, None for a window. `reasons` is None where time without compute is not
    explained. `left_out` counts activities, `host_left_out` calls and ranges that are not in the columns.
    """

    step: int | None
    start_ns: int
    end_ns: int
    keys: tuple[str, ...]
    names: tuple[str, ...]
    lanes: tuple[Lane, ...]
    reasons: ReasonLane | None
    left_out: int
    host: tuple[HostLane, ...]
    host_left_out: int


class Texts:
    """Texts that columns point to, in the order in which they were first met."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}

    def listed(self) -> tuple[str, ...]:
        """All of them, each at its place."""
        return tuple(self._place)

    def places(
        self, codes: IntArray, text_of: Callable[[int], str | None], order: Callable[[int], Any] = int
    ) -> IntArray:
        """The place of each code's text, new ones in `order`; -1 for no code (below 0) or no text."""
        known = distinct(codes[codes >= 0])
        place = np.full(len(known) + 1, -1, dtype=np.int64)  # the last is for no text
        for at in sorted(range(len(known)), key=lambda one: order(int(known[one]))):
            text = text_of(int(known[at]))
            if text is not None:
                place[at] = self._place.setdefault(text, len(self._place))
        return place[np.where(codes >= 0, np.searchsorted(known, codes), -1)]


def longest(length_ns: IntArray, most: int) -> IntArray:
    """Places of the longest, shape (most,) at most, in order of place; of equal ones the first."""
    if len(length_ns) <= most:
        return np.arange(len(length_ns))
    return np.sort(np.argsort(-length_ns, kind="stable")[:most])
