"""What a step takes in and does: input copies, worker processes, families of ranges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.by_hand.run import Run
from tests.recordings.loading import MS, loading
from traces.columns import NULL
from traces.measure import work
from traces.measure.data_loading import loads_apart, workers_by_name
from traces.measurements import measure_rank
from traces.missing import known
from traces.sections.work import HostCopies, InputCopies
from traces.steps.selection import parse_selection


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


def test_all_copies_of_the_steps_are_counted_and_what_helpers_copy_by_size_the_largest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run()
    for step in run.steps(2, every=100):
        step.work("gemm", 0, 50)
        for place, size in enumerate((0, 5, 7, 30), start=5):
            step.work("h2d", 10 * place, 10 * place + 5, size_bytes=size, thread=1, pageable=size == 7)
        step.work("d2h", 90, 95, size_bytes=4, pageable=True)
        step.work("norm", 80, 83)
    run.work("h2d", 300, 310, size_bytes=1_000)  # after the last step
    fed, found = run.measured().data_loading, run.measured().work
    assert (fed.input_copies, fed.input_copies_pageable) == (8, 2)
    assert (fed.input_copies_exposed_ns, fed.waiting_steps) == (2 * 17_000, 0)
    assert (found.to_gpu, found.to_host) == (HostCopies(8, 84, 14), HostCopies(2, 8, 8))
    assert found.input_sizes == (InputCopies(30, 2), InputCopies(7, 2), InputCopies(5, 2))
    monkeypatch.setattr(work, "ROWS", replace(work.ROWS, value=1))
    rank = run.rank()
    rank.columns.copies.size_bytes[0] = NULL
    found = measure_rank(rank, parse_selection()).work
    assert found.input_sizes == (InputCopies(30, 2),)
    assert found.to_gpu is not None
    assert (known(found.to_gpu.size_bytes), known(found.to_gpu.pageable_bytes)) == (None, None)


def test_ranges_are_counted_from_the_first_launch_of_a_kernel_to_the_last() -> None:
    run = Run()
    for name, at in (("h2d", 0), ("gemm", 20), ("norm", 40), ("d2h", 60), ("gemm", 90)):
        run.work(name, 100 + at, 110 + at, launch=at)
    run.work("gemm", 170, 180, launched=False)
    for at in (10, 20, 40, 50, 70):
        run.range("forward", at, at + 5)
    run.range("forward", 30, 35, thread=1)  # which launches nothing
    assert run.measured(window=(100, 190)).work.ranges == {"forward": 2}


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
