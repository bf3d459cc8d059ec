"""Files that hold a trace of the PyTorch profiler or nearly do; what they say of process groups."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from tests.recordings.kineto import SENDRECV, Profiled, event, expect_one_run, one_run, write
from traces.columns import Collectives, Columns
from traces.errors import DamagedTrace, NotATrace, NothingToDiagnose
from traces.formats.open import read_trace


def test_content_decides_what_a_file_is(tmp_path: Path) -> None:
    plain = write(tmp_path / "run.sqlite", one_run())
    packed = tmp_path / "run.nsys-rep"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    marked = write(tmp_path / "run", "\ufeff\n " + plain.read_text(encoding="utf-8"))
    for path in (plain, packed, marked):
        expect_one_run(path)


@pytest.mark.parametrize(
    "junk", ["NaN", "nan", "-nan", "-Infinity", "N/A", '"a\nb\x01"', r'"C:\data\train.py"', r'"\"nan\\"']
)
def test_json_that_the_profiler_spoils_is_read_over(tmp_path: Path, junk: str) -> None:
    whole = json.dumps({"schemaVersion": 1, "spoiled": "HERE", "traceEvents": one_run()})
    expect_one_run(write(tmp_path / "run.json", whole.replace('"HERE"', junk)))


def truncated(folder: Path) -> Path:
    path = write(folder / "run.json", one_run())
    path.write_bytes(path.read_bytes()[:-40])
    return path


def truncated_gzip(folder: Path) -> Path:
    path = write(folder / "run.json.gz", one_run())
    path.write_bytes(gzip.compress(path.read_bytes())[:-40])
    return path


def spoiled_gzip(folder: Path) -> Path:
    path = write(folder / "run.json.gz", one_run())
    packed = bytearray(gzip.compress(path.read_bytes()))
    packed[30:60] = bytes(30)
    path.write_bytes(packed)
    return path


def other_gzip(folder: Path) -> Path:
    path = folder / "run.tar.gz"
    path.write_bytes(gzip.compress(b"SQLite format 3\0"))
    return path


BAD: list[tuple[Callable[[Path], Path], type[Exception], str]] = [
    (truncated, DamagedTrace, "breaks off, is damaged"),
    (truncated_gzip, DamagedTrace, "is truncated"),
    (spoiled_gzip, DamagedTrace, "gzip data cannot be unpacked"),
    (other_gzip, NotATrace, "unpack it first"),
    (lambda folder: write(folder / "a", "{"), NotATrace, "breaks off before its events"),
    (lambda folder: write(folder / "a", "[" * 100_000), NotATrace, "export_chrome_trace"),
    (lambda folder: write(folder / "a", '{"a": 1' + "0" * 5000 + "}"), NotATrace, "export_chrome_trace"),
    (lambda folder: write(folder / "a", '{"budget_ns": {}}'), NotATrace, "export_chrome_trace"),
    (lambda folder: write(folder / "a", '{"traceEvents": []}'), NotATrace, "export_chrome_trace"),
    (lambda folder: write(folder / "a", '{"schemaVersion": 1}'), NotATrace, "export_chrome_trace"),
    (lambda folder: write(folder / "a", "[]"), NotATrace, "export_chrome_trace"),
]


@pytest.mark.parametrize(("make", "error", "said"), BAD)
def test_a_file_that_is_no_whole_trace_is_told_in_one_line(
    tmp_path: Path, make: Callable[[Path], Path], error: type[Exception], said: str
) -> None:
    path = make(tmp_path)
    with pytest.raises(error, match=said) as raised:
        read_trace(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_trace_without_gpu_work_has_nothing_to_diagnose(tmp_path: Path) -> None:
    for events in ([], [event("cpu_op", "aten::mm", 0, 1)]):
        with pytest.raises(NothingToDiagnose):
            diagnoser.analyze(write(tmp_path / "run.json", events))


def test_half_a_character_becomes_a_mark_that_can_be_written(tmp_path: Path) -> None:
    whole = json.dumps({"schemaVersion": 1, "traceEvents": one_run()})
    for spoiled in (
        whole.replace("nvjet", "\\ud800", 1),
        whole.replace('"correlation"', '"\\udc00": 1, "correlation"', 1),
    ):
        columns = read_trace(write(tmp_path / "run.json", spoiled))
        assert len(columns.kernels) == 2
        "".join(columns.kernel_names).encode()


GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def read(path: Path, run: Profiled, **header: Any) -> Columns:
    return read_trace(write(path / "run.json", run.events, **header))


def collectives(path: Path, *told: dict[str, object], **header: Any) -> Collectives:
    run = Profiled()
    for one in told:
        run.run(GATHER, stream=20, **one)
    found = read(path, run, **header).collectives
    assert found is not None
    return found


def of_group(name: str, ranks: str, **more: object) -> dict[str, object]:
    return {"Process Group Name": name, "Process Group Ranks": ranks, **more}


def test_a_group_has_its_ranks_and_a_fingerprint_of_name_and_ranks(tmp_path: Path) -> None:
    one = collectives(tmp_path, of_group("3", "[0, 4]", **{"Group size": 2}), of_group("4", "[1, 5]"))
    again = collectives(tmp_path, of_group("4", "[1, 5]"), of_group("3", "[0, 5]"))
    assert [(group.size, group.members) for group in one.groups] == [(2, (0, 4)), (2, (1, 5))]
    assert one.groups[1].key == again.groups[0].key
    assert len({one.groups[0].key, one.groups[1].key, again.groups[1].key}) == 3


def test_of_a_list_that_is_cut_the_header_has_the_ranks_else_only_the_size_is_known(tmp_path: Path) -> None:
    cut = of_group("3", "[0, 1, ..., 63]", **{"Group size": 64})
    (group,) = collectives(tmp_path, cut).groups
    assert (group.size, group.members) == (64, None)
    config = {"pg_config": [{"pg_name": "3", "ranks": list(range(64))}]}
    (group,) = collectives(tmp_path, cut, distributedInfo=config).groups
    assert (group.size, group.members) == (64, tuple(range(64)))


def test_collectives_have_their_number_and_size(tmp_path: Path) -> None:
    found = collectives(
        tmp_path,
        of_group("3", "[0, 1]", **{"Seq": 17, "In msg nelems": 1000, "dtype": "BFloat16"}),
        of_group("3", "[0, 1]", **{"Seq": 18, "In msg nelems": 1000, "dtype": "Unheard"}),
        of_group("3", "[0, 1]"),
    )
    assert found.sequence is not None
    assert found.size_bytes is not None
    assert (found.sequence.tolist(), found.size_bytes.tolist()) == ([17, 18, -1], [2000, -1, -1])


def test_where_nothing_is_numbered_there_are_no_numbers(tmp_path: Path) -> None:
    found = collectives(tmp_path, of_group("3", "[0, 1]"))
    assert (found.sequence, found.size_bytes) == (None, None)


@pytest.mark.parametrize("ranks", ["[0, 1", "", "[]", "[9" + "9" * 6000 + "]", "[-1, 2]", "[a]"])
def test_a_broken_list_of_ranks_is_no_list(tmp_path: Path, ranks: str) -> None:
    (group,) = collectives(tmp_path, of_group("3", ranks)).groups
    assert group.members is None


@pytest.mark.parametrize(
    "listed", [7, [7], [{}], [{"pg_name": "3", "ranks": ["0"]}], [{"pg_name": "3", "ranks": [1 << 80]}]]
)
def test_a_broken_header_lists_no_ranks(tmp_path: Path, listed: object) -> None:
    (group,) = collectives(
        tmp_path, of_group("3", "[0, ..., 9]"), distributedInfo={"pg_config": listed}
    ).groups
    assert group.members is None


def test_the_world_and_the_start_of_the_session_are_told(tmp_path: Path) -> None:
    info = {"rank": 1, "world_size": 16}
    path = write(tmp_path / "run.json", one_run(), distributedInfo=info, baseTimeNanoseconds=10**18)
    columns = read_trace(path)
    assert (columns.world_size, columns.session_start_ns) == (16, 10**18)
    columns = read_trace(write(tmp_path / "run.json", one_run()))
    assert (columns.world_size, columns.session_start_ns) == (None, 0)


def test_kernels_without_a_group_have_none(tmp_path: Path) -> None:
    run = Profiled()
    run.run(SENDRECV, stream=20)
    assert read(tmp_path, run).collectives is None
