"""Collectives of several ranks as instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.recordings.ranks import Part, shifted, summary_of
from traces.ranks.match import Matched, match
from traces.ranks.summary import Group, GroupSource, Operation, RankSummary

BY_ORDER = Group(GroupSource.ORDER, 5)
LENGTHS_US = (100, 130, 90, 250, 110, 75, 180, 95, 210, 140, 165, 88)
"""No rhythm: a shift by one is seen."""


def found(matched: Matched) -> list[tuple[int, list[int]]]:
    """Of each instance the sequence and the places."""
    ends = zip(matched.first[:-1], matched.first[1:], strict=True)
    return [
        (int(sequence), matched.place[begin:end].tolist())
        for sequence, (begin, end) in zip(matched.sequence, ends, strict=True)
    ]


def ended(at_us: Sequence[float], first: int = 0, group: int = 0) -> list[Part]:
    """Collectives of 10 us that end at these times, in order."""
    return [Part(group, first + number, end - 10, end) for number, end in enumerate(at_us)]


def ends_us(begin_us: float = 1000) -> list[float]:
    ends = [begin_us]
    for length in LENGTHS_US:
        ends.append(ends[-1] + length)
    return ends


def test_one_group_and_one_number_are_one_instance() -> None:
    ranks = [
        summary_of(0, ended([100, 200], first=4)),
        summary_of(1, ended([100, 200], first=4)),
        summary_of(2, ended([200, 300], first=5)),
    ]
    assert found(match(ranks)) == [(4, [0, 1]), (5, [0, 1, 2])]


def test_another_operation_or_size_is_no_part_of_an_instance() -> None:
    def rank(number: int, operation: Operation, size: int) -> RankSummary:
        return summary_of(number, [Part(0, 0, 0, 10, operation, size), *ended([50], first=1)])

    ranks = [
        *(rank(number, Operation.ALL_REDUCE, 64) for number in range(2)),
        rank(2, Operation.ALL_GATHER, 64),
        rank(3, Operation.ALL_REDUCE, 65),
        rank(4, Operation.ALL_REDUCE, 0),
    ]
    matched = match(ranks)
    assert found(matched)[0] == (0, [0, 1])
    assert matched.disagreeing.tolist() == [0, 0, 1, 1, 1]


def test_in_an_exchange_each_gives_its_own_size() -> None:
    ranks = [summary_of(rank, [Part(0, 0, 0, 10, Operation.EXCHANGE, 64 + rank)]) for rank in range(3)]
    assert found(match(ranks)) == [(0, [0, 1, 2])]


@pytest.mark.parametrize("missed", [1, 2, 5])
def test_a_recording_that_began_later_is_matched_by_where_it_ends(missed: int) -> None:
    early = summary_of(0, ended(ends_us()), [BY_ORDER])
    late = shifted(summary_of(1, ended(ends_us()[missed:]), [BY_ORDER]), -3_000_000_000, -50.0)
    matched = match([early, late])
    assert len(matched) == len(ends_us()) - missed
    begins = np.array([0, len(ends_us())])  # of the rows of each recording
    rows = (matched.at - begins[matched.place]).reshape(-1, 2).tolist()
    assert rows == [[place + missed, place] for place in range(len(matched))]


def of_stage(rank: int | None, *peers: int) -> RankSummary:
    """A stage of a pipeline that names whom it exchanges messages with, of a communicator of all stages."""
    groups = [Group(GroupSource.PEER, 6, 2, peer=peer) for peer in peers]
    parts = [
        part for place in range(len(peers)) for part in ended([100.0 + place, 200.0 + place], group=place)
    ]
    return summary_of(rank, parts, groups)


def test_messages_that_name_the_peer_only_are_paired_by_the_order_of_ranks() -> None:
    stages = [of_stage(8, 1), of_stage(12, 0, 2), of_stage(16, 1)]
    assert sorted(places for _, places in found(match(stages))) == [[0, 1], [0, 1], [1, 2], [1, 2]]


@pytest.mark.parametrize(
    "stages",
    [
        [of_stage(8, 1), of_stage(None, 0, 2), of_stage(16, 1)],
        [of_stage(8, 1), of_stage(16, 1)],
        [of_stage(8, 1), of_stage(12, 2), of_stage(16, 1)],
    ],
)
def test_messages_are_paired_with_nobody_where_ranks_are_unknown_or_missing(
    stages: list[RankSummary],
) -> None:
    assert len(match(stages)) == 0


def test_a_number_that_comes_twice_counts_once() -> None:
    twice = summary_of(0, [Part(0, 1, 0, 10), Part(0, 1, 20, 30)])
    matched = match([twice, summary_of(1, [Part(0, 1, 0, 10)])])
    assert found(matched) == [(1, [0, 1])]


def test_a_sequence_beyond_all_packing_is_matched() -> None:
    rows = [replace(part, sequence=part.sequence << 58) for part in ended([10, 30, 50])]
    assert [places for _, places in found(match([summary_of(0, rows), summary_of(1, rows)]))] == [[0, 1]] * 3
