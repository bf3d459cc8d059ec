"""Bytes and bandwidth by the sizes of nccl-tests, and recordings of as many runs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.recordings.ranks import US, Part, analyse_run, array, summary_of
from traces.errors import UnlikeRuns
from traces.intervals import spans
from traces.missing import Missing, known
from traces.names.kernels import COMM_KINDS
from traces.ranks.one_run.mixed import refuse_mixed
from traces.ranks.one_run.problems import RecordingProblem
from traces.ranks.one_run.together import OneRun
from traces.ranks.summaries.collective_rates import _of_link, measure_collectives
from traces.ranks.summaries.summary import UNKNOWN, Group, GroupSource, Operation, Peers, RankSummary
from traces.sections.cause import ProblemKind
from traces.sections.run import CollectiveSpeed, Run, Traffic

MB = 1_000_000
STEPS = [{"start": 0, "end": 1000}, {"start": 1000, "end": 2000}]
EP = COMM_KINDS.index("ep_a2a")


def ranks_of(operation: Operation, sizes: tuple[int, ...], *, kind: str = "tp") -> list[RankSummary]:
    """Ranks that meet once in each of two steps and send to the first; the last comes 50 us before an end."""
    group = [Group(GroupSource.COMMUNICATOR, 7, len(sizes))]
    result = []
    for rank, size in enumerate(sizes):
        start = 50 if rank == len(sizes) - 1 else 0
        parts = [
            Part(0, step, 1000 * step + start, 1000 * step + 100, operation, size, step) for step in (0, 1)
        ]
        one = summary_of(rank, parts, group, world_size=len(sizes), steps=STEPS)
        kinds = one.instances.kind * 0 + COMM_KINDS.index(kind)
        peers = Peers(*(array([value]) for value in (EP, 7, rank, 0, size, 0)))
        result.append(replace(one, instances=replace(one.instances, kind=kinds), peers=peers))
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
    ranks = ranks_of(operation, (8 * MB,) * 4)
    found = analyse_run(ranks)
    assert given_bytes(found) == [{"tp": 8 * MB}] * 4
    (speed,) = speeds(found)
    assert (speed.collectives, speed.size_bytes, speed.transfer_ns) == (2, 2 * moved, 2 * 50 * US)
    assert speed.bytes_per_s == moved / 50e-6
    pairs = [(one.kind, one.sender, one.receiver, one.size_bytes) for one in traffic(found).largest_pairs]
    assert pairs == [("ep_a2a", rank, 0, 4 * MB) for rank in (1, 2, 3)]
    assert isinstance(traffic(analyse_run(ranks[:3])).speeds, Missing)


def test_without_sizes_there_is_no_figure_and_a_kind_with_one_missing_size_has_none() -> None:
    assert isinstance(analyse_run(ranks_of(Operation.ALL_REDUCE, (UNKNOWN,) * 2)).traffic, Missing)
    ranks = ranks_of(Operation.ALL_REDUCE, (8 * MB,) * 2)
    ranks[0].instances.size_bytes[0] = UNKNOWN
    found = analyse_run(ranks)
    assert given_bytes(found) == [None, {"tp": 8 * MB}]
    assert speeds(found)[0].collectives == 1


ALL, GATHER, TOKENS = Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.EXCHANGE


GROUPS = [
    Group(GroupSource.COMMUNICATOR, 1, 4),
    Group(GroupSource.COMMUNICATOR, 2, 2),
    Group(GroupSource.COMMUNICATOR, 3),
    Group(GroupSource.PEER, 4, 2, peer=1),
]


def rates(*rows: tuple[Part, str]) -> list[tuple[Any, ...]] | Missing:
    """Of parts of kinds, those that start within 100 us: name, ranks, count, bytes, GB/s and fastest."""
    one = summary_of(0, [part for part, _ in rows], GROUPS)
    kinds = array([COMM_KINDS.index(kind) for _, kind in rows])
    one = replace(one, instances=replace(one.instances, kind=kinds))
    rank: Any = SimpleNamespace(gpu=None, columns=SimpleNamespace(info=SimpleNamespace(kind="nsys-sqlite")))
    found = measure_collectives(rank, spans((0, 100_000)), one)
    if isinstance(found, Missing):
        return found
    assert all(isinstance(each.link_frac, Missing) for each in found)
    return [
        (
            each.collective, each.rank_count, each.count, each.size_bytes, each.algorithm_gb_per_s_at_least,
            each.bus_gb_per_s_at_least, each.fastest_bus_gb_per_s,
        )
        for each in found
    ]  # fmt: skip


def test_four_ranks_that_reduce_move_half_as_much_again_and_a_gather_the_sizes_of_all() -> None:
    found = rates(
        (Part(0, 0, 0, 2, ALL, 8_000), "all_reduce"),
        (Part(0, 1, 10, 12, ALL, 8_000), "all_reduce"),
        (Part(0, 2, 20, 21, ALL, 8_000), "all_reduce"),
        (Part(1, 0, 30, 31, GATHER, 1_000), "dp_all_gather"),
        (Part(0, 3, 40, 48, TOKENS, 8_000), "ep_a2a"),
    )
    assert found == [
        ("all_to_all", 4, 1, 8_000, 1, 0.75, 0.75),  # the longest first
        ("all_reduce", 4, 3, 24_000, 4.8, 4.8 * 1.5, 8 * 1.5),
        ("all_gather", 2, 1, 2_000, 2, 1, 1),
    ]


@pytest.mark.parametrize(
    "row",
    [
        (Part(0, 0, 0, 2, ALL, 0), "all_reduce"),
        (Part(0, 0, 0, 0, ALL, 8_000), "all_reduce"),
        (Part(2, 0, 0, 2, ALL, 8_000), "all_reduce"),  # of a group whose size nobody tells
        (Part(3, 0, 0, 2, TOKENS, 8_000), "ep_a2a"),  # with one peer
        (Part(0, 0, 0, 2, TOKENS, 8_000), "pp_p2p"),  # a message
    ],
)
def test_no_rate_is_told_of_what_has_no_size_no_time_or_is_a_message(row: tuple[Part, str]) -> None:
    assert isinstance(rates(row), Missing)


def test_of_one_number_that_is_several_kernels_and_outside_the_windows_there_is_no_rate() -> None:
    twice = [(Part(0, 0, at, at + 2, ALL, 8_000), "all_reduce") for at in (0, 10)]
    assert isinstance(rates(*twice), Missing)
    assert rates((Part(0, 0, 100, 102, ALL, 8_000), "all_reduce")) == []


def test_a_link_is_known_of_a_gpu_that_is_and_of_eight_ranks_at_most() -> None:
    assert _of_link(90.0, 8, 450) == 0.2
    assert isinstance(_of_link(90.0, 9, 450), Missing)
    assert isinstance(_of_link(90.0, 8, None), Missing)


@pytest.mark.parametrize(
    ("gone", "kind", "refused"),
    [
        ((2, 3), ProblemKind.MIXED_RUNS, True),
        ((2,), ProblemKind.MIXED_RUNS, False),  # fewer are of another run
        ((2, 3), ProblemKind.DUPLICATE, False),
    ],
)
def test_as_many_recordings_of_another_run_as_of_one_are_refused(
    gone: tuple[int, ...], kind: ProblemKind, refused: bool
) -> None:
    untold: Any = None
    problem = RecordingProblem(kind, gone, "recorded an hour later", True)
    together = OneRun((untold,) * 2, (0, 1), untold, None, (problem,))
    names = ["a", "b", "c", "d"]
    if not refused:
        refuse_mixed(together, names, "analyze")
        return
    with pytest.raises(UnlikeRuns) as error:
        refuse_mixed(together, names, "analyze")
    assert str(error.value) == (
        "these are of different runs: a, b; and c, d: recorded an hour later. "
        "Type moe-diag analyze with the files of one run, or moe-diag compare with both"
    )
