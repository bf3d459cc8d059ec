"""What a step takes in and does: input copies, worker processes, families of ranges."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.by_hand.run import Run
from traces.columns import NULL
from traces.measure.data_loading import loads_apart, workers_by_name
from traces.measure.kernel_table import ROWS
from traces.measurements import measure_rank
from traces.missing import known
from traces.sections.work import HostCopies, InputCopies
from traces.steps.selection import parse_selection


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
        step.range("_MultiProcessingDataLoaderIter", 0, 5)
    run.work("h2d", 300, 310, size_bytes=1_000)  # after the last step
    fed, found = run.measured().data_loading, run.measured().work
    assert (fed.input_copies, fed.input_copies_pageable) == (8, 2)
    assert (fed.input_copies_exposed_ns, fed.waiting_steps, fed.workers) == (2 * 17_000, 0, None)
    assert (found.to_gpu, found.to_host) == (HostCopies(8, 84, 14), HostCopies(2, 8, 8))
    assert found.input_sizes == (InputCopies(30, 2), InputCopies(7, 2), InputCopies(5, 2))
    monkeypatch.setattr("traces.measure.work.ROWS", replace(ROWS, value=1))
    rank = run.rank()
    rank.columns.copies.size_bytes[0] = rank.columns.copies.memory[0] = NULL
    rank.columns.thread_names[1] = "pt_data_worker"
    measured = measure_rank(rank, parse_selection())
    found, fed = measured.work, measured.data_loading
    assert known(fed.input_copies_pageable) is None
    assert (fed.workers, fed.loads_apart) == (1, True)
    assert found.input_sizes == (InputCopies(30, 2),)
    assert found.to_gpu is not None
    assert (known(found.to_gpu.size_bytes), known(found.to_gpu.pageable_bytes)) == (None, None)


def test_families_of_ranges_are_those_of_most_between_the_launches_of_a_step_and_of_as_many_by_name() -> None:
    """Of three steps the last has no range, and the first other threads' and copies' as well."""
    run = Run(ahead_us=0)
    for place, step in enumerate(run.steps(3, every=100)):
        step.work("gemm", 10, 20)
        step.work("gemm", 40, 90)
        for at, text in ((9, "step"), (10, "router 1"), (20, "forward 2"), (30, "layer 3"), (40, "layer 4")):
            if place < 2:
                step.range(text, at, at + 1)
    run.work("h2d", 5, 8)
    run.work("d2h", 92, 95)
    run.work("gemm", 91, 92, launched=False)
    for at, thread in ((6, 0), (30, 1), (60, 0)):
        run.range("step", at, at + 1, thread=thread)
    found = run.measured().work
    assert [*found.ranges.items()] == [("layer N", 2), ("forward N", 1), ("router N", 1)]
    assert run.measured(window=(0, 100)).work.ranges == found.ranges


def test_calls_of_hip_show_rocm_and_a_kernel_of_that_name_does_not() -> None:
    for of_call, of_kernel, shown in (("hipLaunchKernel", "norm", ["rocm"]), ("cudaFree", "hipKernel", [])):
        run = Run()
        run.call(of_call, 0, 5)
        run.work(of_kernel, 10, 20)
        assert run.document()["ranks"][0]["detected"]["in_use"] == shown
