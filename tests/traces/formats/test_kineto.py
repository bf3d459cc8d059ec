"""What a PyTorch profiler trace says arrives: in every spelling, to the nanosecond, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diagnoser
from diagnoser.cli import run
from tests.recordings.kineto import GEMM, GID, PID, Event, call, event, expect_one_run, on_gpu, one_run, write
from traces.columns import COPY_KINDS, NULL, Columns, Gpu, Memory, SmLimits
from traces.formats.open import read_trace

SECRET = "hunter2_sesame"


def read(tmp_path: Path, events: list[Event] | str, **header: Any) -> Columns:
    return read_trace(write(tmp_path / "run.json", events, **header))


def test_old_and_new_spellings_give_the_same_numbers(tmp_path: Path) -> None:
    old = one_run(kernel="Kernel", gpu_memcpy="Memcpy", gpu_memset="Memset", cuda_runtime="Runtime")
    for row in old:
        row["tid"] = f"stream {row['tid']}" if row["pid"] == 0 else str(row["tid"])
    expect_one_run(write(tmp_path / "new.json", one_run()))
    expect_one_run(write(tmp_path / "old.json", old))
    expect_one_run(write(tmp_path / "list.json", json.dumps(old)))


def test_times_are_exact_where_a_double_is_not(tmp_path: Path) -> None:
    text = (
        '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,'
        ' "ts": 1669783687464181.123, "dur": 0.002, "args": {}}]}'
    )
    rows = read(tmp_path, text).kernels.rows
    assert rows.start_ns.tolist() == [1_669_783_687_464_181_123]
    assert rows.end_ns.tolist() == [1_669_783_687_464_181_125]


def test_annotations_and_operators_are_ranges_and_their_gpu_copies_are_nothing(tmp_path: Path) -> None:
    events = [
        event("user_annotation", "ProfilerStep#3", 10, 20),
        event("cpu_op", "aten::mm", 12, 3, tid=PID + 1),
        event("Operator", "aten::add", 16, 3),
        event("python_function", "train.py(3): main", 0, 99),
        event("ac2g", "ac2g", 0, 1) | {"ph": "s"},
        event("kernel", "not complete", 0, 1, pid=0) | {"ph": "B"},
        on_gpu("gpu_user_annotation", "ProfilerStep#3", 10, 50, 0),
    ]
    columns = read(tmp_path, events)
    ranges = columns.ranges
    assert [columns.range_texts[code] for code in ranges.text] == ["ProfilerStep#3", "aten::mm", "aten::add"]
    assert ranges.start_ns.tolist() == [10_000, 12_000, 16_000]
    assert ranges.end_ns.tolist() == [30_000, 15_000, 19_000]
    assert ranges.thread_gid.tolist() == [GID | PID, GID | PID + 1, GID | PID]
    assert len(columns.kernels) == len(columns.copies) == len(columns.replays) == 0


def test_thread_ids_too_long_to_pack_are_numbered_and_the_process_stays(tmp_path: Path) -> None:
    tids = [PID, 139_926_520_725_504, -549_452_224, PID]
    events = [call("cudaEventQuery", 10, 1, at) | {"tid": tid} for at, tid in enumerate(tids)]
    threads = read(tmp_path, events).calls.thread_gid
    assert (threads - GID).tolist() == [1, 2, 0, 1]


def test_kernels_of_a_trace_of_several_processes_are_nobodys(tmp_path: Path) -> None:
    events = [*one_run(), call("cudaLaunchKernel", 91, 1, 1) | {"pid": PID + 1}]
    columns = read(tmp_path, events, distributedInfo={"rank": 5})
    assert set(columns.kernels.rows.process_gid.tolist()) == {NULL}
    assert columns.rank_of == {PID: 5, PID + 1: 5}


def test_a_kernel_says_its_shape_and_one_sum_of_shared_memory(tmp_path: Path) -> None:
    args = {"grid": [24, 2, 1], "block": [128, 1, 1], "registers per thread": 16, "shared memory": 400}
    events = [
        on_gpu("kernel", GEMM, 0, 1, 1, **args, **{"graph node id": 0}),
        on_gpu("kernel", GEMM, 1, 1, 2),
    ]
    kernels = read(tmp_path, events).kernels
    shapes, shape = kernels.shapes, kernels.shape
    assert shapes.grid[shape].tolist() == [[24, 2, 1], [NULL] * 3]
    assert shapes.block[shape].tolist() == [[128, 1, 1], [NULL] * 3]
    assert shapes.registers[shape].tolist() == [16, NULL]
    assert shapes.static_shared_bytes[shape].tolist() == [400, NULL]
    assert shapes.dynamic_shared_bytes[shape].tolist() == [0, NULL]
    assert kernels.in_graph.tolist() == [False, False]


@pytest.mark.parametrize(("name", "kind", "memory"), [
    ("Memcpy HtoD (Pinned -> Device)", "memcpy_h2d", Memory.PINNED),
    ("Memcpy HtoD (Pageable -> Device)", "memcpy_h2d", Memory.PAGEABLE),
    ("Memcpy DtoH (Device -> Pageable)", "memcpy_d2h", Memory.PAGEABLE),
    ("Memcpy DtoH (Device -> Pinned)", "memcpy_d2h", Memory.PINNED), ("Memcpy DtoH", "memcpy_d2h", NULL),
    ("Memcpy PtoP (Device -> Device)", "memcpy_p2p", Memory.DEVICE),
    ("Memcpy HtoA (Pinned -> Array)", "memcpy_h2d", Memory.PINNED),
    ("Memcpy HtoD (Host -> Device)", "memcpy_h2d", NULL),
    ("Memcpy <unknown> (Device -> Device)", "memcpy_unknown", Memory.DEVICE),
    ("Memcpy HtoD", "memcpy_h2d", NULL), (None, "memcpy_unknown", NULL),
])  # fmt: skip
def test_the_kind_of_a_copy_and_the_host_s_memory_stand_in_its_name(
    tmp_path: Path, name: str, kind: str, memory: int
) -> None:
    copies = read(tmp_path, [on_gpu("gpu_memcpy", name, 0, 1, 1, bytes=64)]).copies
    assert [COPY_KINDS[code] for code in copies.kind] == [kind]
    assert (copies.size_bytes.tolist(), copies.memory.tolist()) == ([64], [memory])


def test_a_copy_between_gpus_runs_on_the_one_that_copies(tmp_path: Path) -> None:
    row = event("gpu_memcpy", "Memcpy PtoP (Device -> Device)", 0, 1, pid=3, tid=7)
    row["args"] = {"fromDevice": 1, "inDevice": 2, "toDevice": 3, "stream": 9, "correlation": 4, "bytes": 8}
    rows = read(tmp_path, [row]).copies.rows
    assert (rows.device_id.tolist(), rows.stream_id.tolist()) == ([2], [9])


def test_each_gpu_is_listed_once_with_what_an_sm_holds(tmp_path: Path) -> None:
    gpu = {
        "id": 0, "name": "NVIDIA B300 SXM6 AC", "totalGlobalMem": 1000, "computeMajor": 10, "computeMinor": 3,
        "maxThreadsPerMultiprocessor": 2048, "warpSize": 32, "regsPerMultiprocessor": 65536,
        "sharedMemPerMultiprocessor": 233472, "numSms": 148,
    }  # fmt: skip
    info = read(tmp_path, one_run(), deviceProperties=[gpu, gpu, {"id": 1, "name": SECRET}, "?"]).info
    limits = SmLimits(warps=64, blocks=None, registers=65536, shared_bytes=233472)
    assert info.gpus == (
        Gpu(None, 0, "NVIDIA B300 SXM6 AC", 148, "10.3", 1000, limits),
        Gpu(None, 1, None, None, None, None, SmLimits(None, None, None, None)),
    )
    assert (info.schema, info.exporter_version, info.reader) == ("1", None, "json")
    assert info.missing_tables == ("user_annotation", "cpu_op", "cuda_sync")


@pytest.mark.parametrize(
    ("per_sm", "sms"),
    [(("4.8", "2.4"), 80), (("2.594595", "1.297297"), 148), (("4.8", "2.3"), None), (("4.8", "x"), 80)],
)
def test_a_gpu_that_is_not_listed_has_the_sms_that_launches_were_divided_by(
    tmp_path: Path, per_sm: tuple[str, str], sms: int | None
) -> None:
    whole = {"grid": [24, 2, 2], "block": [128, 1, 1]}  # 96 blocks of 4 warps
    half = {"grid": [48, 1, 1], "block": [128, 1, 1]}
    text = json.dumps(
        [
            on_gpu("kernel", GEMM, 0, 1, 1, **whole, **{"warps per SM": "first"}),
            on_gpu("kernel", GEMM, 1, 1, 2, **half, **{"warps per SM": "second"}),
        ]
    )
    text = text.replace('"first"', per_sm[0]).replace('"second"', per_sm[1].replace("x", '"x"'))
    columns = read(tmp_path, f'{{"schemaVersion": 1, "traceEvents": {text}}}')
    assert columns.info.gpus == (() if sms is None else (Gpu(None, 0, None, sms, None, None),))


def test_the_rank_is_the_one_the_trace_tells(tmp_path: Path) -> None:
    distributed = {"backend": "nccl", "rank": 3, "world_size": 8}
    path = write(tmp_path / "run.json", one_run(), distributedInfo=distributed)
    assert diagnoser.analyze(path).to_dict()["ranks"][0]["rank"] == 3
    path = write(tmp_path / "run.json", one_run(), distributedInfo={"rank": -1})
    assert diagnoser.analyze(path).to_dict()["ranks"][0]["rank"] is None


def test_whether_stacks_were_recorded_stands_in_the_header(tmp_path: Path) -> None:
    assert not read(tmp_path, one_run()).info.stacks
    assert not read(tmp_path, one_run(), with_stack=0).info.stacks
    assert read(tmp_path, one_run(), with_stack=1).info.stacks


def wait(ts: int, own: int, record: int, stream: int = 20) -> Event:
    args = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": record, "wait_on_cuda_event_id": 2}
    return on_gpu("cuda_sync", "Stream Wait Event", ts, 0, own, stream=stream, **args)


def test_a_wait_names_the_record_it_waits_for(tmp_path: Path) -> None:
    events = [
        on_gpu("cuda_event", "cudaEvent", 0, 0.001, 11, event_id=2),
        wait(10, own=15, record=11),
        wait(20, own=25, record=21),
        wait(30, own=26, record=21),
        wait(40, own=35, record=36),  # a later record cannot be the one
        wait(50, own=45, record=-1),
        on_gpu("cuda_sync", "Context Sync", 60, 5, 55, stream=-1),
    ]
    columns = read(tmp_path, events)
    syncs, records = columns.syncs, columns.events
    assert syncs.event_sync_id.tolist() == [11, 21, 21, NULL, NULL, NULL]
    assert syncs.stream_id.tolist() == [20, 20, 20, 20, 20, NULL]
    assert syncs.end_ns.tolist()[-1] == 65_000
    assert records.correlation_id.tolist() == records.event_sync_id.tolist() == [11, 21]
    assert (records.stream_id.tolist(), records.event_id.tolist()) == ([7, 7], [2, 2])
    assert (records.context_id.tolist(), syncs.context_id.tolist()) == ([1, 1], [1] * 6)


def test_the_profilers_own_work_is_overhead_on_no_known_thread(tmp_path: Path) -> None:
    row = event("overhead", "Activity Buffer Request", 5, 10, pid=-1, tid=0)
    overheads = read(tmp_path, [*one_run(), row]).overheads
    assert overheads.names == ("Activity Buffer Request",)
    assert overheads.end_ns.tolist() == [15_000]
    assert overheads.thread_gid.tolist() == [NULL]


def test_rows_that_lack_things_neither_stop_nor_bend_the_rest(tmp_path: Path) -> None:
    strange: list[Any] = [
        7,
        None,
        {"ph": "X"},
        event("no_such_category", "x", 0, 1),
        event("kernel", "x", 0, 1) | {"cat": ["kernel"]},
        event("kernel", "x", 0, 1, pid="GPU", args={"stream": 7}),
        call("cudaFree", None, 5, 9),
        event("cpu_op", "x", 0, True),
        event("cpu_op", "ends before it starts", 40, -5, args=[]),
        event("cpu_op", "x", "1e999999999", 1),
        event("cpu_op", "x", 10**40, 1),
        event("user_annotation", "on no thread", 1, 1, pid="Spans", tid="main"),
    ]
    path = write(tmp_path / "run.json", [*strange, *one_run()])
    expect_one_run(path)
    columns = read_trace(path)
    assert columns.info.diagnostics == (
        "GPU rows without a device, left out: 1",
        "host rows without times, left out: 4",
    )
    assert columns.ranges.start_ns.tolist() == [1_000, 40_000]
    assert columns.ranges.end_ns.tolist() == [2_000, 40_000]
    assert columns.ranges.thread_gid.tolist() == [NULL, GID | PID]


def test_a_kernel_without_arguments_runs_where_its_row_stands(tmp_path: Path) -> None:
    columns = read(tmp_path, [event("kernel", GEMM, "5.5", "1.25", pid=2, tid="stream 9", args="none")])
    rows = columns.kernels.rows
    assert (rows.start_ns.tolist(), rows.end_ns.tolist()) == ([5_500], [6_750])
    assert (rows.device_id.tolist(), rows.stream_id.tolist()) == ([2], [9])
    assert (rows.correlation_id.tolist(), rows.process_gid.tolist()) == ([NULL], [NULL])


def test_a_secret_in_any_other_text_is_never_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = one_run()
    for row in events:
        row["args"] |= {"Process Group Name": SECRET, "Process Group Description": SECRET, SECRET: 1}
        row["args"] |= {"Collective name": SECRET, "Process Group Ranks": SECRET}
        if row["cat"] in ("cuda_runtime", "cuda_driver"):
            row["name"] = SECRET
    events += [
        event("overhead", SECRET, 0, 1),
        event("python_function", SECRET, 0, 1),
        event(SECRET, SECRET, 0, 1),
        {"ph": "M", "name": "process_name", "pid": PID, "args": {"name": SECRET}},
        {"ph": "M", "name": "thread_name", "pid": PID, "tid": PID, "args": {"name": SECRET}},
    ]
    folder = tmp_path / SECRET
    folder.mkdir()
    header = {
        "traceName": f"/home/{SECRET}/run.json",
        "trace_id": SECRET,
        "deviceProperties": [{"id": 0, "name": SECRET}],
        "distributedInfo": {
            "backend": SECRET,
            "rank": 0,
            "pg_config": [{"pg_name": SECRET, "pg_desc": SECRET}],
        },
        "INFO": [SECRET],
        SECRET: SECRET,
    }
    path = write(folder / "run.json", events, **header)
    write(folder / "no.json", events, **header, schemaVersion=SECRET)
    for name in ("run.json", "no.json"):
        for form in ("text", "json"):
            assert run(["analyze", str(path.with_name(name)), "-f", form]) == 0
            assert SECRET not in capsys.readouterr().out


def test_every_real_trace_of_the_profiler_gives_its_true_totals(recordings: Path) -> None:
    truth = json.loads((recordings / "truth.json").read_text(encoding="utf-8"))
    names = [name for name in truth if name.endswith(".json.gz")]
    assert len(names) == 7
    for name in names:
        true, (rank,) = truth[name], diagnoser.analyze(recordings / name).to_dict()["ranks"]
        (device,) = true["devices"]
        assert str(rank["device"]) == device
        assert (rank["gpu"], rank["rank"]) == (true["gpu"], true["distributed"]["rank"])
        keys = ("kernel_count", "span_ns", "busy_union_ns", "comm_union_ns", "exposed_comm_ns")
        assert {key: rank["totals"][key] for key in keys} == {
            key: true["devices"][device][key] for key in keys
        }
        assert rank["totals"]["kernel_work_ns"] == true["kernel_total_ns"]
        columns, counted = read_trace(recordings / name), true["events_by_cat"]
        is_copy = columns.copies.kind != COPY_KINDS.index("memset")
        copied = {"count": int(np.sum(is_copy)), "bytes": int(columns.copies.size_bytes[is_copy].sum())}
        assert copied == true["gpu_memcpy"]
        assert len(columns.ranges) == counted["cpu_op"] + counted["user_annotation"]
        assert len(columns.calls) == counted["cuda_runtime"] + counted.get("cuda_driver", 0)
