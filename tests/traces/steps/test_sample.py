"""Which steps of a long recording are replayed, and for how many each stands."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from tests.doubles.opinions import steps_of
from traces.steps.found import Steps, drop, from_steps
from traces.steps.sample import MOST, sample_of

MANY = 100


def long_run() -> Steps:
    """A hundred steps of 1000 to 1099 ns that grow longer."""
    return steps_of(*(1_000 + one for one in range(MANY)))


def test_up_to_the_limit_all_steps_are_replayed_as_one_stretch_each_for_itself() -> None:
    steps = steps_of(*range(100, 100 + int(MOST.value)))
    found = sample_of(steps)
    assert found.steps == steps.used
    assert found.stand_for_ns == tuple(steps.lengths_ns())
    assert (found.stretches.pairs(), found.apart_ns) == (steps.windows.pairs(), [])
    assert set(found.weights) == {1.0}


def test_gaps_between_few_steps_are_replayed_too() -> None:
    steps = steps_of(100, 100, 100)
    recorded = tuple(drop(one, "partial") if one.index == 1 else one for one in steps.recorded)
    found = sample_of(from_steps("nvtx", "ranges", recorded))
    assert found.pairs_ns == ((0, 100), (200, 300))
    assert found.stretches.pairs() == [[0, 300]]


def test_the_others_are_spread_over_the_lengths_and_hold_the_median() -> None:
    indexes = [step.index for step in sample_of(long_run()).steps]
    assert max(after - before for before, after in pairwise(indexes)) <= 4
    assert any(abs(index - MANY // 2) <= 2 for index in indexes)
    assert (indexes[0], indexes[-1]) <= (4, 99)


def test_each_is_replayed_after_the_step_before_it_where_there_is_one() -> None:
    found = sample_of(long_run())
    starts = [step.start_ns for step in long_run().recorded]
    for step in found.steps:
        before = starts[max(0, step.index - 1)]
        assert any(start <= before and step.end_ns <= end for start, end in found.stretches.pairs())
    (between, *_), (first, second, *_) = found.apart_ns, found.stretches.pairs()
    assert first[1] < between < second[0]


def test_a_gap_before_a_step_is_not_replayed() -> None:
    steps = long_run()
    apart = tuple(
        replace(one, start_ns=one.start_ns + 10_000 * one.index, end_ns=one.end_ns + 10_000 * one.index)
        for one in steps.recorded
    )
    found = sample_of(from_steps("nvtx", "ranges", apart))
    assert [tuple(pair) for pair in found.stretches.pairs()] == list(found.pairs_ns)
