"""NVTX range texts that say what a host thread is busy with."""

from __future__ import annotations

import re
from typing import Final

_COLLECTOR: Final = re.compile(r"(?<![a-z])(?:gc|garbage[\s_-]?collect\w*)(?![a-z])", re.IGNORECASE)
_LOADER: Final = re.compile(
    r"data[\s_]?loader|data[\s_]?(?:load|fetch|iter)\w*|(?:get|next|load|fetch)[\s_]?batch|batch[\s_]?(?:load|fetch)",
    re.IGNORECASE,
)


def is_collector_name(text: str) -> bool:
    """Whether a range is Python's garbage collection, traced by nsys or named by the program."""
    return _COLLECTOR.search(text) is not None


def is_loader_name(text: str) -> bool:
    """Whether a range is the fetching of input data."""
    return _LOADER.search(text) is not None
