"""Scrubbing a recording of the PyTorch profiler changes nothing that we read, and keeps nothing else."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.workload.scrub import scrub
from tests.recordings.kineto import event, expect_one_run, on_gpu, one_run, write
from traces.formats.kineto import read_kineto

SECRET = "hunter2_sesame"


GONE = (".session_start_ns",)
"""When it was recorded: not kept."""


def unpacked(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def assert_same(left: Any, right: Any, first_ns: int, where: str = "") -> None:
    """Equal columns, but for the moved clock."""
    for field in fields(left):
        one, other, place = getattr(left, field.name), getattr(right, field.name), f"{where}.{field.name}"
        if place in GONE:
            continue
        if isinstance(one, np.ndarray):
            moved = first_ns if field.name in ("start_ns", "end_ns", "time_ns") else 0
            told = one != np.iinfo(np.int64).min if moved else np.ones(len(one), dtype=np.bool_)
            assert (one[told] - moved == other[told]).all() if moved else (one == other).all(), place
            assert (one[~told] == other[~told]).all(), place
        elif hasattr(one, "__dataclass_fields__") and field.name != "info":
            assert_same(one, other, first_ns, place)
        elif field.name != "info":
            assert one == other, place


def first_ns_of(columns: Any) -> int:
    tables = (columns.kernels.rows, columns.copies.rows, columns.calls, columns.ranges, columns.syncs)
    starts = np.concatenate([*(table.start_ns for table in tables), columns.overheads.start_ns])
    return int(starts[starts != np.iinfo(np.int64).min].min())


def test_a_scrubbed_recording_gives_the_same_diagnosis(tmp_path: Path) -> None:
    raw, out = write(tmp_path / "raw.json", one_run()), tmp_path / "run.json.gz"
    assert scrub(raw, out) == 4
    expect_one_run(out)


def test_the_first_event_of_a_scrubbed_recording_starts_at_0(tmp_path: Path) -> None:
    raw = write(tmp_path / "raw.json", one_run())
    scrub(raw, tmp_path / "run.json.gz")
    events = json.loads(unpacked(tmp_path / "run.json.gz"))["traceEvents"]
    assert min(one["ts"] for one in events) == 0


def test_paths_hosts_and_unknown_keys_do_not_survive(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        *(
            {**one, "secret": SECRET, "args": {**one.get("args", {}), "Call stack": SECRET}}
            for one in one_run()
        ),
        event("python_function", SECRET, 1, 1),
        {"ph": "M", "name": "process_name", "args": {"name": SECRET}},
    ]
    gpu = {"id": 0, "name": "NVIDIA H200", "numSms": 132, "uuid": SECRET}
    raw = write(tmp_path / "raw.json", events, traceName=SECRET, deviceProperties=[gpu], hostname=SECRET)
    scrub(raw, tmp_path / "run.json.gz")
    text = unpacked(tmp_path / "run.json.gz")
    assert SECRET not in text
    assert "NVIDIA H200" in text
    expect_one_run(tmp_path / "run.json.gz")


def test_scrubbing_again_changes_no_byte(tmp_path: Path) -> None:
    once, twice = tmp_path / "once.json.gz", tmp_path / "twice.json.gz"
    scrub(write(tmp_path / "raw.json", one_run()), once)
    scrub(once, twice)
    assert once.read_bytes() == twice.read_bytes()


def test_graphs_waits_and_copies_between_gpus_are_read_as_before(tmp_path: Path) -> None:
    shape = {"grid": [2, 3, 4], "block": [64, 1, 1], "registers per thread": 32, "shared memory": 512}
    waited = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 3, "wait_on_cuda_event_id": 5}
    events = [
        on_gpu("kernel", "k", 10, 1, 1, **{**shape, "graph node id": 9}) | {"pid": 3},
        {**on_gpu("gpu_memcpy", "Memcpy PtoP (", 20, 1, 2, bytes=8, inDevice=1, device=None), "tid": 0},
        on_gpu("cuda_event", "cudaEventRecord", 30, 0, 3, event_id=5, context=2),
        on_gpu("cuda_sync", "Stream Wait Event", 40, 0, 8, **waited),
        on_gpu(
            "cuda_sync", "Stream Wait Event", 50, 0, 9, **{**waited, "wait_on_cuda_event_record_corr_id": 4}
        ),
        event("overhead", "Buffer Flush", 60, 1),
    ]
    before = read_kineto(write(tmp_path / "raw.json", events))
    scrub(tmp_path / "raw.json", tmp_path / "run.json.gz")
    assert_same(before, read_kineto(tmp_path / "run.json.gz"), 10_000)


def test_scrubbing_real_recordings_leaves_functions_and_shapes_out(recordings: Path, tmp_path: Path) -> None:
    for raw in sorted(recordings.glob("*.json.gz")):
        before = read_kineto(raw)
        scrub(raw, tmp_path / raw.name)
        after = read_kineto(tmp_path / raw.name)
        assert_same(replace(before, frames=None, problems=None), after, first_ns_of(before))
        assert (before.info.gpus, before.info.missing_tables) == (after.info.gpus, after.info.missing_tables)


def test_a_group_keeps_its_place_and_loses_its_name(tmp_path: Path) -> None:
    args = {
        "Collective name": "all_to_allv",
        "Process Group Name": "project_x_experts",
        "Process Group Description": "EXPERT_MODEL_PARALLEL_GROUP",
    }
    event = {
        "ph": "X",
        "cat": "kernel",
        "name": "ncclDevKernel_SendRecv",
        "pid": 0,
        "tid": 7,
        "ts": 1,
        "dur": 2,
    }
    (tmp_path / "raw.json").write_text(json.dumps({"traceEvents": [event | {"args": args}]}))
    scrub(tmp_path / "raw.json", tmp_path / "run.json.gz")
    kept = read_kineto(tmp_path / "run.json.gz").collectives
    assert kept is not None
    assert (kept.exchange.tolist(), kept.group.tolist(), kept.purpose.tolist()) == ([0], [0], [0])
    assert b"project_x" not in gzip.decompress((tmp_path / "run.json.gz").read_bytes())


def of_a_collective(rank: int, group: str, ranks: str, **more: Any) -> dict[str, Any]:
    args = {"Process Group Name": group, "Process Group Ranks": ranks, "Collective name": "allreduce", **more}
    place = {"pid": rank, "tid": 7, "ts": 1 + rank, "dur": 2}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
        **place,
        "args": args,
    }


def test_what_joins_ranks_is_kept_without_names(tmp_path: Path) -> None:
    """Two ranks, to which another group comes first each; a name that is no number of PyTorch's."""
    size: dict[str, Any] = {"Seq": 41, "In msg nelems": 1000, "dtype": "BFloat16", "Group size": 2}
    experts = ("project_x_experts", "[0, 1]")
    found = []
    for rank, order in enumerate([(experts, ("7", "[0, ..., 9]")), (("7", "[0, ..., 9]"), experts)]):
        events = [of_a_collective(rank, *group, **size) for group in order]
        header = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2, "backend": "x"}}
        (tmp_path / "raw.json").write_text(json.dumps(header | {"traceEvents": events}), encoding="utf-8")
        scrub(tmp_path / "raw.json", tmp_path / "run.json.gz")
        assert "project_x" not in unpacked(tmp_path / "run.json.gz")
        columns = read_kineto(tmp_path / "run.json.gz")
        assert columns.world_size == 2
        found.append(columns.collectives)
    one, other = found
    assert one is not None
    assert other is not None
    assert one.sequence is not None
    assert one.sequence.tolist() == [41, 41]
    assert one.size_bytes is not None
    assert one.size_bytes.tolist() == [2000, 2000]
    assert {group.key for group in one.groups} == {group.key for group in other.groups}
    assert {(group.size, group.members) for group in one.groups} == {(2, (0, 1)), (2, None)}


def test_ranks_that_are_no_numbers_and_unknown_types_are_not_kept(tmp_path: Path) -> None:
    event = of_a_collective(0, "0", f"[0, {SECRET}]", dtype=SECRET)
    (tmp_path / "raw.json").write_text(json.dumps({"traceEvents": [event]}), encoding="utf-8")
    scrub(tmp_path / "raw.json", tmp_path / "run.json.gz")
    assert SECRET not in unpacked(tmp_path / "run.json.gz")
