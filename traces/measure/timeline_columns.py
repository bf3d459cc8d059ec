"""What columns of a timeline point to, and which of too many rows they keep."""

from collections.abc import Callable
from typing import Any

import numpy as np

from traces.columns import IntArray, distinct


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
