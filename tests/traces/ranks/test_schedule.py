"""Microbatches and virtual stages by the messages of a step, without any times."""

from __future__ import annotations

import numpy as np
import pytest

from tests.recordings.ranks import array
from traces.missing import Missing
from traces.ranks.pipelines import Pipelines, Schedule, Sent, bubble_frac, phases_of, schedule_of

Message = tuple[int, int, int]
"""Stage of the other, sends and receives."""


def sent(by_stage: list[list[Message]], *, shapes: bool = False) -> Sent:
    """One rank a stage, one step. `shapes`: every second message is that of a shape."""
    stage = [number for number, several in enumerate(by_stage) for _ in several]
    rows = [message for several in by_stage for message in several]
    peer, sends, receives = (array([row[column] for row in rows]) for column in range(3))
    first = np.cumsum([0, *map(len, by_stage)])
    return Sent(
        array(stage),
        peer,
        array([0] * len(rows)),
        sends,
        receives,
        first,
        shapes & (np.arange(len(rows)) % 2 == 0),
    )


def pipelines(count: int) -> Pipelines:
    return Pipelines(array(range(count)), count)


def with_virtual_stages(count: int, microbatches: int, chunks: int) -> list[list[Message]]:
    """One way each: outputs go to the next stage, from the last to the first but for the last chunk."""
    by_stage = []
    for stage in range(count):
        before, behind = (stage - 1) % count, (stage + 1) % count
        gets = microbatches * (chunks - (stage == 0))
        gives = microbatches * (chunks - (stage == count - 1))
        forward = [(before, 0, 1)] * gets + [(behind, 1, 0)] * gives
        by_stage.append(forward + [(behind, 0, 1)] * gives + [(before, 1, 0)] * gets)
    return by_stage


@pytest.mark.parametrize(("count", "microbatches", "chunks"), [(3, 3, 2), (4, 8, 1), (4, 8, 3)])
def test_what_the_first_stage_gets_from_the_last_tells_virtual_stages(
    count: int, microbatches: int, chunks: int
) -> None:
    found = schedule_of(sent(with_virtual_stages(count, microbatches, chunks)), pipelines(count))
    assert isinstance(found, Schedule)
    assert (found.microbatches, found.chunks) == (microbatches, chunks)


def test_messages_of_shapes_are_no_microbatches() -> None:
    doubled = [[one for one in several for _ in range(2)] for several in with_virtual_stages(3, 4, 1)]
    found = schedule_of(sent(doubled, shapes=True), pipelines(3))
    assert isinstance(found, Schedule)
    assert (found.microbatches, found.chunks) == (4, 1)


def test_of_two_stages_only_messages_both_ways_tell_that_there_are_no_virtual_ones() -> None:
    one_way = with_virtual_stages(2, 4, 1)
    assert isinstance(schedule_of(sent(one_way), pipelines(2)), Missing)
    both_ways: list[list[Message]] = [[(1, 1, 0), (1, 1, 1), (1, 0, 1)], [(0, 0, 1), (0, 1, 1), (0, 1, 0)]]
    found = schedule_of(sent(both_ways), pipelines(2))
    assert isinstance(found, Schedule)
    assert (found.microbatches, found.chunks) == (2, 1)


def test_warm_up_ends_with_the_first_gradient_and_cool_down_begins_after_the_last_output() -> None:
    messages = sent(
        [[(1, 1, 0), (1, 1, 1), (1, 1, 1), (1, 0, 1)], [(0, 0, 1), (0, 1, 1), (0, 1, 1), (0, 1, 0)]]
    )
    schedule = schedule_of(messages, pipelines(2))
    assert isinstance(schedule, Schedule)
    phases = phases_of(messages, schedule, pipelines(2))
    assert not isinstance(phases, Missing)
    assert phases.tolist() == [0, 0, 1, 2, 0, 1, 1, 2]


def test_messages_that_fit_no_schedule_give_none() -> None:
    odd = with_virtual_stages(3, 4, 1)
    odd[1].append((0, 0, 1))  # five inputs, and two to the first stage: three microbatches do not divide five
    odd[0].extend([(2, 0, 1)] * 2)
    assert isinstance(schedule_of(sent(odd), pipelines(3)), Missing)


def test_the_formula_by_hand() -> None:
    assert bubble_frac(4, 8, 1) == 3 / 11
    assert bubble_frac(4, 8, 2) == 3 / 19
    assert bubble_frac(1, 8, 1) == 0
