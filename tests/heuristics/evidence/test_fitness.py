"""What a recording lacks for each wall, and that a diagnosis has the last word."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from heuristics.evidence.fitness import fitness
from heuristics.result.judged import Verdict, Wall
from heuristics.result.result import Result
from heuristics.run.run import WALL_IDS
from tests.doubles.comparison import rank, result
from tests.doubles.result import double
from traces.columns import Gpu, TraceInfo
from traces.measure.capture import Capture
from traces.missing import Missing
from traces.sections.steps import StepSource

ROWS = {"kernels": 100, "graph replays": 0, "CUDA calls": 100, "NVTX ranges": 10, "event records": 10}
ROWS |= {"OS calls": 10, "memory events": 10}
LETTER = {"good": ".", "usable": "u", "useless": "-"}


def recording(
    rows: Mapping[str, int],
    launched: float | None = 1.0,
    apart_ns: int = 0,
    opaque: int = 0,
    gpus: tuple[int | None, ...] = (132, 132),
    kind: str = "nsys-sqlite",
) -> tuple[TraceInfo, Capture]:
    """Of two ranks; `apart_ns`: how far the clocks of the second are apart."""
    listed = tuple(Gpu(place, place, "NVIDIA H100", count, "9.0", 80) for place, count in enumerate(gpus))
    info = TraceInfo("run.sqlite", kind, None, None, "sqlite3", listed, (), ())
    return info, Capture({**ROWS, **rows}, launched, {(1, 0): 0, (1, 1): apart_ns}, 10, opaque)


LATE = {"kernels": 0, "graph replays": 5}


@pytest.mark.parametrize(
    ("what", "grades"),
    [
        (recording({}), "...."), (recording({"kernels": 0}), "----"), (recording(LATE), "--u-"),
        (recording({"graph replays": 5}), "...."), (recording({"CUDA calls": 0}, launched=0.0), "uu-u"),
        (recording({}, apart_ns=3), "uu-u"), (recording({}, launched=0.89), "uuuu"),
        (recording({}, launched=0.9), "...."), (recording({}, launched=None), "...."),
        (recording({}, opaque=1), "uuuu"), (recording({}, gpus=(132, None)), "...-"),
        (recording({}, gpus=()), "...-"), (recording({"memory events": 0}), "u..."),
        (recording({"NVTX ranges": 0}), ".uu."), (recording({"event records": 0}), ".u.."),
        (recording({"OS calls": 0}), "..u."), (recording({"OS calls": 0}, kind="kineto"), "...."),
    ],
)  # fmt: skip
def test_what_a_recording_lacks_makes_its_walls_worse(what: tuple[TraceInfo, Capture], grades: str) -> None:
    """Memory, communication, host, compute."""
    found = fitness(*what)
    assert [one.wall for one in found] == [*WALL_IDS]
    assert "".join(LETTER[one.grade] for one in found) == grades
    assert all(bool(one.because) == (one.grade != "good") for one in found)


def judged(
    outcome: str, most: float | None = None, startup_ns: int | None = None, source: StepSource = "nvtx"
) -> Result:
    gap = Missing("", "nobody looked", "look")
    at_most = gap if most is None else most
    walls = tuple(
        double(Wall, id=one, outcome=outcome, at_most_frac=at_most, missing=("nobody looked", "nor here"))
        for one in WALL_IDS
    )
    verdict = double(Verdict, startup_ns=startup_ns)
    return replace(
        result(rank(lengths_ns=(50, 50)), rank(lengths_ns=(50, 50), source=source)),
        walls=walls,
        verdict=verdict,
    )


def test_a_wall_that_is_judged_is_usable_and_one_that_is_not_is_no_better_than_its_bound() -> None:
    nothing, whole = recording({"kernels": 0}), recording({})
    assert {one.grade for one in fitness(*nothing, judged("clear"))} == {"usable"}
    assert {one.grade for one in fitness(*whole, judged("finding"))} == {"good"}
    useless = fitness(*whole, judged("unmeasurable"))
    assert {(one.grade, one.because) for one in useless} == {("useless", ("nobody looked",))}
    bound = fitness(*whole, judged("unmeasurable", most=0.2))
    assert {one.grade for one in bound} == {"usable"}
    assert "20 %" in bound[0].because[0]


def test_a_window_without_steps_or_with_its_start_makes_every_wall_usable_at_most() -> None:
    found = fitness(*recording({}), judged("clear", source="none"))
    assert {one.grade for one in found} == {"usable"}
    late = fitness(*recording({}), judged("clear", startup_ns=50))
    assert {one.grade for one in late} == {"usable"}
    assert "25 %" in late[0].because[0]  # of two ranks of 100 ns
