"""What a document must not depend on: where time begins, order of rows, ids and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording, Row
from tests.recordings.drawn import KERNELS, US, recordings_told, seeds

Document = dict[str, Any]

quick = settings(max_examples=25, deadline=None)


def changed(
    recording: Recording, change: Callable[[Row], Row], keep: Callable[[Row], bool] = bool
) -> Recording:
    """A copy of a recording with every row changed, or left out."""
    copy = Recording(hardware_id=recording.hardware_id, vm_id=recording.vm_id)
    copy.gpus = list(recording.gpus)
    copy.rows = {
        table: [change(dict(row)) for row in rows if keep(row)] for table, rows in recording.rows.items()
    }
    return copy


def document_of(folder: Path, *recordings: Recording, **how: Any) -> Document:
    paths = [folder / f"run{place}.sqlite" for place in range(len(recordings))]
    for path, recording in zip(paths, recordings, strict=True):
        path.unlink(missing_ok=True)
        write_export(path, recording, **how)
    return diagnoser.analyze(paths).to_dict()


def fresh(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("invariance")


# where time begins


def shifted(recording: Recording, by_ns: int) -> Recording:
    def later(row: Row) -> Row:
        times = {key: value + by_ns for key in ("start", "end") if isinstance(value := row.get(key), int)}
        return {**row, **times}

    return changed(recording, later)


def at_home(document: Document, by_ns: int) -> Document:
    """The document with its times, and only these, taken back."""
    for rank in document["ranks"]:
        rank["windows_ns"] = [[start - by_ns, end - by_ns] for start, end in rank["windows_ns"]]
        a2a = rank["a2a"]["spans"] if rank["a2a"] else []
        drawn = (rank["timeline"], *rank["other_steps"])
        for timed in (*rank["steps"]["used"], *rank["steps"]["dropped"], *a2a, *drawn):
            timed["start_ns"] -= by_ns
            timed["end_ns"] -= by_ns
    for evidence in (one for wall in document["walls"] for one in wall["evidence"]):
        if evidence["start_ns"] is not None:
            evidence["start_ns"] -= by_ns
            evidence["end_ns"] -= by_ns
    for clock in document["run"]["clocks"]["by_rank"] if "run" in document else ():
        clock["base_ns"] -= by_ns if clock["source"] == "collectives" else 0
    return document


# Before the clock's zero as well; and never past 2**61 ns, where an export counts as damaged. One microsecond
# short of zero nothing of `told` starts or ends at 0, which CUPTI writes for "no time".
offsets = st.integers(-(10**15), 10**18).filter(lambda ns: not -(10**9) < ns < 0)


@quick
@given(recordings_told, offsets)
def test_moving_all_times_moves_the_times_of_the_document_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, recording: Recording, by_ns: int
) -> None:
    folder = fresh(tmp_path_factory)
    document = document_of(folder, recording)
    assert at_home(document_of(folder, shifted(recording, by_ns)), by_ns) == document


# order of rows


@quick
@given(recordings_told, seeds)
def test_the_order_of_rows_and_texts_in_a_file_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, recording: Recording, seed: int
) -> None:
    folder = fresh(tmp_path_factory)
    assert document_of(folder, recording, shuffle_seed=seed) == document_of(folder, recording)


# ids


def renamed(
    recording: Recording,
    processes: Mapping[int, int],
    thread: Callable[[int], int],
    stream: Callable[[int], int],
    correlation: Callable[[int, int], int],
) -> Recording:
    """All ids under other names; `correlation` is told the process as well."""

    def rename(row: Row) -> Row:
        pid = 0
        for key in ("globalTid", "globalPid"):
            if isinstance(gid := row.get(key), int):
                pid, tid = gid >> 24 & 0xFFFFFF, gid & 0xFFFFFF
                row[key] = recording.global_id(processes[pid], thread(tid) if tid else 0)
        if isinstance(number := row.get("streamId"), int):
            row["streamId"] = stream(number)
        if isinstance(number := row.get("correlationId"), int):
            row["correlationId"] = correlation(pid, number)
        return row

    copy = changed(recording, rename)
    copy.gpus = [
        gpu
        if gpu.used_by is None
        else type(gpu)(
            gpu.name,
            gpu.sm_count,
            gpu.capability,
            gpu.memory_bytes,
            {processes[pid]: device for pid, device in gpu.used_by.items()},
        )
        for gpu in recording.gpus
    ]
    return copy


def called_back(document: Document, processes: Mapping[int, int]) -> Document:
    """The document with its processes under their old names, and ranks and gaps in the old order."""
    old = {new: pid for pid, new in processes.items()}
    for rank in document["ranks"]:
        rank["process"] = old[rank["process"]]
    order = sorted(range(len(document["ranks"])), key=lambda place: document["ranks"][place]["process"])
    document["ranks"] = [document["ranks"][place] for place in order]
    for gap in document["missing"]:
        gap["path"] = re.sub(
            r"^ranks\[(\d+)\]", lambda found: f"ranks[{order.index(int(found[1]))}]", gap["path"]
        )
    return in_order(document)


def in_order(document: Document) -> Document:
    """Gaps stand rank by rank, alike ranks may name either as evidence; streams and threads have no name."""
    for evidence in (one for wall in document["walls"] for one in wall["evidence"]):
        evidence["rank"] = None
    for rank in document["ranks"]:
        names = [*rank["timeline"]["names"], None]  # other steps point at those of the one in full
        for timeline in (rank["timeline"], *rank["other_steps"]):
            for lane in (*timeline["lanes"], *timeline["host"]):
                lane |= {key: None for key in ("stream", "thread") if key in lane}
                lane["name"] = [names[name] for name in lane["name"]]
            timeline["names"].sort()
            timeline["host"].sort(key=str)
    document["missing"].sort(key=lambda gap: (gap["path"], gap["reason"]))
    return document


@quick
@given(recordings_told, st.permutations([3, 70_000]), st.booleans(), st.integers(1, 1 << 20))
def test_other_ids_of_processes_threads_streams_and_launches_change_nothing_but_the_process_named(
    tmp_path_factory: pytest.TempPathFactory, recording: Recording, pids: list[int], turn: bool, odd: int
) -> None:
    """Correlation ids may be any, as no two kernels here start at once on one stream; streams keep order."""
    folder = fresh(tmp_path_factory)
    processes = dict(zip((1_000, 2_000), pids, strict=True))
    modulus, factor = 2_147_483_647, 2 * odd + 1  # a bijection that keeps no order
    other = renamed(
        recording,
        processes,
        lambda tid: 10_000 - tid if turn else tid + 77,
        lambda stream: stream * 3 + 1,
        lambda pid, number: (number * factor + pid) % modulus,
    )
    assert called_back(document_of(folder, other), processes) == in_order(document_of(folder, recording))


def test_kernels_that_start_at_once_keep_their_tie_where_correlation_ids_keep_their_order(
    tmp_path: Path,
) -> None:
    recording = Recording()
    for name in (KERNELS["gemm"], KERNELS["softmax"]):
        recording.kernel(name, 10 * US, 30 * US, launch_ns=5 * US)
    other = renamed(
        recording, {1_000: 5}, lambda tid: tid, lambda stream: stream, lambda _, number: number * 7
    )
    document = document_of(tmp_path, recording)
    assert document["ranks"][0]["compute_by_class_ns"] == {"gemm": 20 * US}  # the lower id
    assert called_back(document_of(tmp_path, other), {1_000: 5}) == in_order(document)


# files


def of_process(recording: Recording, pid: int) -> Recording:
    def is_its(row: Row) -> bool:
        gid = row.get("globalTid", row.get("globalPid"))
        return isinstance(gid, int) and gid >> 24 & 0xFFFFFF == pid

    return changed(recording, lambda row: row, is_its)


def as_one_file(document: Document) -> Document:
    """What is said of files is said once; each rank names the first."""
    del document["command"]  # it names the files
    document.pop("run", None)  # ranks of one file are on one clock
    shares = [trace["capture"].pop("correlation_frac") for trace in document["traces"]]
    first, *others = document["traces"]
    assert shares == [1.0] * len(shares)  # every launch of `told` is recorded
    assert all({**other, "name": first["name"]} == first for other in others)
    document["traces"] = [first]
    for rank in document["ranks"]:
        rank["trace"] = 0
    document["missing"] = [
        gap for gap in document["missing"] if not gap["path"].startswith(("traces[1]", "run."))
    ]
    return in_order(document)


@quick
@given(recordings_told)
def test_two_processes_in_one_file_are_two_processes_in_two_files(
    tmp_path_factory: pytest.TempPathFactory, recording: Recording
) -> None:
    folder = fresh(tmp_path_factory)
    apart = document_of(folder, of_process(recording, 1_000), of_process(recording, 2_000))
    assert len(apart["traces"]) == 2
    assert as_one_file(apart) == as_one_file(document_of(folder, recording))
