"""Bytes: what is recorded is added up, what is not stays unknown, and sizes are those of nccl-tests."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.recorded import Capture, write_ranks
from tests.recordings.ranks import US, Part, array, summaries_in, summary_of
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


def test_sizes_of_a_simulated_run_are_those_that_its_payloads_were_written_with(tmp_path: Path) -> None:
    truth = draw_run(105, Cause.NONE)
    run = truth.run
    written = write_ranks(truth.done, tmp_path, draw_clocks(run), Capture(mpi=True))
    summaries = [summary for one in written for summary in summaries_in(one.path)]
    found = analyse_run(summaries)
    given: Counter[str] = Counter()
    skipped = run.knobs.step_count - len(summaries[0].steps)
    for one in truth.done.ranks[0].activities:
        if one.collective is not None and one.work.place.step >= skipped:
            ranks = len(one.collective.group) if one.work.kernel == "nccl_reduce_scatter" else 1
            given[one.work.kernel] += one.work.size_bytes * ranks
    steps = len(summaries[0].steps)
    mine = known(found.ranks[0].given_bytes) or {}
    assert mine["dp_reduce_scatter"] == pytest.approx(given["nccl_reduce_scatter"] / steps, rel=0.01)
    assert mine["all_reduce"] == pytest.approx(given["nccl_all_reduce"] / steps, rel=0.01)
    sent = sum(mine[kind] for kind in mine if kind.startswith("ep_"))
    assert sent == pytest.approx(given["nccl_send_recv"] / steps, rel=0.1)  # tokens differ by rank
    pair = traffic(found).largest_pairs[0]
    assert pair.sender != pair.receiver


def test_sizes_of_a_real_recording_are_its_elements_times_their_bytes(recordings: Path) -> None:
    path = recordings / "hta_nccl_parser_config_nccl_data.json.gz"
    (summary,) = summaries_in(path)
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    kernels = [one for one in events if one.get("cat") == "kernel" and "nccl" in one["name"]]
    kernels.sort(key=lambda one: float(one["ts"]))
    wide = {"Float": 4, "BFloat16": 2, "Half": 2, "Long": 8, "Int": 4, "Byte": 1, "Double": 8}
    sizes = [one["args"]["In msg nelems"] * wide[one["args"]["dtype"]] for one in kernels]
    assert len(sizes) == 21
    assert np.sort(summary.instances.size_bytes).tolist() == sorted(sizes)
