"""Pipelines: microbatches and virtual stages by their messages, and bubbles by hand and by formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.recordings.ranks import US, Part, analyse_run, array, summary_of
from traces.missing import Missing, known
from traces.names.kernels import COMM_KINDS
from traces.ranks.summaries.summary import Group, GroupSource, Messages, Operation, RankSummary
from traces.ranks.waiting.pipelines import Pipelines, Schedule, Sent, phases_of, schedule_of
from traces.sections.run import Pipeline, PipelineStage

Message = tuple[int, int, int]
"""Stage of the other, sends and receives."""


def sent(by_stage: list[list[Message]], *, shapes: bool = False) -> Sent:
    """One rank a stage, one step. `shapes`: every second message is that of a shape."""
    stage = [number for number, several in enumerate(by_stage) for _ in several]
    rows = [message for several in by_stage for message in several]
    peer, sends, receives = (array([row[column] for row in rows]) for column in range(3))
    first = np.cumsum([0, *map(len, by_stage)])
    is_shape = shapes & (np.arange(len(rows)) % 2 == 0)
    return Sent(array(stage), peer, array([0] * len(rows)), sends, receives, first, is_shape)


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


def test_warm_up_ends_with_the_first_gradient_and_cool_down_begins_after_the_last_output() -> None:
    messages = sent(
        [[(1, 1, 0), (1, 1, 1), (1, 1, 1), (1, 0, 1)], [(0, 0, 1), (0, 1, 1), (0, 1, 1), (0, 1, 0)]]
    )
    schedule = schedule_of(messages, pipelines(2))
    assert isinstance(schedule, Schedule)
    assert (schedule.microbatches, schedule.chunks) == (3, 1)
    phases = phases_of(messages, schedule, pipelines(2))
    assert not isinstance(phases, Missing)
    assert phases.tolist() == [0, 0, 1, 2, 0, 1, 1, 2]


def silent(*of_stages: dict[int, int]) -> Sent:
    """Of each stage how many messages it has with which others; nothing says which way they go."""
    return sent(
        [[(peer, -1, -1) for peer, count in each.items() for _ in range(count)] for each in of_stages]
    )


@pytest.mark.parametrize(
    ("of_stages", "microbatches"),
    [
        ([{1: 6}, {0: 6, 2: 5}, {1: 5}], 4),  # one kernel a call: 4 and as many more as stages lie behind
        ([{1: 3}, {0: 3, 2: 2}, {1: 2}], None),  # of one microbatch each has two
        ([{1: 2}, {0: 2, 2: 2}, {1: 2}], 1),
        ([{1: 8}, {0: 8, 2: 8}, {1: 8}], 4),  # one for each way
        ([{1: 7}, {0: 7, 2: 5}, {1: 5}], None),
        ([{1: 7}, {0: 7, 2: 7}, {1: 7}], None),
        ([{1: 6, 2: 1}, {0: 6, 2: 5}, {1: 5, 0: 1}], None),  # the last sends to the first
        ([{1: 5}, {0: 5}], None),  # of two stages that number says nothing
    ],
)
def test_without_ways_the_number_of_messages_tells_how_many_microbatches_there_are(
    of_stages: list[dict[int, int]], microbatches: int | None
) -> None:
    messages = silent(*of_stages)
    found = schedule_of(messages, pipelines(len(of_stages)))
    if microbatches is None:
        assert isinstance(found, Missing)
        return
    assert isinstance(found, Schedule)
    assert (found.microbatches, found.chunks) == (microbatches, 1)
    phases = phases_of(messages, found, pipelines(len(of_stages)))
    assert isinstance(phases, Missing) is (found.brings is None)


def test_what_each_silent_message_brings_follows_from_its_turn() -> None:
    """Three stages, two microbatches: the first warms up by two, the middle one by one."""
    messages = silent({1: 4}, {0: 4, 2: 3}, {1: 3})
    found = schedule_of(messages, pipelines(3))
    assert isinstance(found, Schedule)
    assert found.brings is not None
    fills, passes, returns = (one.nonzero()[0].tolist() for one in found.brings)
    assert (fills, passes, returns) == ([4, 5, 11, 12], [0, 1, 8, 9], [2, 3, 9, 10])
    phases = np.asarray(phases_of(messages, found, pipelines(3))).tolist()
    assert "".join(map(str, phases)) == "00020000002012"


def test_ranks_of_a_stage_with_more_messages_than_others_and_unknown_peers_give_no_schedule() -> None:
    messages = sent([[(1, -1, -1)] * 4, [(1, -1, -1)] * 5, [(0, -1, -1)] * 4, [(1, -1, -1)] * 4])
    stage = np.repeat([0, 0, 1, 2], [4, 5, 4, 4])
    assert isinstance(schedule_of(replace(messages, stage=stage), pipelines(3)), Missing)
    unknown = replace(messages, peer=messages.peer * 0 - 1)
    assert isinstance(schedule_of(unknown, pipelines(3)), Missing)


def stage_of_two(place: int, *rows: tuple[int, int, int, int]) -> RankSummary:
    """Two steps of 90 us: messages from so until so with sends and receives of 1 kB; at the end both meet."""
    groups = [Group(GroupSource.COMMUNICATOR, 1, 2), Group(GroupSource.COMMUNICATOR, 100, 2, own=place)]
    kinds, sends, receives = (array([*column] * 2) for column in zip(*(
        (COMM_KINDS.index("all_reduce" if gives < 0 else "pp_p2p"), gives, gets) for _, _, gives, gets in rows
    ), strict=True))  # fmt: skip
    parts = []
    for step in range(2):
        for number, (start, end, gives, _) in enumerate(rows):
            told = (0, step) if gives < 0 else (1, 3 * step + number)
            operation = Operation.ALL_REDUCE if gives < 0 else Operation.EXCHANGE
            parts.append(Part(*told, 90 * step + start, 90 * step + end, operation, step=step))
    steps = [{"start": start, "compute": 60 - 20 * place, "end": start + 90} for start in (0, 90)]
    summary = summary_of(place, parts, groups, world_size=2, steps=steps)
    summary = replace(summary, instances=replace(summary.instances, kind=kinds))
    return replace(summary, messages=Messages(sends, receives, array([1_025] * len(parts))))


def phases(stage: PipelineStage) -> tuple[int | None, ...]:
    return tuple(known(one) for one in (stage.warm_up_ns, stage.steady_ns, stage.cool_down_ns))


def test_two_stages_and_two_microbatches_by_hand() -> None:
    """Forward takes 10 us and backward 20.

    Stage 0: forward until 20, waits for the gradient until 40, backward, waits 60 to 70, backward until 90.
    Stage 1: waits until 10, works until 70, has no more to do until 90.
    """
    end = (-1, -1)
    ranks = [
        stage_of_two(0, (10, 10, 1, 0), (20, 40, 1, 1), (60, 70, 0, 1), (90, 90, *end)),
        stage_of_two(1, (0, 10, 0, 1), (40, 40, 1, 1), (70, 70, 1, 0), (70, 90, *end)),
    ]
    found = analyse_run(ranks).pipeline
    assert isinstance(found, Pipeline)
    first, last = found.stages
    assert (found.microbatches, found.chunks, found.formula_frac, found.stage_imbalance) == (2, 1, 1 / 3, 1.2)
    assert [(one.chunks, one.formula_frac) for one in found.with_more_chunks] == [(2, 1 / 5), (4, 1 / 9)]
    assert [*map(phases, found.stages)] == [(20 * US, 0, 10 * US), (10 * US, 0, 20 * US)]
    assert (first.step_ns, last.step_ns, found.bubble_frac) == (90 * US, 90 * US, 1 / 3)
    silent_ = analyse_run([replace(each, messages=Messages.none()) for each in ranks]).pipeline
    assert isinstance(silent_, Pipeline)
    untold = silent_.formula_frac, silent_.microbatches, silent_.chunks, silent_.stages[0].steady_ns
    assert all(isinstance(one, Missing) for one in untold)
    assert (silent_.with_more_chunks, silent_.stages[0].bubble_ns) == ((), first.bubble_ns)
