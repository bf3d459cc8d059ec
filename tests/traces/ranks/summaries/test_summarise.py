"""One rank's recording -> its summary; what of another thread, stream or process it leaves out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.simulate.export import write_export
from tests.by_hand.run import Run
from tests.places import Export
from tests.recordings.kineto import Profiled, write
from tests.recordings.launches import GATHER, GEMM, SENDRECV, Line, rank_of
from tests.recordings.payloads import collective, init, with_payloads
from tests.recordings.ranks import US, array, measured
from traces.account.account import absent_pieces, measure_account
from traces.account.device import find_queueing
from traces.names.kernels import COMM_KINDS
from traces.ranks.summaries import summarise as summaries
from traces.ranks.summaries.collectives import Called, _with_peers, called_by, messages_of
from traces.ranks.summaries.summarise import loading_ns, summarise
from traces.ranks.summaries.summary import UNKNOWN, FirstStep, GroupSource, Operation, RankSummary
from traces.resolve.communication import communication_of
from traces.resolve.kinds import resolve_kinds
from traces.resolve.nccl_calls import CallPayloads
from traces.resolve.resolution import with_kinds
from traces.steps.found import Step, from_steps
from traces.timeline import RankTimeline


def summary_of(rank: RankTimeline, *steps_us: tuple[int, int]) -> RankSummary:
    rank = with_kinds(rank, resolve_kinds(rank))
    recorded = tuple(Step(place, start * US, end * US) for place, (start, end) in enumerate(steps_us))
    steps = from_steps("user", "steps", recorded)
    account = measure_account(rank, steps.windows, find_queueing(rank))
    return summarise(rank, steps, absent_pieces(account), find_queueing(rank))


@pytest.mark.parametrize(("initialises", "first"), [(False, "LONGER"), (True, "INITIALISES")])
def test_a_longer_first_step_is_in_the_summary_unless_the_rank_initialises_in_it(
    tmp_path: Path, initialises: bool, first: str
) -> None:
    line = Line()
    for _ in range(3):
        line.all(GEMM, GATHER)
        line.now += 40
        line.all(GEMM)
    rank = written(tmp_path, line)
    borders = [0, *(line.now // 3 * (one + 1) for one in range(3))]
    warm_up = Step(0, 0, borders[1] * US, "warm-up", is_warm_up=True, initialises=initialises)
    others = [Step(one, borders[one] * US, borders[one + 1] * US) for one in (1, 2)]
    rank = with_kinds(rank, resolve_kinds(rank))
    steps, queueing = from_steps("user", "steps", (warm_up, *others)), find_queueing(rank)
    absent = absent_pieces(measure_account(rank, steps.windows, queueing))
    moe: Any = SimpleNamespace(expert_work=[array([0, 1])] * 3)
    summary = summarise(rank, steps, absent, queueing, moe)
    assert summary.first_step is FirstStep[first]
    assert summary.experts.step.tolist() == ([0, 1] if initialises else [1, 2])
    assert len(summary.steps) == (2 if initialises else 3)
    whole = from_steps("user", "steps", (replace(warm_up, dropped=None, is_warm_up=False), *others))
    absent = absent_pieces(measure_account(rank, whole.windows, queueing))
    every = summarise(rank, whole, absent, queueing).steps.take(np.arange(3)[initialises:])
    for name in every.__match_args__:
        assert getattr(summary.steps, name).tolist() == getattr(every, name).tolist()


def written(path: Path, line: Line) -> RankTimeline:
    write_export(path / "run.sqlite", line.recording, "3.25.0")
    if line.blob_at:
        with_payloads(path / "run.sqlite", line.blob_at)
    return rank_of(path / "run.sqlite")


def test_a_communicator_names_the_group_and_its_calls_the_peer(tmp_path: Path) -> None:
    line = Line()
    line.call("ncclCommInitRank", init(9, 4, rank=1))
    line.call("ncclCommInitRank", init(5, 4))
    line.exchange(0, 1, 2, 3, communicator=9)
    line.exchange(2, communicator=9)
    line.exchange(0, communicator=9, receive=False)
    line.exchange(2, communicator=9)
    line.exchange(1, communicator=5)
    line.exchange(3, communicator=6)
    line.call("ncclAllGather", collective(6, 500), GATHER)
    line.exchange(1, communicator=5)  # after the step
    line.call("ncclAllGather", collective(5, 0), GATHER)
    summary = summary_of(written(tmp_path, line), (0, 160))
    rows, peers = summary.instances, summary.peers
    assert (summary.identity.kind, summary.identity.version) == ("nsys-sqlite", "3.25.0")
    groups = [summary.groups[group] for group in rows.group.tolist()]
    assert [one.size for one in groups] == [4, 2, 2, 2, 2, 2, None, 2, 4]
    assert [one.own for one in groups] == [1, 0, 1, 0, 0, None, None, 0, 0]
    assert [(one.source.name, one.peer) for one in groups[5:7]] == [("PEER", 3), ("COMMUNICATOR", None)]
    assert rows.group[1] == rows.group[3] != rows.group[2]
    assert rows.sequence.tolist() == [0, 0, 0, 1, 0, 0, 0, 1, 0]
    assert rows.step.tolist() == [0] * 7 + [UNKNOWN] * 2
    assert rows.size_bytes.tolist() == [4_000, *[1_000] * 5, 500, 1_000, 0]
    assert (peers.kind == rows.kind[[4, 5, 0, 0, 0, 0]]).all()
    columns = peers.communicator, peers.own, peers.peer, peers.sent_bytes, peers.received_bytes
    assert np.stack(columns).T.tolist() == [
        [5, 0, 1, 1_000, 1_000], [6, UNKNOWN, 3, 1_000, 1_000], [9, 1, 0, 2_000, 1_000],
        [9, 1, 1, 1_000, 1_000], [9, 1, 2, 3_000, 3_000], [9, 1, 3, 1_000, 1_000],
    ]  # fmt: skip


def called(export: Export, line: Line) -> Called:
    return called_by(communication_of(rank_of(with_payloads(export(line.recording), line.blob_at))))


@pytest.mark.parametrize(("count", "told"), [(64, True), (65, False)])
def test_ranks_of_a_group_are_listed_up_to_sixty_four(tmp_path: Path, count: int, told: bool) -> None:
    run, about = Profiled(), {"Collective name": "allreduce", "Process Group Name": "3", "Group size": count}
    run.run(GEMM)
    run.run(GATHER, stream=20, **about, **{"Process Group Ranks": str([*range(count)])})
    (group,) = measured(rank_of(write(tmp_path / "run.json", run.events))).groups
    assert (group.size, group.members) == (count, tuple(range(count)) if told else None)


def test_an_exchange_counts_its_messages_and_adds_up_its_bytes(export: Export) -> None:
    line = Line()
    line.call("ncclCommInitRank", init(7, 8))
    line.exchange(2, 4)
    line.exchange(5, receive=False)
    line.all(GEMM)
    found = called(export, line)
    assert (found.sends.tolist(), found.receives.tolist()) == ([2, 1], [2, 0])
    assert (found.given_bytes.tolist(), found.received_bytes.tolist()) == ([2_000, 1_000], [2_000, 0])
    assert found.ranks.tolist() == [8, 8]
    assert found.calls[[0, 2, 3, 4]].T.tolist() == [
        [0, 2, 1_000, 0],
        [0, 4, 1_000, 0],
        [0, 2, 0, 1_000],
        [0, 4, 0, 1_000],
        [1, 5, 1_000, 0],
    ]


def test_a_collective_gives_what_it_names_and_an_all_to_all_that_for_every_rank(export: Export) -> None:
    line = Line()
    line.call("ncclCommInitRank", init(7, 4))
    line.call("ncclAllGather", collective(7, 500), GATHER)
    line.call("ncclAlltoAll", collective(7, 500), SENDRECV)
    line.all(GEMM)
    found = called(export, line)
    assert found.given_bytes.tolist() == [500, 2_000]
    assert found.received_bytes.tolist() == [UNKNOWN, UNKNOWN]


def test_a_group_without_payloads_counts_messages_and_tells_no_bytes(export: Export) -> None:
    line = Line()
    line.call("ncclCommInitRank", init(7, 4))
    line.group(2, 1)
    line.all(GEMM)
    found = called(export, line)
    assert (found.sends.tolist(), found.receives.tolist()) == ([2], [1])
    assert (found.given_bytes.tolist(), found.received_bytes.tolist()) == ([UNKNOWN], [UNKNOWN])


def test_calls_with_a_peer_are_those_of_a_known_communicator_peer_and_size_that_send_or_receive() -> None:
    """Three are; of the others a part is unknown each, and the last does neither."""
    told = (0, 0, 0), (3, 5, 100), (3, 5, 100), (-1, 5, 100), (3, -1, 100), (3, 5, -1), (3, 5, 100)
    sends, receives = array([1, 0, 1, 1, 1, 1, 0]) > 0, array([0, 1, 0, 1, 1, 1, 0]) > 0
    payloads = CallPayloads(*np.array(told).T)
    found = _with_peers(payloads, array(range(7)), array(range(7)), sends, receives)
    assert found.T.tolist() == [[0, 0, 0, 0, 0], [1, 3, 5, 0, 100], [2, 3, 5, 100, 0]]


def test_messages_are_kept_where_anything_is_told_of_any() -> None:
    called = Called(*(array([9, one, 0, one < 2]) for one in range(1, 7)))
    found = messages_of(called, array([1, 2]))
    columns = found.sends, found.receives, found.received_bytes
    assert [one.tolist() for one in columns] == [[1, 0], [2, 0], [4, 0]]
    assert [len(messages_of(called, array([place]))) for place in (2, 3)] == [0, 1]


def summarised(run: Run, place: int = 0) -> RankSummary:
    return measured(run.rank(place))


def test_the_pace_of_a_host_is_that_of_each_thread_and_a_graphs_nodes_have_one_launch() -> None:
    """Two threads launch every 40 us each, 20 us apart; then one launches a graph of 40 nodes."""
    run = Run()
    for start, thread in ((0, 0), (1_000, 0), (2_000, 0)):
        step = run.step(start, start + 1_000)
        for number in range(20):
            step.work("gemm", 20 * number + 10, 20 * number + 20, thread=thread + number % 2)
        graph = step.call("graph_launch", 500, 502)
        for node in range(40):
            step.work("gemm", 520 + 10 * node, 530 + 10 * node, of=graph, node=node)
    assert summarised(run).steps.pace_ns.tolist() == [40 * US] * 3


@pytest.mark.parametrize(
    ("launches", "threads", "pace_ns"),
    [(13, 1, 20 * US), (12, 1, UNKNOWN), (14, 2, 40 * US), (13, 2, UNKNOWN)],
)
def test_twelve_launches_that_follow_another_of_their_thread_tell_the_pace(
    launches: int, threads: int, pace_ns: int
) -> None:
    run = Run()
    for step in run.steps(3, every=400):
        for number in range(launches):
            step.work("gemm", 20 * number + 10, 20 * number + 20, thread=number % threads)
    assert summarised(run).steps.pace_ns.tolist() == [pace_ns] * 3


def test_kernels_tell_of_a_gpu_by_name_and_shape_where_three_ran_alone_in_the_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run()
    for step in run.steps(3, every=400):
        step.work("gemm", 0, 20)
        step.work("gemm", 50, 80, blocks=64)  # another shape
        step.work("gemm", 100, 120)
        step.work("attention", 130, 140)
        step.work("gemm", 150, 190)  # beside communication of another stream
        step.work("all_reduce", 160, 200, stream=20)
        step.work("h2d", 210, 220)
    run.work("attention", 1_300, 1_390)  # after the last step
    found = summarised(run).kernels
    rows = zip(found.median_ns.tolist(), found.count.tolist(), found.total_ns.tolist(), strict=True)
    assert sorted(rows) == [(10 * US, 3, 30 * US), (20 * US, 6, 120 * US), (30 * US, 3, 90 * US)]
    run.work("gemm", 0, 155, blocks=32, stream=9)  # one says nothing, however long
    monkeypatch.setattr(summaries, "KINDS", replace(summaries.KINDS, value=2))
    assert sorted(summarised(run).kernels.median_ns.tolist()) == [20 * US, 30 * US]
    two = Run()
    for step in two.steps(2, every=400):
        step.work("gemm", 0, 20)
    assert len(summarised(two).kernels) == 0


def test_what_a_host_waits_for_between_the_copy_of_a_batch_and_the_first_kernel_is_no_batch() -> None:
    """The GPU is idle for 40; for 50 more no compute runs, the copy for 20 of them."""
    run = Run(ahead_us=2)
    for step in run.steps(4, every=200):
        step.work("h2d", 40, 60)
        for at in range(90, 200, 5):
            step.work("gemm", at, at + 5)
    found = summarised(run).steps
    assert found.loader_ns.tolist()[1:] == [40 * US] * 3
    assert found.host_starved_ns.tolist()[1:] == [50 * US] * 3


def test_each_process_of_a_recording_is_a_rank_of_its_own_work_on_one_clock() -> None:
    run = Run()
    for process, us in ((0, 50), (1, 80)):
        for step in run.process(process, rank=process).steps(3, every=100):
            step.work("gemm", 0, us)
            step.work("all_reduce", us, 95, stream=20)
    first, second = (summarised(run, place) for place in range(2))
    assert [one.steps.compute_ns.tolist() for one in (first, second)] == [[50 * US] * 3, [80 * US] * 3]
    assert [one.instances.exposed_ns.tolist() for one in (first, second)] == [[45 * US] * 3, [15 * US] * 3]
    assert [one.identity.rank for one in (first, second)] == [0, 1]
    assert [one.identity.device for one in (first, second)] == [0, 1]
    assert first.identity.clock == second.identity.clock
    assert first.identity.recording != second.identity.recording
    assert first.identity.process != second.identity.process
    silent = [Run(), Run()]  # nothing was called that would tell of one clock
    for end, run in enumerate(silent, start=50):
        for step in run.steps(3, every=100):
            step.work("gemm", 0, end, launched=False)
    assert len({summarised(run).identity.clock for run in silent}) == 2


def test_what_is_beneath_compute_is_not_exposed_and_what_was_before_is_since_the_last_of_its_group() -> None:
    """The reduction runs from 60 to 100, and until 70 beside compute; a gather of its own group before it."""
    run = Run()
    for step in run.steps(3, every=200):
        step.work("grouped_gemm", 0, 30)
        step.work("all_gather", 30, 40, stream=24)
        step.work("gemm", 40, 70)
        step.work("all_reduce", 60, 100, stream=20)
    found = summarised(run)
    rows = found.instances
    assert rows.operation.tolist() == [Operation.ALL_GATHER, Operation.ALL_REDUCE] * 3
    assert rows.exposed_ns.tolist() == [10 * US, 30 * US] * 3
    assert rows.compute_ns.tolist() == [UNKNOWN, UNKNOWN, *[60 * US, 50 * US] * 2]
    assert rows.grouped_ns.tolist() == [UNKNOWN, UNKNOWN, *[30 * US, 30 * US] * 2]
    assert rows.step.tolist() == [0, 0, 1, 1, 2, 2]
    assert [COMM_KINDS[kind] for kind in rows.kind.tolist()] == ["other_comm", "all_reduce"] * 3
    assert {one.source for one in found.groups} == {GroupSource.ORDER}
    assert found.steps.exposed_comm_ns.tolist() == [40 * US] * 3
    assert (found.fingerprint.has_experts, found.fingerprint.has_loss) == (True, False)


@pytest.mark.parametrize(("loads_us", "thread", "ahead_us", "us"), [
    ((60, 60, 60), 1, 10, 0), ((60, 30, 0), 0, 10, 60), ((60, 29, 29), 0, 10, 0),  # half as long again
    ((60, 60, 60), 0, 102, 60), ((60, 60, 60), 0, 103, 0),  # at once is 100 us from the end of 2 us
])  # fmt: skip
def test_a_loader_counts_before_the_first_work_where_its_own_thread_launches_that_at_once(
    loads_us: tuple[int, ...], thread: int, ahead_us: float, us: int
) -> None:
    run = Run(ahead_us=ahead_us)
    for start, loads in zip((0, 300, 600), loads_us, strict=True):
        run.range("data", start, start + loads, thread=thread)
        step = run.step(start + 180, start + 290)
        step.work("gemm", 0, 100)
    assert summarised(run).steps.loader_ns.tolist()[0] == us * US
    steps = (Step(n, 300 * n * US, 300 * (n + 1) * US, None if n else "partial") for n in range(3))
    assert loading_ns(run.rank(0), from_steps("user", "steps", tuple(steps))) == 0
