"""Correlation ids as no profiler should write them: equal, absent, shared by processes. Never an error."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import diagnoser
from bench.simulate.recording import Recording
from tests.places import Export
from traces.formats.open import read_trace
from traces.gpu_work import build

US = 1_000
OF: dict[str, Callable[[int], int]] = {
    "all 0": lambda _: 0,
    "all equal": lambda _: 7,
    "three": lambda number: number % 3,
    "pairs": lambda number: number // 2,
}


def training(id_of: Callable[[int], int] | None, pids: tuple[int, ...] = (1000,)) -> Recording:
    """Each process launches four steps of 20 kernels and an optimizer; a wait ends each step."""
    recording, number = Recording(), 0
    for pid in pids:
        recording.gpu()
        for turn in range(84):
            at, last = turn * 300 * US, turn % 21 == 20
            name = "multi_tensor_apply_kernel_adam" if last else "elementwise_kernel"
            number += 1
            own = None if id_of is None else id_of(number)
            times = at + 5 * US, at + 105 * US
            recording.kernel(
                name, *times, launch_ns=at, launch_end_ns=at + 3 * US, pid=pid, correlation_id=own
            )
            if last:
                spared = None if id_of is None else 1_000 + number
                times = at + 4 * US, at + 110 * US
                recording.call("cudaStreamSynchronize_v3020", *times, pid=pid, correlation_id=spared)
    return recording


@pytest.mark.parametrize("pids", [(1000,), (1000, 2000)])
@pytest.mark.parametrize("ids", OF)
def test_calls_that_share_an_id_launch_nothing_and_are_said(
    export: Export, ids: str, pids: tuple[int, ...]
) -> None:
    """The first or the last launch may be alone with its id."""
    result = diagnoser.analyze(export(training(OF[ids], pids)), ask_megatron=False).to_dict()
    assert {rank["kernels_without_launch"] for rank in result["ranks"]} <= {84, 83, 82}
    said = "GPU rows whose correlation id several calls bear, joined to no launch"
    assert said in "".join(result["warnings"])


def test_equal_ids_in_two_processes_are_two_ids(export: Export) -> None:
    alone = build(read_trace(export(training(None), "alone.sqlite"))).ranks[0].activities
    both = build(read_trace(export(training(lambda number: (number - 1) % 84 + 1, (1000, 2000)))))
    assert not both.warnings
    for rank in both.ranks:
        assert (rank.activities.launch_ns == alone.launch_ns).all()
