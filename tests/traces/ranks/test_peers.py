"""Bytes: what is recorded is added up, what is not stays unknown, and sizes are those of nccl-tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.recordings.ranks import US, Part, array, summary_of
from traces.missing import Missing, known
from traces.names.kernels import COMM_KINDS
from traces.ranks.run import analyse_run
from traces.ranks.summary import UNKNOWN, Group, GroupSource, Messages, Operation, Peers, RankSummary
from traces.sections.run import CollectiveSpeed, Run, Traffic

MB = 1_000_000
STEPS = [{"start": 0, "end": 1000}, {"start": 1000, "end": 2000}]
EP = COMM_KINDS.index("ep_a2a")


def ranks_of(operation: Operation, sizes: tuple[int, ...], *, kind: str = "tp") -> list[RankSummary]:
    """Ranks that meet once in each of two steps; the last one arrives 50 us before all end."""
    group = [Group(GroupSource.COMMUNICATOR, 7, len(sizes))]
    result = []
    for rank, size in enumerate(sizes):
        start = 50 if rank == len(sizes) - 1 else 0
        parts = [
            Part(0, step, 1000 * step + start, 1000 * step + 100, operation, size, step) for step in (0, 1)
        ]
        one = summary_of(rank, parts, group, world_size=len(sizes), steps=STEPS)
        kinds = one.instances.kind * 0 + COMM_KINDS.index(kind)
        result.append(replace(one, instances=replace(one.instances, kind=kinds)))
    return result


def traffic(run: Run) -> Traffic:
    assert isinstance(run.traffic, Traffic)
    return run.traffic


def speeds(run: Run) -> tuple[CollectiveSpeed, ...]:
    found = traffic(run).speeds
    assert isinstance(found, tuple)
    return found


def given_bytes(run: Run) -> list[object]:
    return [known(one.given_bytes) for one in run.ranks]


@pytest.mark.parametrize(
    ("operation", "moved"),
    [
        (Operation.ALL_REDUCE, 8 * MB),
        (Operation.ALL_GATHER, 4 * 8 * MB),  # each gives 8 MB, and gets those of all four
        (Operation.REDUCE_SCATTER, 8 * MB),  # each gives all it has, and gets a quarter
        (Operation.BROADCAST, 8 * MB),
    ],
)
def test_speed_is_size_over_the_time_of_the_shortest(operation: Operation, moved: int) -> None:
    found = analyse_run(ranks_of(operation, (8 * MB,) * 4))
    assert given_bytes(found) == [{"tp": 8 * MB}] * 4
    (speed,) = speeds(found)
    assert (speed.collectives, speed.size_bytes, speed.transfer_ns) == (2, 2 * moved, 2 * 50 * US)
    assert speed.bytes_per_s == moved / 50e-6


def test_in_an_exchange_the_shortest_participant_moves_the_larger_of_what_it_gives_and_gets() -> None:
    ranks = ranks_of(Operation.EXCHANGE, (6 * MB, 2 * MB), kind="ep_a2a")
    both = [Messages(array([1, 1]), array([1, 1]), array([got, got])) for got in (2 * MB, 6 * MB)]
    ranks = [replace(rank, messages=one) for rank, one in zip(ranks, both, strict=True)]
    found = analyse_run(ranks)
    assert given_bytes(found) == [{"ep_a2a": 6 * MB}, {"ep_a2a": 2 * MB}]
    assert speeds(found)[0].bytes_per_s == 6 * MB / 50e-6


def test_without_sizes_there_is_no_figure_and_a_kind_with_one_missing_size_has_none() -> None:
    assert isinstance(analyse_run(ranks_of(Operation.ALL_REDUCE, (UNKNOWN,) * 2)).traffic, Missing)
    ranks = ranks_of(Operation.ALL_REDUCE, (8 * MB,) * 2)
    ranks[0].instances.size_bytes[0] = UNKNOWN
    found = analyse_run(ranks)
    assert given_bytes(found) == [None, {"tp": 8 * MB}]
    assert speeds(found)[0].collectives == 1


def test_where_a_rank_of_the_group_is_missing_no_speed_is_known() -> None:
    ranks = ranks_of(Operation.ALL_REDUCE, (8 * MB,) * 4)
    found = analyse_run(ranks[:3])
    assert isinstance(traffic(found).speeds, Missing)
    assert given_bytes(found) == [{"tp": 8 * MB}] * 3


def test_who_sends_to_whom_is_known_by_places_in_the_communicator() -> None:
    ranks = ranks_of(Operation.EXCHANGE, (6 * MB, 2 * MB), kind="ep_a2a")
    for own, sent in enumerate((6 * MB, 2 * MB)):
        columns = [[EP, EP], [7, 7], [own, own], [0, 1], [sent, sent], [0, 0]]
        ranks[own] = replace(ranks[own], peers=Peers(*map(array, columns)))
    pairs = traffic(analyse_run(ranks)).largest_pairs
    assert [(one.kind, one.sender, one.receiver, one.size_bytes) for one in pairs] == [
        ("ep_a2a", 0, 1, 3 * MB),
        ("ep_a2a", 1, 0, 1 * MB),
    ]
