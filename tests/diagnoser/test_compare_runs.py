"""`compare` from recordings: further recordings of base."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from heuristics.result.compared import Compared
from tests.doubles.sides import GEMM, US


def recorded(path: Path, lengths_us: Sequence[int], text: str = "iteration") -> Path:
    """Steps of these lengths, one GEMM in each."""
    recording = Recording()
    recording.gpu()
    start = 0
    for step, length_us in enumerate(lengths_us):
        end = start + length_us * US
        recording.range(f"{text} {step}", start, end - 10 * US, pid=1000)
        recording.kernel(GEMM, start + 100 * US, end - 50 * US, launch_ns=start + 50 * US, device=0, pid=1000)
        start = end
    write_export(path, recording)
    return path


def compared(base: Path, new: Path, *more: Path) -> Compared:
    return diagnoser.compare(base, new, more_base=more).result


def usual(step: int, middle_us: int) -> int:
    """Give or take 0.5 %, without a rhythm."""
    return middle_us + (step * step * 7) % 11 * middle_us // 1000 - middle_us // 200


def test_further_recordings_of_base_are_read_named_and_widen_the_interval(tmp_path: Path) -> None:
    runs = [
        recorded(tmp_path / f"{name}.sqlite", [usual(step, length) for step in range(12)])
        for name, length in (("base", 30_000), ("new", 30_900), ("more", 30_600), ("third", 30_300))
    ]
    base, new, *more = runs
    assert compared(base, new).verdict == "regression"
    found = compared(base, new, *more)
    assert found.verdict == "undecided"
    assert found.command == (
        "moe-diag compare base.sqlite new.sqlite --more-base more.sqlite --more-base third.sqlite"
    )
    told = found.size.between_runs
    assert told is not None
    assert [one.name for one in told.runs] == ["base.sqlite", "more.sqlite", "third.sqlite"]


def test_a_long_step_of_both_runs_that_one_alone_takes_for_a_hiccup_is_left_out_of_both(
    tmp_path: Path,
) -> None:
    """One runs evenly, the other in steps of 26, 30 and 34 ms: 40 ms is odd in the first alone."""
    even, uneven = [30_000] * 12, [26_000, 30_000, 34_000] * 4
    even[7] = uneven[7] = 40_000
    size = compared(recorded(tmp_path / "a.sqlite", even), recorded(tmp_path / "b.sqlite", uneven)).size
    assert (size.base_count, size.new_count, size.delta_ns) == (11, 11, 0)


def test_where_one_side_shows_no_steps_both_are_compared_whole_unless_steps_were_chosen(
    tmp_path: Path,
) -> None:
    named = recorded(tmp_path / "a.sqlite", [30_000] * 6)
    bare = recorded(tmp_path / "b.sqlite", [30_000] * 6, "layer")
    size = compared(named, bare).size
    assert (size.base_count, size.new_count, size.delta_ns) == (0, 0, 0)
    chosen = diagnoser.compare(named, bare, nvtx=r"(iteration|layer) \d").result.size
    assert (chosen.base_count, chosen.new_count) == (6, 6)
