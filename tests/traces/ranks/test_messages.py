"""Messages of a pipeline by the clock alone: how large its stages are, and which two ends are of one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from tests.recordings.ranks import Part, summary_of
from traces.names.kernels import COMM_KINDS
from traces.ranks.clock_fit import ClockFit
from traces.ranks.gathered import OnClock
from traces.ranks.match import match
from traces.ranks.messages import Exchanges
from traces.ranks.summary import Group, GroupSource, Operation

Ends = list[list[float]]
"""Of each rank, in us."""


def exchanges(ends_us: Ends) -> Exchanges:
    columns = [np.array([round(1_000 * one) for one in sorted(each)], dtype=np.int64) for each in ends_us]
    return Exchanges.of([OnClock(place, ends - 5_000, ends) for place, ends in enumerate(columns)])


def pairs(found: Exchanges, beside: set[tuple[int, int]] | None = None) -> dict[tuple[int, int], int]:
    stage = found.stage_size()
    messages = found.messages(range(len(found.sequences)), beside or set(), stage)
    return {(pair.one, pair.other): len(pair.rows) for pair in messages}


def pipeline(stages: int, size: int, seed: int = 0, often: int = 12) -> Ends:
    """Ranks of a stage send within 6 us of each other; both ends of a message lie within 1 us, on clocks of
    stages that are up to 8 us apart.
    """
    draw = Random(seed)
    ends: Ends = [[] for _ in range(stages * size)]
    apart = [draw.uniform(0, 8) for _ in range(stages)]
    for turn in range(often * (stages - 1)):
        stage, at = turn % (stages - 1), 1_000.0 * turn
        for one in range(size):
            sent = at + draw.uniform(0, 6)
            for rank in (stage * size + one, (stage + 1) * size + one):
                ends[rank].append(sent + apart[rank // size] + draw.uniform(0, 1))
    return ends


@pytest.mark.parametrize(("stages", "size"), [(2, 4), (4, 2), (4, 4), (3, 3)])
def test_ranks_one_stage_apart_are_known_though_those_of_a_stage_are_in_lockstep(
    stages: int, size: int
) -> None:
    found = exchanges(pipeline(stages, size))
    assert found.stage_size() == size
    assert pairs(found) == {(one, one + size): 12 for one in range((stages - 1) * size)}


def test_without_stages_of_one_size_two_beside_each_other_send_each_other_nothing() -> None:
    """Rank 0 sends to 2, and 1 to 3; ends of 0 and 1 lie together as closely."""
    times = [1_000.0 * number for number in range(12)]
    ends = [times, [one + 1 for one in times], [one + 2 for one in times], [one + 3 for one in times]]
    found = exchanges(ends)
    assert found.stage_size() is None
    assert set(pairs(found, {(0, 1), (2, 3)})) in ({(0, 2), (1, 3)}, {(1, 2), (0, 3)})
    assert {*pairs(found)} & {(0, 1), (2, 3)}


def test_messages_that_a_rank_sends_to_both_sides_are_told_apart_from_a_group() -> None:
    first = [100.0, 200, 300, 400]
    second = [103.0, 208, 305, 409]
    ends = [first, second, [*first, 130, 230, 330], [*second, 160, 260, 360]]
    found = exchanges(ends)
    assert not found.are_whole().any()
    assert pairs(found) == {(0, 2): 4, (1, 3): 4}


def test_a_message_whose_other_end_is_not_known_is_put_together_with_none() -> None:
    """Ranks 0 and 1 send to 2 and 3; two more messages of each end at the same time, and nobody's beside."""
    ends = [[1_000.0 * turn + place % 2 * 7 * (turn % 3) for turn in range(6)] for place in range(4)]
    for place in (0, 1):
        ends[place] += [7_500.0, 8_500.0]
    summaries = []
    for place, several in enumerate(ends):
        parts = [
            Part(0, number, end - 50, end, Operation.EXCHANGE) for number, end in enumerate(several, start=1)
        ]
        one = summary_of(place, parts, [Group(GroupSource.ORDER, 7)])
        kind = np.full(len(parts), COMM_KINDS.index("pp_p2p"))
        summaries.append(replace(one, instances=replace(one.instances, kind=kind)))
    clocks = {one.identity.clock: ClockFit(one.identity.clock, 0, 0, 0.0) for one in summaries}
    matched = match(summaries, clocks)
    assert matched.place.reshape(-1, 2).tolist() == [[0, 2]] * 6 + [[1, 3]] * 6
