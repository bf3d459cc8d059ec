"""Which recordings a comparison can be made with later, and what else is to be recorded."""

from __future__ import annotations

from heuristics.comparison.enough import enough_steps
from heuristics.result.judged import Fix
from tests.doubles.comparison import log, rank, result, trace
from tests.doubles.result import double
from traces.recording.options import SPARE, Question, asked
from traces.statistics.interval import LEAST

MS = 1_000_000


def steps(*lengths_ms: float) -> tuple[int, ...]:
    return tuple(round(one * MS) for one in lengths_ms)


def test_four_steps_that_are_alike_are_enough_and_three_never() -> None:
    four = enough_steps(result(rank(lengths_ns=steps(100, 101, 102, 103))))
    assert (four.count, four.decides, four.record) == (4, True, None)
    assert four.shows_frac == 3 / 101.5
    three = enough_steps(result(rank(lengths_ns=steps(100, 100, 100))))
    assert (three.count, three.decides, three.record) == (3, False, Question.WALLS)
    assert three.shows_frac is None


def test_one_window_without_steps_is_no_step() -> None:
    found = enough_steps(result(rank(lengths_ns=steps(100), source="none")))
    assert (found.count, found.decides, found.record) == (0, False, Question.WALLS)


def test_steps_that_vary_more_need_more_of_them_and_at_last_the_logs() -> None:
    some = enough_steps(result(rank(lengths_ns=steps(97, 100, 100, 103))))
    assert (some.decides, some.record) == (False, Question.WALLS)  # 6 % shown: 4 x (6 / 5)^2 = 6 needed
    more = enough_steps(result(rank(lengths_ns=steps(95, 100, 100, 105))))
    assert (more.decides, more.record) == (False, Question.REGRESSION)  # 10 %: 16 needed
    wild = enough_steps(result(rank(lengths_ns=steps(60, 100, 100, 140))))
    assert (wild.decides, wild.record) == (False, None)  # 80 %: over a thousand


def test_of_several_ranks_several_are_recorded_and_a_log_is_enough() -> None:
    few = rank(lengths_ns=steps(100, 100, 100))
    assert enough_steps(result(few, traces=(trace(), trace()))).record == Question.RANKS
    found = enough_steps(result(few, log=log(*[100 * MS] * 4, *[110 * MS] * 4)))
    assert (found.count, found.by_log, found.decides, found.record) == (8, True, True, None)
    assert found.shows_frac is not None
    assert enough_steps(result(few, rank(lengths_ns=steps(*[100] * 9)))).count == 3
    short = enough_steps(result(few, log=log(*[100 * MS] * 7)))
    assert (short.count, short.by_log) == (3, False)


def test_what_the_plan_gains_at_least_is_enough_to_show() -> None:
    wide = rank(lengths_ns=steps(97, 100, 100, 103))  # shows 6 %
    for low, decides in ((0.06, True), (0.059, False), (None, False)):
        gains = double(Fix, gain_frac=(low, 0.2))
        for one in (result(wide, fixes=(gains,)), result(wide, levers=(gains,))):
            assert enough_steps(one).decides is decides


def test_each_recording_that_can_be_compared_leaves_enough_whole_steps() -> None:
    for question in (Question.WALLS, Question.RANKS, Question.REGRESSION):
        assert asked(question).steps - SPARE >= LEAST
        assert asked(question).because
