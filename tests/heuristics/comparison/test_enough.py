"""Which recordings a comparison can be made with later, and what else is to be recorded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heuristics.comparison.difference.interval import LEAST
from heuristics.comparison.enough import DECIDES, enough_steps
from tests.doubles.comparison import rank, result
from traces.recording.options import SPARE, Question, asked

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


@given(st.lists(st.integers(90 * MS, 110 * MS), min_size=1, max_size=30))
def test_what_is_enough_shows_as_little_as_is_asked_and_what_is_asked_for_is_more(lengths: list[int]) -> None:
    found = enough_steps(result(rank(lengths_ns=tuple(lengths))))
    assert found.count == len(lengths)
    assert (found.shows_frac is None) == (len(lengths) < LEAST.value)
    assert found.decides == (found.shows_frac is not None and found.shows_frac <= DECIDES.value)
    assert found.record is None or asked(found.record).steps - SPARE > 0
    assert not (found.decides and found.record)


def test_each_recording_that_can_be_compared_leaves_enough_whole_steps() -> None:
    for question in (Question.WALLS, Question.RANKS, Question.REGRESSION):
        assert asked(question).steps - SPARE >= LEAST.value
        assert asked(question).because
