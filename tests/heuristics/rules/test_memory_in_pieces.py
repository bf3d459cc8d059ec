"""Memory is in pieces where enough of what is reserved is neither used nor free in one."""

from __future__ import annotations

from typing import Final

import pytest

from heuristics.rules.failures import SIGNS, in_pieces
from heuristics.run.run import Run
from traces.training_log.log import LoggedMemory, Message, OutOfMemory, TrainingLog

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
        9, "unknown", allocated_bytes=allocated and allocated * GB, requested_bytes=asked and asked * GB
    )
    report = LoggedMemory(1, 0, reserved_bytes=100 * GB, inactive_bytes=inactive * GB)
    assert (
        in_pieces(TrainingLog("a.log", 10, memory=(report,), out_of_memory=(error,))) is not None
    ) is found


@pytest.mark.parametrize(("peak", "found"), [(None, False), (4, True), (5, False)])
def test_fragments_are_a_quarter_of_the_most_that_was_reserved_where_only_that_is_told(
    peak: int | None, found: bool
) -> None:
    report = LoggedMemory(1, 0, inactive_bytes=GB, peak_reserved_bytes=peak and peak * GB)
    log = TrainingLog("a.log", 10, memory=(report,), out_of_memory=(OutOfMemory(9, "unknown"),))
    assert (in_pieces(log) is report) is found


def error(line: int, asked: int, allocated: int | None = None, **about: object) -> OutOfMemory:
    """Of 100 GB that are all reserved, on a GPU of 100 GB."""
    sizes = {name: size * GB for name, size in (("requested_bytes", asked), ("reserved_bytes", 100))}
    full = None if allocated is None else allocated * GB
    fields = {"stage": "forward", "capacity_bytes": 100 * GB, "allocated_bytes": full, **sizes, **about}
    fields["unallocated_bytes"] = None if allocated is None else (100 - allocated) * GB
    return OutOfMemory(line, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sign", "errors", "line"),
    [
        # more was asked for than any pieces hold: 30 GB of 100 GB; said at the first error
        ("too much", [error(7, 20, 70), error(9, 31, 70)], 7), ("too much", [error(7, 30, 70)], None),
        # what is not allocated would have held it: at the error that says so, else at the first
        ("fragmented", [error(7, 31, 70), error(9, 30, 70)], 9), ("fragmented", [error(7, 31, 70)], None),
        ("fragmented", [error(7, 40), error(9, 24)], 7), ("fragmented", [error(7, 24), error(9, 41)], None),
        # a capture that is going on or went through before, or pools of graphs
        ("graph memory", [error(7, 1)], None), ("graph memory", [error(7, 1), error(9, 1)], 9),
        ("graph memory", [error(7, 1, graph_pool_bytes=1)], 7),
        ("graph memory", [error(7, 1, stage="graph_capture"), error(9, 1)], 7),
    ],
)  # fmt: skip
def test_a_sign_stands_at_the_error_that_shows_it(
    sign: str, errors: list[OutOfMemory], line: int | None
) -> None:
    """40 GB are inactive by one report, 3 GB by another; graphs were captured in line 8."""
    reports = [LoggedMemory(1, 0, reserved_bytes=100 * GB, inactive_bytes=size * GB) for size in (40, 3)]
    captured = (Message("graph-captured", 8),)
    log = TrainingLog("a.log", 10, messages=captured, memory=tuple(reports), out_of_memory=tuple(errors))
    found = SIGNS[sign](log, Run().config)
    assert (found and found[0]) == line
