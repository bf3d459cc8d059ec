"""Releases that a run went across."""

import re
from collections.abc import Callable

from heuristics.comparison.configured import Value
from heuristics.result.compared import ComparedChange


def crossed(since: str, at_least: str = "0", until: str = "9999") -> Callable[[ComparedChange], bool]:
    """Whether a version went from below `since`, not below `at_least`, to `since` or above, below `until`."""

    def went(change: ComparedChange) -> bool:
        base, new = _numbers(change.base), _numbers(change.new)
        if base is None or new is None:
            return False
        low, border, high = (_numbers(one) or () for one in (at_least, since, until))
        return low <= base < border <= new < high

    return went


def _numbers(version: Value) -> tuple[int, ...] | None:
    found = re.findall(r"\d+", version) if isinstance(version, str) else []
    return tuple(int(one) for one in found[:4]) or None
