"""What a step takes in and does: input copies, worker processes, families of ranges."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.by_hand.run import Run
from tests.recordings.loading import MS, loading
from traces.measure.data_loading import loads_apart, workers_by_name


@pytest.mark.parametrize(("pageable", "count"), [(True, 4), (False, 0)])
def test_input_copies_say_whether_they_read_pageable_memory(
    tmp_path: Path, pageable: bool, count: int
) -> None:
    path = tmp_path / "run.sqlite"
    write_export(path, loading(10, pageable=pageable))
    (rank,) = diagnoser.analyze(path).to_dict()["ranks"]
    assert rank["data_loading"]["input_copies_pageable"] == count


def test_where_the_memory_of_copies_was_not_recorded_it_is_unknown(tmp_path: Path) -> None:
    recording, path = loading(10), tmp_path / "run.sqlite"
    for row in recording.rows["CUPTI_ACTIVITY_KIND_MEMCPY"]:
        row["srcKind"] = None
    write_export(path, recording)
    document = diagnoser.analyze(path).to_dict()
    assert document["ranks"][0]["data_loading"]["input_copies_pageable"] is None
    assert "ranks[0].data_loading.input_copies_pageable" in {one["path"] for one in document["missing"]}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("step 1", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), False),
        (("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",), True),
        (("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"), None),
        (("load batch",), None),
    ],
)
def test_the_iterator_of_pytorch_says_whether_worker_processes_load(
    texts: tuple[str, ...], expected: bool | None
) -> None:
    assert loads_apart(texts) is expected


def test_workers_of_a_loader_are_counted_by_name_where_one_process_uses_gpus() -> None:
    names = {1: "pt_data_worker", 2: "pt_data_worker", 3: "pt_data_pin", 4: "pt_autograd_0"}
    for beside, count in ((0, 2), (1, 0)):
        rank: Any = SimpleNamespace(beside=beside, columns=SimpleNamespace(thread_names=names))
        assert workers_by_name(rank) == count


def work_of(recording: Recording, path: Path) -> dict[str, Any]:
    write_export(path, recording)
    (rank,) = diagnoser.analyze(path).to_dict()["ranks"]
    return dict(rank["work"])


@pytest.mark.parametrize(("equal", "sizes"), [(True, [{"size_bytes": 1 << 20, "count": 4}]), (False, [])])
def test_input_copies_are_those_of_sizes_that_come_again(tmp_path: Path, equal: bool, sizes: object) -> None:
    """Four copies of 1 MiB or of four sizes, each before its kernels; the first step begins with its copy."""
    assert work_of(loading(10, equal=equal), tmp_path / "run.sqlite")["input_sizes"] == sizes


def test_families_of_ranges_are_those_of_most_in_a_step_and_of_as_many_by_name(tmp_path: Path) -> None:
    recording = loading(10)
    for at_ms in (20, 56, 92, 128):  # within each step
        for place, text in enumerate(("router 1", "forward 2", "layer 3", "layer 4")):
            recording.range(text, at_ms * MS + 10 * place, at_ms * MS + 10 * place + 5)
    found = work_of(recording, tmp_path / "run.sqlite")
    assert [*found["ranges"].items()] == [("layer N", 2), ("forward N", 1), ("router N", 1)]


def test_calls_of_hip_show_rocm_and_a_kernel_of_that_name_does_not() -> None:
    for of_call, of_kernel, shown in (("hipLaunchKernel", "norm", ["rocm"]), ("cudaFree", "hipKernel", [])):
        run = Run()
        run.call(of_call, 0, 5)
        run.work(of_kernel, 10, 20)
        assert run.document()["ranks"][0]["detected"]["in_use"] == shown
