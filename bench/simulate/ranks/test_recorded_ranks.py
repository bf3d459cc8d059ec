"""Files of several ranks: their clocks, their processes, and what NCCL's payloads say in them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bench.simulate.export import SESSION_START_NS
from bench.simulate.knobs import Knobs
from bench.simulate.ranks.__main__ import main
from bench.simulate.ranks.clocks import Clock, draw_clocks, session_ns
from bench.simulate.ranks.described import Cause, RanksRun
from bench.simulate.ranks.happened import RanksDone, simulate
from bench.simulate.ranks.layout import Group, Layout
from bench.simulate.ranks.nccl import communicator
from bench.simulate.ranks.recorded import Capture, Files, Nccl, Written, write_ranks
from bench.simulate.recorded import START_NS, View
from traces.columns import NULL, NcclCalls
from traces.formats.open import read_trace

LAYOUT = Layout(tensor=1, expert=2, pipeline=2, data=2, ranks_per_host=2)
RUN = RanksRun(7, LAYOUT, Knobs(step_count=2, microbatch_count=2, layer_count=2, pipeline_us=30.0))
CLOCKS = (Clock(0, 0.0), Clock(1_500_000_000, 80.0))


@pytest.fixture(scope="module")
def done() -> RanksDone:
    return simulate(RUN)


def rows(path: Path, query: str) -> list[tuple[int, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def calls(written: Written) -> NcclCalls:
    found = read_trace(written.path).nccl_calls
    assert found is not None
    return found


def named(found: NcclCalls, name: str) -> list[int]:
    """Places of the calls of a name."""
    return [place for place, text in enumerate(found.name.tolist()) if found.names[text] == name]


def test_a_clock_is_off_by_its_offset_and_goes_faster_by_its_drift() -> None:
    assert Clock(500, 100.0).at(1_000_000) == 1_000_000 + 100 + 500
    assert Clock(-500, -50.0).at(1_000_000) == 1_000_000 - 50 - 500


def test_drawn_clocks_are_one_a_host_seconds_and_a_hundred_ppm_apart_at_most() -> None:
    clocks = draw_clocks(replace(RUN, layout=replace(LAYOUT, pipeline=8)))
    assert len(clocks) == 8
    assert clocks[0].offset_ns == 0
    assert 10_000_000 < max(abs(clock.offset_ns) for clock in clocks) <= 3_000_000_000
    assert 10 < max(abs(clock.drift_ppm) for clock in clocks) <= 100


def test_times_of_a_file_are_its_hosts_clock_since_its_session_began(done: RanksDone, tmp_path: Path) -> None:
    written = write_ranks(done, tmp_path, CLOCKS)
    assert [one.ranks for one in written] == [(0,), (1,), (2,), (3,)]
    for one in written:
        rank = one.ranks[0]
        clock = CLOCKS[LAYOUT.host(rank)]
        ((began_ns,),) = rows(one.path, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
        assert began_ns == one.session_start_ns
        assert began_ns == SESSION_START_NS + clock.at(session_ns(RUN, rank)) - START_NS
        recorded = rows(one.path, "SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start")
        true = sorted(
            (work.start_ns, work.end_ns)
            for work in done.ranks[rank].activities
            if work.work.engine.value in ("sms", "communication")
        )
        assert [
            (start + began_ns - SESSION_START_NS, end + began_ns - SESSION_START_NS)
            for start, end in recorded
        ] == [(clock.at(start), clock.at(end)) for start, end in true]
        assert min(start for start, _ in recorded) > 0


def test_the_payloads_say_which_rank_a_process_is_and_who_shares_a_communicator(
    done: RanksDone, tmp_path: Path
) -> None:
    world = communicator(RUN, Group.WORLD, 0)
    signed = world - (1 << 64) if world >> 63 else world
    for one in write_ranks(done, tmp_path, CLOCKS):
        rank, found = one.ranks[0], calls(one)
        inits = {
            found.payloads.communicator[place]: (found.payloads.rank_count[place], found.payloads.rank[place])
            for place in named(found, "ncclCommInitRankConfig")
        }
        assert inits[signed] == (4, rank)
    assert communicator(RUN, Group.EXPERT, 0) == communicator(RUN, Group.EXPERT, 1)
    assert communicator(RUN, Group.EXPERT, 0) != communicator(RUN, Group.EXPERT, 2)


def test_what_one_rank_sends_to_another_is_what_that_one_receives(done: RanksDone, tmp_path: Path) -> None:
    first, second, *_ = (calls(one) for one in write_ranks(done, tmp_path, CLOCKS))

    def bytes_of(found: NcclCalls, name: str, rank: int, peer: int) -> list[int]:
        hashed = communicator(RUN, Group.EXPERT, rank)
        signed = hashed - (1 << 64) if hashed >> 63 else hashed
        said = found.payloads
        places = sorted(named(found, name), key=lambda place: found.start_ns[place])
        return [
            int(said.size_bytes[place])
            for place in places
            if said.communicator[place] == signed and said.peer[place] == peer
        ]

    sent, received = bytes_of(first, "ncclSend", 0, 1), bytes_of(second, "ncclRecv", 1, 0)
    assert sent == received
    assert len(sent) == 2 * 2 * 2 * 6  # steps, microbatches, layers; tokens and probabilities out and back


def test_a_message_of_the_pipeline_names_its_peer_in_the_pipelines_communicator(
    done: RanksDone, tmp_path: Path
) -> None:
    found = calls(write_ranks(done, tmp_path, CLOCKS, Capture(ranks=[2]))[0])
    hashed = communicator(RUN, Group.PIPELINE, 2)
    signed = hashed - (1 << 64) if hashed >> 63 else hashed
    mine = [
        found.names[found.name[place]]
        for place in range(len(found.name))
        if found.payloads.communicator[place] == signed and found.payloads.peer[place] == 0
    ]
    assert sorted(set(mine)) == ["ncclRecv", "ncclSend"]
    assert len(mine) == 2 * 2 * 2  # a step has two microbatches, each received once and sent back once


def kernels_by_process(written: Sequence[Written]) -> dict[int, int]:
    query = "SELECT globalPid, COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY globalPid"
    return {process: count for one in written for process, count in rows(one.path, query)}


@pytest.mark.parametrize(("files", "count"), [(Files.RANK, 4), (Files.HOST, 2), (Files.ALL, 1)])
def test_one_file_or_several_hold_the_same_processes(
    done: RanksDone, tmp_path: Path, files: Files, count: int
) -> None:
    written = write_ranks(done, tmp_path, CLOCKS, Capture(files=files))
    assert len(written) == count
    assert len(list(tmp_path.iterdir())) == count
    expected = [
        sum(one.work.engine.value in ("sms", "communication") for one in rank.activities)
        for rank in done.ranks
    ]
    assert list(kernels_by_process(written).values()) == expected
    devices = "SELECT DISTINCT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY deviceId"
    if files is not Files.RANK:
        assert rows(written[0].path, devices) == [(0,), (1,)]
    world = [place for one in written for place in named(calls(one), "ncclCommInitRankConfig")]
    assert len(world) == 4 * 4  # world, experts, data and pipeline; each expert is on one rank


def test_what_is_not_asked_for_is_not_there(done: RanksDone, tmp_path: Path) -> None:
    ranges = "SELECT COUNT(*) FROM NVTX_EVENTS WHERE domainId = 1"
    captures = {
        "without": Capture(nccl=Nccl.RANGES, ranks=[1]),
        "bare": Capture(nccl=Nccl.NOTHING, ranks=[1], mpi=True),
        "late": Capture(inits=False, ranks=[1]),
    }
    for name in captures:
        (tmp_path / name).mkdir()
    without, bare, late = (write_ranks(done, tmp_path / name, CLOCKS, captures[name])[0] for name in captures)
    assert rows(without.path, ranges)[0][0] > 100
    assert read_trace(without.path).nccl_calls is None
    assert rows(bare.path, ranges) == [(0,)]
    assert rows(bare.path, "SELECT rank FROM MPI_RANKS") == [(1,)]
    assert set(calls(late).payloads.rank_count.tolist()) == {NULL}


def test_a_rank_may_be_recorded_from_later_on_than_the_others(done: RanksDone, tmp_path: Path) -> None:
    views = {1: View(begin_frac=1.0)}
    whole, late = write_ranks(done, tmp_path, CLOCKS, Capture(ranks=[0, 1], views=views))
    count = "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"
    assert rows(late.path, count)[0][0] < 0.6 * rows(whole.path, count)[0][0]
    assert named(calls(whole), "ncclCommInitRankConfig")
    assert not named(calls(late), "ncclCommInitRankConfig")
    assert 0 < len(named(calls(late), "ncclSend")) < len(named(calls(whole), "ncclSend"))


def test_names_of_files_say_nothing_and_payloads_need_a_schema_that_holds_them(
    done: RanksDone, tmp_path: Path
) -> None:
    written = write_ranks(done, tmp_path, CLOCKS, Capture(files=Files.HOST, nccl=Nccl.RANGES))
    assert all(len(one.path.stem) == 10 for one in written)
    with pytest.raises(ValueError, match="no payloads"):
        write_ranks(done, tmp_path, CLOCKS, Capture(View(schema="3.4.0")))


def test_by_hand_files_and_their_truth_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    main(
        [str(out), "--cause", "slow_device", "--seed", "3", "--ranks", "4", "--steps", "2", "--files", "host"]
    )
    known = json.loads((out / "truth.json").read_text())
    assert Cause(known["cause"]) is Cause.SLOW_DEVICE
    assert [known["rank"]] == known["ranks"]
    assert known["effect_frac"] == pytest.approx(known["whole_ns"] / known["mended"]["whole_ns"] - 1)
    late = str(known["rank"])
    assert known["wait_ns"] == known["wait_by_last_ns"][late]
    arrivals = [one for one in known["instances"] if one["late"] == known["rank"]]
    waits = sum(max(one["arrival_ns"]) - ns for one in arrivals for ns in one["arrival_ns"])
    assert waits == known["wait_ns"]
    assert {one["name"] for one in known["files"]} == {path.name for path in out.glob("*.sqlite")}
    assert "slow_device" in capsys.readouterr().out
