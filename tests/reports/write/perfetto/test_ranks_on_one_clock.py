"""Perfetto: ranks of several recordings on one clock, or named by what they are on."""

from __future__ import annotations

import json
from typing import Any

from heuristics.result.result import Result
from reports.content.page import Detail
from reports.write.perfetto.analysis import write_perfetto
from tests.doubles.result import double
from traces.sections.cause import Cause, ClockSource
from traces.sections.rank import Rank
from traces.sections.run import ClockFit, Run
from traces.sections.steps import Step, Steps
from traces.sections.trace import Trace

MS = 1_000_000


def fit(
    place: int, offset_ns: int, source: ClockSource = ClockSource.COLLECTIVES, drift: float = 0.0
) -> ClockFit:
    return ClockFit((place,), source, 0, offset_ns, drift)


def written(*fits: ClockFit, aligned: bool = True) -> dict[str, Any]:
    """Two ranks of one step of 10 ms each; the second clock is 5 ms ahead."""
    steps = [double(Step, index=1, start_ns=begin * MS, end_ns=(begin + 10) * MS) for begin in (100, 105)]
    ranks = tuple(
        double(
            Rank,
            rank=place,
            device=place,
            trace=f"{place}.sqlite",
            windows_ns=((begin * MS, (begin + 10) * MS),),
            steps=double(Steps, used=(steps[place],)),
        )
        for place, begin in enumerate((100, 105))
    )
    late = {"cause": Cause.SLOW_HOST, "index": 1, "rank": 1, "wait_ns": 0, "cost_ns": 0}
    clocks = {"aligned": aligned, "residual_ns": 100, "by_rank": fits}
    run = double(Run, clocks=clocks, late=late)
    traces = tuple(double(Trace, name=f"{place}.sqlite") for place in (0, 1))
    result = double(Result, ranks=ranks, traces=traces, run=run)
    found: dict[str, Any] = json.loads(write_perfetto(result, Detail.FIRST))
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [one["args"]["name"] for one in found["traceEvents"] if one["name"] == "process_name"][1:]


def starts(found: dict[str, Any]) -> list[float]:
    return [one["ts"] for one in found["traceEvents"] if one.get("cat") == "used step"]


def test_a_process_a_rank_stands_on_the_one_clock_of_the_fits() -> None:
    found = written(fit(0, 0), fit(1, 5 * MS))
    assert starts(found) == [100_000, 100_000]
    assert found["otherData"]["clock"] == "collectives"
    assert found["otherData"]["clock_residual_ns"] == 100
    assert [name.endswith(", late: slow host") for name in names(found)] == [False, True]


def test_placed_by_its_sessions_start_a_process_is_named_so() -> None:
    by_start = [fit(place, offset, ClockSource.SESSION_START) for place, offset in ((0, 0), (1, -3 * MS))]
    found = written(*by_start, aligned=False)
    assert starts(found) == [100_000, 108_000]
    assert all(name.endswith(", put in place by its session's start") for name in names(found))
    assert found["otherData"]["clock"] == "session_start"


def test_without_any_clock_in_common_each_keeps_its_own_and_is_named_so() -> None:
    found = written(aligned=False)
    assert starts(found) == [100_000, 105_000]
    assert all("own clock: its times cannot be compared with other ranks" in name for name in names(found))
    assert found["otherData"]["clock"] == "own"
