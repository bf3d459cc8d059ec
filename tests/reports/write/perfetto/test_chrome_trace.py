"""The reader of the Trace Event Format: what it takes, and that each of its rules can fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.read_back.chrome_trace import NotATrace, read


def event(**fields: Any) -> dict[str, Any]:
    return {"ph": "X", "pid": 1, "tid": 9, "ts": 1.0, "dur": 2.0, "name": "a", "cat": "b", **fields}


NAMES = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "p"}},
    {"ph": "M", "pid": 1, "name": "process_sort_index", "args": {"sort_index": 1}},
    {"ph": "M", "pid": 1, "tid": 9, "name": "thread_name", "args": {"name": "t"}},
    {"ph": "M", "pid": 1, "tid": 9, "name": "thread_sort_index", "args": {"sort_index": 1}},
]


def written(*events: dict[str, Any], **fields: Any) -> str:
    plain: dict[str, Any] = {"displayTimeUnit": "ns", "otherData": {"origin_ns": "0"}}
    return json.dumps({**plain, "traceEvents": [*NAMES, *events], **fields})


def test_the_reader_takes_what_is_right() -> None:
    trace = read(written(event(), event(ts=1.5, dur=1.5), event(ts=3.0)))
    assert [one.start_ns for one in trace.track("p", "t")] == [1_000, 1_500, 3_000]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (written(event(), event(ts=2.5)), "nest or lie apart"),
        (written(event(dur=-1.0)), "not before zero"),
        (written(event(ts=-1.0)), "not before zero"),
        (written(event(ts=1)), "has decimals"),
        (written(event(ts="1.000")), "has decimals"),
        (written(event(ts=1.0005)), "whole number of ns"),
        (written(event(ts=1.001)), "every nanosecond"),
        (written(event(tid=8)), "are named"),
        (written(event(tid=None)), "has a thread"),
        (written(event(ph="Q")), "known phase"),
        (written(event(color="red")), "known fields"),
        (written(NAMES[0]), "given once"),
        (written(displayTimeUnit="us"), "ms or ns"),
        (written(event(ph="C")), "known fields"),
        (written(event(args={"x": float("nan")})), "JSON has no NaN"),
    ],
)
def test_the_reader_refuses_what_breaks_a_rule(text: str, rule: str) -> None:
    with pytest.raises(NotATrace, match=rule):
        read(text)
