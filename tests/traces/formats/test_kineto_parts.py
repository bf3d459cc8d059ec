"""Traces of the PyTorch profiler read part by part are what they are in one part, in less memory."""

from __future__ import annotations

import dataclasses
import gzip
import json
import tracemalloc
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recordings.kineto import SENDRECV, Event, Profiled, event, on_gpu, one_run, overlapped_step, write
from traces.columns import NULL
from traces.errors import DamagedTrace
from traces.formats import kineto_json
from traces.formats.kineto_rows import column, joined, rows_of, table, whole
from traces.formats.open import read_trace

GPU = {"id": 0, "name": "NVIDIA H100"}


def plain(value: object) -> object:
    """All that a reader gives, as lists and texts that compare."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if dataclasses.is_dataclass(value):
        return [plain(getattr(value, each.name)) for each in dataclasses.fields(value)]
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def expect_alike(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In small parts a trace is what it is in one, and as the standard library reads that."""
    usual, refuses, found = kineto_json._DECODER, msgspec.json.Decoder(list[int]), []
    for part_bytes, decoder in ((2000, usual), (1 << 22, usual), (1 << 22, refuses)):
        with monkeypatch.context() as patch:
            patch.setattr(kineto_json, "_PART_BYTES", part_bytes)
            patch.setattr(kineto_json, "_DECODER", decoder)
            found.append(plain(read_trace(path)))
    assert found[0] == found[1] == found[2]


def collectives() -> list[Event]:
    profiled = Profiled()
    for number in range(20):
        profiled.run("gemm", grid=[number, 1, 1])
        described = "EXPERT_MODEL_PARALLEL_GROUP" if number % 3 else "undefined"
        profiled.collective(SENDRECV, "all_to_all", described, group=str(number % 4) if number % 5 else None)
    return profiled.events


@pytest.mark.parametrize("events", [overlapped_step(), collectives(), one_run() * 10])
@pytest.mark.parametrize("indent", [None, 2])
def test_parts_give_what_the_whole_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[Event], indent: int | None
) -> None:
    document = {"schemaVersion": 1, "deviceProperties": [GPU, GPU], "traceEvents": events, "traceName": "x"}
    for name, written in (("object", document), ("list", events)):
        path = write(tmp_path / name, json.dumps(written, indent=indent))
        expect_alike(path, monkeypatch)
        path.write_bytes(gzip.compress(path.read_bytes()))
        expect_alike(path, monkeypatch)


@pytest.mark.parametrize(
    "odd", ["NaN", "nan", "N/A", '"a\nb"', r'"C:\data"', '"},{"', '"}]"', "[{}, {}]", "[]"]
)
def test_an_odd_value_costs_its_part_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str) -> None:
    events = [*overlapped_step(), event("cpu_op", "odd", 5, 1, args="HERE"), *overlapped_step()]
    path = write(tmp_path / "run.json", json.dumps({"traceEvents": events}).replace('"HERE"', odd))
    expect_alike(path, monkeypatch)


@pytest.mark.parametrize("begin", [
    '{"traceEvents": [{}], "traceEvents": [', '{"one": {"traceEvents": [{}]}, "traceEvents": [',
    f'{{"traceEvents": [{json.dumps({"nested": [{}] * 2000})}, ',
])  # fmt: skip
def test_a_layout_that_no_profiler_writes_is_refused_and_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    monkeypatch.setattr(kineto_json, "_PART_BYTES", 2000)
    path = write(tmp_path / "run.json", f"{begin}{json.dumps(overlapped_step())[1:]}}}")
    with pytest.raises(DamagedTrace, match=r"from byte \d+ on it cannot be read"):
        read_trace(path)


def test_a_header_behind_the_events_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"traceEvents": overlapped_step(), "deviceProperties": [GPU, GPU], "schemaVersion": 1}
    path = write(tmp_path / "run.json", json.dumps(document))
    expect_alike(path, monkeypatch)
    assert [gpu.name for gpu in read_trace(path).info.gpus] == ["NVIDIA H100"]


def test_a_trace_that_breaks_off_after_many_parts_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kineto_json, "_PART_BYTES", 2000)
    path = write(tmp_path / "run.json", overlapped_step())
    size = len(path.read_bytes())
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DamagedTrace, match=r"from byte \d+ on") as raised:
        read_trace(path)
    assert size - 4000 < int(str(raised.value).split("from byte ")[1].split()[0]) < size


def test_memory_holds_no_whole_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto_json, "_PART_BYTES", 1 << 14)
    wide = {f"key {number}": "value" for number in range(40)}
    path = write(tmp_path / "run.json", [on_gpu("kernel", "k", at, 1, at, **wide) for at in range(4000)])
    read_trace(path)
    tracemalloc.start()
    read_trace(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20),
    st.builds("{}.{:0{}}".format, st.integers(0, 10**16), st.integers(0, 999), st.integers(1, 3)),
    st.decimals(allow_nan=True).map(str),
    st.text("0123456789.-+e_ ", max_size=20),
    st.text(max_size=3),
    st.sampled_from(
        [None, True, 1.5, 2**61 // 1000, str(2**61 // 1000), 2**61 - 1, str(2**61 - 1), str(2**63)]
    ),
)
SCALE = st.sampled_from([1, 1000])
LIKE_TIMES = st.lists(NUMBERS.filter(lambda value: str(value).replace(".", "", 1).isdecimal()), max_size=4)


@given(st.lists(NUMBERS, max_size=4) | LIKE_TIMES, SCALE)
def test_a_column_is_its_numbers_one_by_one(values: list[object], scale: int) -> None:
    assert column(values, scale).tolist() == [whole(value, scale) for value in values]


def test_tables_join_with_each_text_once_in_its_order() -> None:
    parts: list[list[Event]] = [
        [event("cpu_op", name, 0, 1) for name in names] for names in ("ab", "bca", "d")
    ]
    parts[-1].insert(0, event("cpu_op", "", 0, 1) | {"name": None})
    found = joined([table(rows_of(part), "cpu_op") for part in parts])
    code, texts = found.texts["name"]
    assert (code.tolist(), texts) == ([0, 1, 1, 2, 0, -1, 3], ("a", "b", "c", "d"))
    code, texts = found.only(found.texts["name"][0] > 0).texts["name"]
    assert (code.tolist(), texts) == ([0, 0, 1, 2], ("b", "c", "d"))


def test_rows_of_a_gpu_alone_write_their_stream_as_a_text() -> None:
    on_stream = rows_of([event("kernel", "k", 0, 1, tid="stream 7")])
    assert [table(on_stream, name)["tid"].tolist() for name in ("kernel", "cpu_op")] == [[7], [NULL]]
