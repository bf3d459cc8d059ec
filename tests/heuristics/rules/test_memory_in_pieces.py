"""Memory is in pieces where enough of what is reserved is neither used nor free in one."""

from __future__ import annotations

from typing import Final

import pytest

from heuristics.rules.failures import in_pieces
from traces.training_log.log import LoggedMemory, OutOfMemory, TrainingLog

GB: Final = 10**9


@pytest.mark.parametrize(
    ("inactive", "asked", "allocated", "found"),
    [
        (25, None, None, True), (24, None, None, False), (6, 6, None, True), (5, 6, None, False),
        (25, None, 70, False), (0, None, None, False),
    ],
)  # fmt: skip
def test_fragments_are_a_quarter_of_what_is_reserved_or_what_was_asked_for(
    inactive: int, asked: int | None, allocated: int | None, found: bool
) -> None:
    error = OutOfMemory(
        9,
        "unknown",
        allocated_bytes=allocated and allocated * GB,
        requested_bytes=asked and asked * GB,
    )
    report = LoggedMemory(1, 0, reserved_bytes=100 * GB, inactive_bytes=inactive * GB)
    assert (
        in_pieces(TrainingLog("a.log", 10, memory=(report,), out_of_memory=(error,))) is not None
    ) is found
