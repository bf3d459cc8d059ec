"""What was argued by hand of the real recordings of several ranks: its figures, from the recordings again."""

from __future__ import annotations

import tomllib
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tests.by_definition.real_ranks import (
    Calls,
    Kernel,
    between_calls,
    exchanged_elements,
    export_window_ns,
    from_wait_to_launch_ns,
    head,
    kernels_of_events,
    kernels_of_export,
    kineto_window_ns,
    matched,
    operations_of_both,
    own_host_ns,
    processes_of_export,
    profiler_ns,
    ranges_of,
    step_begin,
)
from tests.by_definition.real_recordings import events_of as read_events
from tests.by_definition.real_recordings import sql
from tests.places import DATA

TABLE: Final[dict[str, list[dict[str, Any]]]] = tomllib.loads(
    (DATA / "real_ranks.toml").read_text(encoding="utf-8")
)
GROUPS: Final = {group["id"]: group for group in TABLE["group"]}
WITH_CALLS: Final = [name for name, group in GROUPS.items() if group["calls"]]
RECOMMENDER: Final = "dlrm8"
PAIR: Final = "sequence_parallel_2"
QUIET: Final = "no_calls_2"
BACKWARD: Final = slice(4, 8)
NVTX_THREAD: Final = 39

events_of = cache(read_events)


def ranks_of(group: dict[str, Any], recordings: Path) -> list[list[Kernel]]:
    """The kernels of each rank of a group."""
    if "processes" in group:
        return [kernels_of_export(recordings / group["files"][0], pid) for pid in group["processes"]]
    return [kernels_of_events(events_of(recordings / name)) for name in group["files"]]


def calls_of(name: str, recordings: Path) -> Calls:
    return matched(ranks_of(GROUPS[name], recordings))


@pytest.mark.parametrize("name", WITH_CALLS)
def test_calls_match_and_give_the_waits_of_the_table(recordings: Path, name: str) -> None:
    group, calls = GROUPS[name], calls_of(name, recordings)
    kinds = group["kinds"]
    assert list(calls.kinds) == (kinds if isinstance(kinds, list) else [kinds] * group["calls"])
    assert calls.transfer.tolist() == group["transfer_ns"]
    assert calls.wait.sum(axis=1).tolist() == group["wait_ns"]
    places = group["ranks"] if "ranks" in group else group["devices"]
    assert [places[place] for place in calls.late.tolist()] == group["late"]
    assert calls.charged.tolist() == group["charged_ns"]
    assert int(calls.ends_spread.max()) == group["ends_spread_ns"]


@pytest.mark.parametrize("name", [RECOMMENDER, PAIR])
def test_by_the_recorded_clocks_the_same_ranks_start_last(recordings: Path, name: str) -> None:
    calls = calls_of(name, recordings)
    assert calls.last.tolist() == calls.late.tolist()


@pytest.mark.parametrize("name", ["dlrm8_without_the_late_one", "dlrm8_two_that_waited"])
def test_without_the_late_rank_the_shortest_call_is_no_transfer(recordings: Path, name: str) -> None:
    some, run = calls_of(name, recordings), calls_of(RECOMMENDER, recordings)
    assert bool(np.all(some.transfer[:4] > 10 * run.transfer[:4]))


def test_the_table_names_causes_of_the_contract() -> None:
    causes = {"slow_device", "slow_host", "slow_link", "routing_imbalance", "rotating_jitter"}
    causes |= {"data_loader", "pipeline_imbalance", "none"}
    for group in GROUPS.values():
        assert set(group["may_say"]) <= causes | {"cannot_tell"}
        assert {cause for _, cause in group["must_not_say"]} <= causes
        reasons = {cause["reason"] for cause in group.get("cause", [])}
        assert reasons <= causes | {"before_recording", "carried", "profiler", "below_resolution"}


@pytest.mark.parametrize("name", [RECOMMENDER, PAIR])
def test_each_call_has_one_reason_and_its_wait(recordings: Path, name: str) -> None:
    calls, group = calls_of(name, recordings), GROUPS[name]
    for cause in group["cause"]:
        assert {group["late"][call] for call in cause["calls"]} == {cause["late"]}
        assert int(calls.wait[:, cause["calls"]].sum()) == cause["wait_ns"]
    assert sorted(call for cause in group["cause"] for call in cause["calls"]) == list(range(group["calls"]))


@pytest.mark.parametrize("name", GROUPS)
def test_the_ranks_and_the_world_are_those_recorded(recordings: Path, name: str) -> None:
    group = GROUPS[name]
    if "ranks" in group:
        said = [head(recordings / file)["distributedInfo"] for file in group["files"]]
        assert [one["rank"] for one in said] == group["ranks"]
        assert {one["world_size"] for one in said} == {group["world_size"]}
    elif "processes" in group:
        there = processes_of_export(recordings / group["files"][0])
        assert [(pid, device) for pid, device, _ in there] == list(
            zip(group["processes"], group["devices"], strict=True)
        )


def test_only_the_ranks_of_the_recommender_overlap_in_time(recordings: Path) -> None:
    files = [*recordings.glob("*.json.gz"), *(recordings / "added" / "dlrm8").glob("*.json.gz")]
    windows = {str(path.relative_to(recordings)): kineto_window_ns(path) for path in files}
    windows |= {
        str(path.relative_to(recordings)): export_window_ns(path)
        for path in [*recordings.glob("*.sqlite"), *(recordings / "added").glob("*.sqlite")]
    }
    one_run = set(GROUPS[RECOMMENDER]["files"])
    told = {name: window for name, window in windows.items() if window is not None}
    assert told.keys() == windows.keys()
    for one, other in combinations(sorted(told), 2):
        overlap = min(told[one][1], told[other][1]) - max(told[one][0], told[other][0])
        assert (overlap > 0) == ({one, other} <= one_run), (one, other)


def test_every_recording_stands_in_the_table(recordings: Path) -> None:
    named = {file for group in GROUPS.values() for file in group["files"]}
    named |= {alone["file"] for alone in TABLE["alone"]}
    there = {
        str(path.relative_to(recordings))
        for folder in (recordings, recordings / "added", recordings / "added" / "dlrm8")
        for pattern in ("*.json.gz", "*.sqlite")
        for path in folder.glob(pattern)
    }
    assert there == named


def test_the_last_rank_began_its_step_last_and_its_host_is_as_fast_as_the_others(recordings: Path) -> None:
    events = [events_of(recordings / name) for name in GROUPS[RECOMMENDER]["files"]]
    begin = [step_begin(rank) for rank in events]
    assert int(np.argmax(begin)) == 7
    assert max(begin) - min(begin) == 7_513_000
    carried = np.array([own_host_ns(rank)[1:5].sum() for rank in events])
    assert carried[7] < np.median(carried)


def test_of_any_two_ranks_the_one_that_began_its_step_later_is_charged(recordings: Path) -> None:
    """So what two of eight ranks wait for each other says when their steps began, and no more."""
    events = [events_of(recordings / name) for name in GROUPS[RECOMMENDER]["files"]]
    kernels = [kernels_of_events(rank) for rank in events]
    for pair in combinations(range(8), 2):
        charged = matched([kernels[rank] for rank in pair]).charged
        begin = [step_begin(events[rank]) for rank in pair]
        assert int(np.argmax(charged)) == int(np.argmax(begin)), pair


def test_two_hosts_are_slower_in_backward_and_their_kernels_are_not(recordings: Path) -> None:
    events = [events_of(recordings / name) for name in GROUPS[RECOMMENDER]["files"]]
    host = np.array([own_host_ns(rank)[BACKWARD].sum() for rank in events])
    others = host[[0, 1, 2, 3, 6, 7]]
    assert bool(np.all(host[[4, 5]] > 1.15 * others.max()))
    assert others.max() < 1.03 * others.min()
    compute = np.array([between_calls(kernels_of_events(rank))[BACKWARD].sum() for rank in events])
    assert compute[5] < compute[[0, 1, 2, 3, 6, 7]].max()
    assert compute[4] - compute.min() < 70_000


def test_a_rank_that_began_early_hides_a_slow_forward(recordings: Path) -> None:
    events = [events_of(recordings / name) for name in GROUPS[RECOMMENDER]["files"]]
    forward = np.array([own_host_ns(rank)[:2].sum() for rank in events])
    assert int(np.argmax(forward)) == 3
    assert forward[3] > 1.1 * np.median(forward)
    assert 3 not in GROUPS[RECOMMENDER]["late"]


def test_one_rank_is_given_half_of_an_exchange_and_makes_nobody_wait(recordings: Path) -> None:
    events = [events_of(recordings / name) for name in GROUPS[RECOMMENDER]["files"]]
    received, sent = zip(*(exchanged_elements(rank)[3] for rank in events), strict=True)
    assert set(sent) == {3_392}
    assert received == (768, 1_792, 2_304, 13_312, 4_736, 768, 1_536, 1_920)
    assert sum(received) == sum(sent)
    assert 3 not in GROUPS[RECOMMENDER]["late"]


def test_kernels_of_the_step_before_stand_in_two_of_the_ranks(recordings: Path) -> None:
    ranks = ranks_of(GROUPS[RECOMMENDER], recordings)
    assert [sum(kernel.call is None for kernel in rank) for rank in ranks] == [0, 64, 0, 64, 0, 0, 0, 0]


def test_the_late_process_has_the_slower_host_and_the_same_kernels(recordings: Path) -> None:
    group = GROUPS[PAIR]
    path, (one, other) = recordings / group["files"][0], group["processes"]
    lengths = operations_of_both(path, (one, other))
    assert lengths.shape == (2, 3_214)
    assert float(np.median(lengths[1] / lengths[0])) == pytest.approx(1.08, abs=0.01)
    begin, late = (from_wait_to_launch_ns(path, pid) for pid in (one, other))
    both = sorted(begin.keys() & late.keys())
    assert len(both) == 15
    assert np.median([late[call] - begin[call] for call in both]) == 436_824
    compute = [between_calls(rank).sum() for rank in ranks_of(group, recordings)]
    assert compute[1] / compute[0] == pytest.approx(1, abs=0.005)


def test_small_waits_of_six_calls_are_longer_kernels(recordings: Path) -> None:
    group = GROUPS[PAIR]
    ranks = ranks_of(group, recordings)
    [row] = [cause for cause in group["cause"] if cause["reason"] == "slow_device"]
    longer = (between_calls(ranks[1]) - between_calls(ranks[0]))[row["calls"]]
    wait = matched(ranks).wait[0][row["calls"]]
    assert bool(np.all(longer >= 40_000))
    assert bool(np.all(abs(wait - longer) < 6_000))


def test_one_late_arrival_is_the_profilers(recordings: Path) -> None:
    group, calls = GROUPS[PAIR], calls_of(PAIR, recordings)
    path = recordings / group["files"][0]
    held = [
        profiler_ns(path, pid, int(calls.end[place, 28]), int(calls.start[place, 29]))
        for place, pid in enumerate(group["processes"])
    ]
    assert held == [1_584_748, 424_757]


def test_ranges_of_groups_are_not_as_many_as_kernels_at_the_edges(recordings: Path) -> None:
    group = GROUPS[PAIR]
    path = recordings / group["files"][0]
    assert [len(ranges_of(path, pid, "ncclGroupEnd")) for pid in group["processes"]] == [32, 34]
    first = [next(kernel for kernel in rank if kernel.kind) for rank in ranks_of(group, recordings)]
    assert [kernel.call for kernel in first] == [None, None]


def test_two_processes_with_the_same_kernels_show_no_call(recordings: Path) -> None:
    group = GROUPS[QUIET]
    one, other = ranks_of(group, recordings)
    assert [kernel.name for kernel in one] == [kernel.name for kernel in other]
    assert not any(kernel.kind for kernel in (*one, *other))
    later = np.array([b.start - a.start for a, b in zip(one, other, strict=True)])
    assert (int(later.min()), int(later.max())) == (-149_550, 140_081)


def test_four_recordings_of_one_process_are_no_ranks(recordings: Path) -> None:
    files = [recordings / name for name in GROUPS["one_process_recorded_four_times"]["files"]]
    places = set()
    for path in files:
        kernels = [event for event in events_of(path) if event["cat"] == "kernel"]
        host = {event["pid"] for event in events_of(path) if event["cat"] == "cpu_op"}
        places.add((*host, *{event["args"]["device"] for event in kernels}))
        assert "distributedInfo" not in head(path)
    assert places == {(238, 0)}


@pytest.mark.parametrize(
    "alone", [one for one in TABLE["alone"] if one["file"].endswith(".gz")], ids=lambda one: one["file"]
)
def test_a_rank_that_is_alone_says_which_it_is(recordings: Path, alone: dict[str, Any]) -> None:
    said = head(recordings / alone["file"])["distributedInfo"]
    assert (said["rank"], said["world_size"]) == (alone["rank"], alone["world_size"])


def test_communication_from_before_the_recording_has_no_call(recordings: Path) -> None:
    """Counted from the first kernel, calls of this rank would be four too many; from the first call, none."""
    events = events_of(recordings / "hta_trace_diff_test_test.json.gz")
    calls = [kernel for kernel in kernels_of_events(events) if kernel.kind]
    assert [kernel.kind for kernel in calls if kernel.call is None] == ["SendRecv", *["AllReduce"] * 3]
    assert [kernel.call is None for kernel in calls[:5]] == [True, True, True, True, False]
    ranges = [event["name"] for event in events if event["name"].startswith("nccl:")]
    assert len(calls) - 4 == len(ranges) == 60


def test_an_mpi_rank_is_a_name_of_a_thread(recordings: Path) -> None:
    path = recordings / "pipit_saxpy_mpi.sqlite"
    named = sql(path, "SELECT text, eventType FROM NVTX_EVENTS WHERE text LIKE 'MPI Rank%'")
    assert named == [("MPI Rank 0", NVTX_THREAD)]
    assert not sql(path, "SELECT name FROM sqlite_master WHERE name = 'MPI_RANKS'")
