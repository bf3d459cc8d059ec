"""What is true of runs of many ranks, found a second time from the second simulator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.score.ranks.known import HANDICAPS
from bench.second.ranks_truth import SecondTruth
from bench.second.times import by_the_engine, by_the_second
from bench.simulate.ranks.causes import programs_of
from bench.simulate.ranks.described import Cause, Extent, RanksRun
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.truth import Truth

SEEDS = (7100, 7101)
RUNS = [
    *((cause, seed, Extent.RANK) for cause in Cause for seed in SEEDS),
    *((cause, SEEDS[0], extent) for cause, extent in HANDICAPS),
]


Both = tuple[Truth, SecondTruth, SecondTruth]


@pytest.fixture(scope="module", params=RUNS, ids=lambda one: f"{one[0].value} {one[1]} {one[2].value}")
def both(request: pytest.FixtureRequest) -> Both:
    """A drawn run of 8 ranks: by the first simulator; by the second, with its cause and without."""
    cause, seed, extent = request.param
    first = draw_run(seed, cause, step_count=2, extent=extent)
    return first, second(first.run), second(first.run.mended())


def second(run: RanksRun) -> SecondTruth:
    return SecondTruth(dict(enumerate(programs_of(run))))


def test_both_simulators_agree_on_a_run_of_many_ranks_with_its_cause_and_without(both: Both) -> None:
    first, *again = both
    for ranks, found in zip((first.done, first.mended), again, strict=True):
        for rank, run in enumerate(ranks.ranks):
            assert by_the_second(found.ran.ranks[rank]) == by_the_engine(run.executed)


def test_they_agree_on_steps_arrivals_and_who_is_charged_with_waits(both: Both) -> None:
    first, with_cause, mended = both
    assert first.done.steps_ns == tuple(map(tuple, with_cause.steps_ns.values()))
    assert first.mended.steps_ns == tuple(map(tuple, mended.steps_ns.values()))
    assert first.effect_frac == with_cause.whole_ns / mended.whole_ns - 1
    assert dict(arrivals(first)) == with_cause.arrivals_ns
    assert first.wait_by_last_ns == with_cause.charged_ns


def arrivals(first: Truth) -> Iterator[tuple[tuple[tuple[int, ...], str, int], dict[int, int]]]:
    for instance in first.done.instances():
        there = {rank: part.arrival_ns for rank, part in instance.parts.items()}
        yield (instance.group, instance.name, instance.sequence), there
