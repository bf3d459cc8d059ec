"""One rank's recording -> its summary, event by event."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.simulate.export import write_export
from tests.recordings.kineto import Profiled, write
from tests.recordings.launches import GATHER, GEMM, Line, rank_of
from tests.recordings.payloads import init, with_payloads
from traces.account.account import absent_pieces, measure_account
from traces.account.device import find_queueing
from traces.ranks.summarise import summarise
from traces.ranks.summary import FirstStep, GroupSource, Operation, RankSummary
from traces.resolve.kinds import resolve_kinds
from traces.resolve.resolution import with_kinds
from traces.steps.found import Step, from_steps
from traces.timeline import RankTimeline

US = 1_000
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


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
    summary = summarise(rank, steps, absent, queueing)
    assert summary.first_step is FirstStep[first]
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


def profiled(path: Path, run: Profiled, **header: object) -> RankTimeline:
    return rank_of(write(path / "run.json", run.events, **header))


def test_a_process_group_and_its_number_name_the_collective(tmp_path: Path) -> None:
    run = Profiled()
    told = {"Process Group Name": "3", "Process Group Ranks": "[0, 4]", "Group size": 2, "dtype": "Float"}
    for number in (8, 9):
        run.run(GEMM)
        run.run(REDUCE, stream=20, **told, **{"Seq": number, "In msg nelems": 100})
    rank = profiled(tmp_path, run, distributedInfo={"rank": 4, "world_size": 8})
    summary = summary_of(rank, (0, 100))
    (group,) = summary.groups
    assert (group.source, group.size, group.members) == (GroupSource.PROCESS_GROUP, 2, (0, 4))
    assert (summary.identity.rank, summary.identity.world_size) == (4, 8)
    rows = summary.instances
    assert rows.operation.tolist() == [Operation.ALL_REDUCE] * 2
    assert rows.sequence[1] - rows.sequence[0] == 256
    assert rows.size_bytes.tolist() == [400, 400]


def test_kernels_of_one_number_keep_their_order(tmp_path: Path) -> None:
    run = Profiled()
    for number in (8, 8, 9):
        told = {"Process Group Name": "3", "Process Group Ranks": "[0, 4]", "Seq": number}
        run.run(REDUCE, stream=20, **told)
    sequence = summary_of(profiled(tmp_path, run), (0, 100)).instances.sequence
    assert (sequence - sequence[0]).tolist() == [0, 1, 256]


def test_a_communicator_names_the_group_and_its_calls_the_peer(tmp_path: Path) -> None:
    line = Line()
    line.call("ncclCommInitRank", init(9, 4, rank=1))
    line.exchange(0, 1, 2, 3, communicator=9)
    line.exchange(2, communicator=9)
    line.exchange(0, communicator=9, receive=False)
    line.exchange(2, communicator=9)
    summary = summary_of(written(tmp_path, line), (0, 200))
    rows = summary.instances
    assert [summary.groups[group].size for group in rows.group.tolist()] == [4, 2, 2, 2]
    assert [summary.groups[group].own for group in rows.group.tolist()] == [1, 0, 1, 0]
    assert rows.group[1] == rows.group[3] != rows.group[2]
    assert rows.sequence.tolist() == [0, 0, 0, 1]
