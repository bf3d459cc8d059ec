"""What a log says of a run's steps and memory, and which steps of two logs are held against each other."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest

from heuristics.comparison.files import comparison as rules
from heuristics.comparison.files.comparison import compare_files
from heuristics.comparison.files.logs import compared_lengths, drift_of_steps, section
from heuristics.comparison.files.side import FileSide
from heuristics.comparison.gate import Asked
from heuristics.comparison.size import Beside, judge
from heuristics.config.about import Given
from heuristics.result.compared import Comparable, ComparedSize
from heuristics.result.compared_files import ComparedFiles, DriftOf, FilesLog, MemoryOf
from tests.doubles.result import double
from traces.missing import Missing, known
from traces.training_log.log import Iteration, LoggedMemory, OutOfMemory, TrainingLog

MS = 1_000_000


def training(*lengths_ms: float, first: int = 1, **fields: object) -> TrainingLog:
    """Iterations one after the other, of 8 samples."""
    iterations = tuple(Iteration(place, round(ms * MS), place, 100.0 + place, None, 8)
        for place, ms in enumerate(lengths_ms, first))  # fmt: skip
    return TrainingLog("run.log", len(lengths_ms), iterations, **fields)  # type: ignore[arg-type]


def compared(base: TrainingLog | None, new: TrainingLog | None, **fields: object) -> ComparedFiles:
    sides = (FileSide(name, log=log, given=Given(gpu="H100")) for name, log in (("base", base), ("new", new)))
    return compare_files(*sides, **fields)  # type: ignore[arg-type]


EVEN = [100.0] * 3 + [100.0, 102.0] * 10


def test_a_log_is_said_by_its_steady_iterations() -> None:
    """The first three are left out; of the 20 others the outer twentieth at each end is not nearly all."""
    found = section(training(900, 900, 900, *range(100, 120)))
    assert (found.iteration_count, found.steady_count) == (23, 20)
    assert (found.first_iteration, found.last_iteration) == (4, 23)
    assert (found.low_ns, found.high_ns) == (101 * MS, 118 * MS)
    assert (found.median_ns, found.mean_ns) == (109.5 * MS, 109.5 * MS)
    assert found.tflops_per_gpu == 113.5  # 104 to 123
    assert isinstance(found.tokens_per_s_per_gpu, Missing)
    assert (found.global_batch_size, found.out_of_memory) == (8, 0)
    none = section(training())
    assert isinstance(none.median_ns, Missing)
    assert (none.steady_count, isinstance(none.low_ns, Missing)) == (0, True)
    assert isinstance(none.drift, Missing)
    one = Iteration(1, MS, 1, global_batch_size=8)
    other = Iteration(2, MS, 2, global_batch_size=16)
    assert isinstance(section(TrainingLog("run.log", 2, (one, other))).global_batch_size, Missing)


def test_a_drift_is_by_numbers_of_iterations_and_by_places_where_a_log_starts_again() -> None:
    rising = [Iteration(10 * place, (100 + place) * MS, place) for place in range(1, 21)]
    found = drift_of_steps(rising)
    assert found is not None
    assert found.state == "rising"
    assert found.slope == pytest.approx(MS / 10)
    again = [*rising[:10], *(Iteration(10 * place, (110 + place) * MS, place) for place in range(1, 11))]
    restarted = drift_of_steps(again)
    assert restarted is not None
    assert restarted.slope == pytest.approx(MS)
    told = known(section(training(1, 1, 1, *range(100, 120))).drift)
    assert told is not None
    assert told.change_frac == pytest.approx(19 / 100, abs=0.001)
    assert told.change == told.last - told.first


def test_memory_is_the_most_of_any_rank_and_its_drift_that_of_the_rank_that_reports_most() -> None:
    reports = [
        LoggedMemory(place, 0, allocated_bytes=100 + place, peak_allocated_bytes=200, reserved_bytes=0)
        for place in range(20)
    ]
    reports += [LoggedMemory(30, 1, allocated_bytes=size) for size in (500, 400)]
    found = {one.figure: one for one in section(training(memory=tuple(reports))).memory}
    assert [*found] == ["allocated", "peak_allocated", "reserved"]
    assert (found["allocated"].most_bytes, found["allocated"].reports_count) == (500, 20)
    states = [known(one.drift) for one in found.values()]
    assert [one and one.state for one in states] == ["rising", "none", "none"]
    assert states[2] is not None
    assert states[2].change_frac == 0.0  # of nothing
    (few,) = section(training(memory=tuple(reports[:2]))).memory[:1]
    assert isinstance(few.drift, Missing)


def test_steps_that_drift_are_held_together_by_their_numbers_less_the_line_of_both() -> None:
    base, new = training(*[100] * 3, *range(100, 120)), training(*range(107, 140), first=5)
    assert [len(one) for one in compared_lengths(base, new, drifts=False)] == [20, 33]
    one, other = compared_lengths(base, new, drifts=True)
    assert len(one) == len(other) == 19  # numbers 5 to 23
    assert {*one} == {110 * MS}  # 101 to 119 of base
    assert {after - before for before, after in zip(one, other, strict=True)} == {6 * MS}
    eight = compared_lengths(base, training(*range(110, 143), first=16), drifts=True)
    assert [len(one) for one in eight] == [8, 8]
    for apart in (500, 17):  # numbers 17 to 23 alone are in both
        far = training(*range(110, 143), first=apart)
        assert compared_lengths(base, far, drifts=True) == compared_lengths(base, far, drifts=False)


MIXED = [100.0] * 3 + [100.0, 130, 90, 140, 95, 125, 85, 110, 150, 99, 120, 80, 105, 135, 97, 88, 115, 92]


def test_logs_alone_decide_as_far_as_they_go() -> None:
    cases: list[tuple[list[float] | None, list[float] | None, str, str, str]] = [
        (EVEN, [one + 10 for one in EVEN], "regression", "above zero", ""),
        (EVEN, [one - 10 for one in EVEN], "improvement", "below zero", ""),
        (MIXED, [100.0] * 3 + MIXED[:2:-1], "undecided", "holds zero", "iterations"),
        ([100.0] * 23, [100.0] * 23, "no_change", "holds zero, within 0 % of a step", ""),
        (EVEN, [100.0] * 5, "undecided", "", "--base-log"),
        (EVEN, None, "undecided", "only the base log", "--base-log"),
        (None, EVEN, "undecided", "only the new log", "--base-log"),
    ]
    for base, new, verdict, because, record in cases:
        found = compared(training(*base) if base else None, training(*new) if new else None)
        assert (found.verdict, bool(found.record)) == (verdict, bool(record))
        assert because in found.because[0]
        assert record in found.record
        assert [known(one.log) is None for one in (found.base, found.new)] == [base is None, new is None]


def test_pauses_far_above_a_steady_step_are_part_of_its_mean() -> None:
    """Of a hundred steps of 100 ms ten take a second: 190 ms a step."""
    found = compared(training(*[100] * 103), training(*([100] * 3), *[100, 1_000, *[100] * 8] * 10))
    size = known(found.size)
    assert size is not None
    assert (found.verdict, size.base_mean_ns, size.new_mean_ns) == ("regression", 100_000_000, 190_000_000)


def test_logs_of_other_batches_or_gpus_are_not_compared_and_one_that_drifts_is_held_by_its_numbers() -> None:
    plain = training(*EVEN)
    larger = replace(plain, iterations=tuple(replace(one, global_batch_size=16) for one in plain.iterations))
    batches = compared(plain, larger).comparable.differences
    base, new = (FileSide(gpu, log=plain, given=Given(gpu=gpu)) for gpu in ("H100", "GB200"))
    gpus = compare_files(base, new).comparable.differences
    assert [(one.what, one.base, one.new, one.state) for one in (*batches, *gpus)] == [
        ("global batch size", "8", "16", "no"), ("GPU", "H100", "GB200", "no")
    ]  # fmt: skip
    size = known(compared(training(*[100] * 3, *range(100, 120)), training(*[110] * 33, first=5)).size)
    assert size is not None
    assert (size.base_count, size.new_count) == (19, 19)


def test_memory_that_ran_out_on_one_side_alone_decides_nothing() -> None:
    out = training(*EVEN, out_of_memory=(OutOfMemory(7, "unknown"),))
    for base, new, side in ((out, training(*EVEN), "base"), (training(*EVEN), out, "new")):
        found = compared(base, new)
        assert (found.verdict, side in found.because[0]) == ("undecided", True)
    assert compared(out, out).verdict != "not_comparable"
    assert "memory" not in compared(out, out).because[0]


@pytest.mark.parametrize(
    ("more", "limit", "state"), [(10, 0.03, "tripped"), (10, 0.2, "passed"), (0, 0.0, "passed")]
)
def test_a_gate_is_answered_by_the_logs(more: float, limit: float, state: str) -> None:
    found = compared(training(*EVEN), training(*[one + more for one in EVEN]), gate=Asked(limit))
    assert found.gate is not None
    assert found.gate.state == state
    untold = compared(training(*EVEN), None, gate=Asked(limit)).gate
    assert untold is not None
    assert untold.state == "undecided"


def said(drift: str | None = "none", out: int = 0, **bytes_by_figure: int) -> FilesLog:
    memory = tuple(double(MemoryOf, figure=name, most_bytes=size) for name, size in bytes_by_figure.items())
    state = None if drift is None else double(DriftOf, state=drift)
    about = {"memory": memory, "out_of_memory": out, "first_iteration": 4, "last_iteration": 9}
    return double(FilesLog, drift=state, **about)


def test_what_moved_is_of_the_side_that_has_more_of_it() -> None:
    cases: list[tuple[FilesLog | None, FilesLog | None, dict[str, str]]] = [
        (said("none"), said("rising"), {"drift": "new"}), (said("none"), said("falling"), {"drift": "base"}),
        (said("rising"), said("rising"), {}), (said("falling"), said("rising"), {"drift": "new"}),
        (said(None), said("rising"), {}), (said("rising"), None, {}),
        (said(out=2), said(out=0), {"out_of_memory": "base"}), (said(out=2), said(out=1), {}),
        (None, said(out=1), {"out_of_memory": "new"}),
    ]  # fmt: skip
    for base, new, moved in cases:
        assert rules._observed(None, (base, new)).moved == moved


def test_peaks_are_held_against_each_other_by_what_was_allocated_else_by_the_most_of_any_figure() -> None:
    allocated = said(allocated=90, peak_allocated=40), said(peak_reserved=99, peak_allocated=20)
    assert rules._observed(None, allocated).memory == 0.5
    assert rules._observed(None, (said(allocated=40, reserved=50), said(reserved=100))).memory == 2
    assert rules._observed(None, (said(), said(reserved=100))).memory is None


def sized(delta: int, low: int | None, high: int | None, count: int = 20) -> ComparedSize:
    """Steps of 1000 ns in base."""
    about = {"base_mean_ns": 1_000, "new_mean_ns": 1_000 + delta, "base_count": count, "new_count": 2 * count}
    return double(ComparedSize, source="log", delta_ns=delta, low_ns=low, high_ns=high, **about)


def test_a_size_is_a_ratio_and_a_new_step_is_a_nanosecond_at_least() -> None:
    none = (said(), said())
    assert rules._observed(sized(100, 50, 200), none).ratio == pytest.approx((log(1.1), log(1.05), log(1.2)))
    assert rules._observed(sized(100, None, None), none).ratio == pytest.approx((log(1.1),) * 3)
    assert rules._observed(sized(-900, -1_500, 0), none).ratio == pytest.approx((log(0.1), log(0.001), 0))


def test_around_zero_a_hundredth_of_the_shorter_step_is_no_change_else_longer_logs_decide() -> None:
    cases: list[tuple[int, int, int, str, str]] = [
        (0, -10, 10, "no_change", ""),
        (0, -10, 11, "undecided", "23 iterations"),  # 20 x (10.5 / 10)^2 = 22.05
        (5, -10, 30, "undecided", "320 iterations"),  # 20 x (20 / 5)^2
        (-30, -60, 0, "undecided", "20 iterations"),  # 20 x (30 / 30)^2, of a step of 970
        (0, -11, 1, "undecided", "8 iterations"),  # 20 x (6 / 10)^2 = 7.2, and no fewer
    ]
    for delta, low, high, verdict, record in cases:
        found = judge(sized(delta, low, high), Comparable("yes", ()), Beside((), (), "", rules._longer, ""))
        assert (found.verdict, bool(found.record)) == (verdict, bool(record))
        assert record in found.record


def test_that_drifts_differ_is_said_where_both_logs_are_there() -> None:
    told = [len([*rules._moving(sides)]) for sides in ((said(), said("rising")), (None, said("rising")))]
    assert (told, [*rules._moving((said(), said()))]) == ([2, 1], [])
