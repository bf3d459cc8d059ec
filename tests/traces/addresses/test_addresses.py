"""Addresses of one small case, by hand, and the innermost span of every instant."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import diagnoser
from diagnoser.cli import run
from tests.recordings.kineto import DISPATCHES, GEMM, PID, SENDRECV, call, frame, late_host, on_gpu, write
from traces.addresses.nested import innermost
from traces.missing import Missing
from traces.sections.addresses import Addresses, HostCall

SYNC = "cudaStreamSynchronize"
DOTTED = "megatron.core.transformer.moe.token_dispatcher.dispatch_preprocess"


def addresses(path: Path) -> Addresses:
    (rank,) = diagnoser.analyze(path).result.ranks
    found = rank.addresses
    assert isinstance(found, Addresses)
    return found


@pytest.mark.parametrize("ends", [False, True])
def test_what_is_waited_for_has_the_address_of_its_own_launch(tmp_path: Path, ends: bool) -> None:
    """A call that waits is named, unless nothing is launched after it."""
    events = [
        call("cudaLaunchKernel", 990, 3, 10),
        on_gpu("kernel", GEMM, 1_000, 10, 10),
        frame(DISPATCHES, 1_000, 50),
        call("cudaLaunchKernel", 1_010, 2, 11),
        call("cudaLaunchKernel", 1_020, 2, 12),
        call(SYNC, 1_024, 56, 13),
        on_gpu("kernel", SENDRECV, 1_020, 60, 11),
        on_gpu("kernel", GEMM, 1_082, 10, 12),
    ]
    if not ends:
        events += [call("cudaLaunchKernel", 1_084, 2, 14), on_gpu("kernel", GEMM, 1_093, 10, 14)]
    found = addresses(write(tmp_path / "run.json", events))
    assert found.host_blocking_ns > 50_000
    (one,) = [one for one in found.hosts if one.blocking_ns]
    assert (one.name, [call.name for call in found.calls or () if call.blocking_ns]) == (
        DOTTED,
        [] if ends else [SYNC],
    )


def test_without_frames_the_operator_is_the_address_and_it_is_said_what_to_record(tmp_path: Path) -> None:
    events = [one for one in late_host() if one["cat"] != "python_function"]
    found = addresses(write(tmp_path / "run.json", events))
    hosts = {one.name: (one.kind, one.starved_ns) for one in found.hosts}
    assert hosts == {"": ("none", 252_000), "aten::mm": ("operator", 15_000)}
    # the first began before the window
    assert found.calls == (HostCall("cudaLaunchKernel", 3, 9_000, 9_000, 0),)
    assert isinstance(found.by_function_frac, Missing)
    assert "with_stack=True" in found.by_function_frac.cure


def test_kernels_stand_under_the_module_that_launched_them(tmp_path: Path) -> None:
    events = [
        *late_host(),
        frame("nn.Module: MoELayer_0", 1_090, 10),
        frame("nn.Module: MoELayer_1", 1_190, 10),
    ]
    found = addresses(write(tmp_path / "run.json", events))
    gpu = {one.name: (one.kind, one.count, one.work_ns) for one in found.gpu_addresses}
    assert gpu == {"MoELayer": ("module", 2, 20_000), "aten::mm": ("operator", 2, 20_000)}


@pytest.mark.parametrize("text", [f"/home/hunter2_sesame/train.py({PID}): step", "hunter2_sesame: f"])
def test_a_folder_of_a_frame_leaves_in_no_format(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "run.json", [*late_host(), frame(text, 1_000, 500)])
    for form in ("text", "json"):
        assert run(["analyze", str(path), "-f", form, "--full"]) == 0
        assert "hunter2" not in capsys.readouterr().out


Spans = list[tuple[int, int]]


def labels(spans: Spans, times: range) -> list[int]:
    start, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    found = innermost(start, end, np.arange(len(spans)))
    at = np.searchsorted(found.start_ns, np.array(times), side="right") - 1
    return [int(one) for one in found.label[at]]


def by_instant(spans: Spans, at: int) -> int:
    """The last to begin of those that last, of these the first to end, of these the last row."""
    there = [(start, -end, row) for row, (start, end) in enumerate(spans) if start <= at < end]
    return max(there)[2] if there else -1


def nest(draw: random.Random, low: int, high: int, depth: int, found: Spans) -> None:
    if depth > 6 or low >= high:
        return
    found.append((low, high))
    while low < high and draw.random() < 0.8:
        begin = draw.randint(low, high)
        end = draw.randint(begin, high)
        nest(draw, begin, end, depth + 1, found)
        low = end


@pytest.mark.parametrize("seed", range(200))
def test_of_spans_that_nest_the_innermost_is_the_same_instant_by_instant(seed: int) -> None:
    draw, spans, at = random.Random(seed), Spans(), 0
    for _ in range(3):
        begin = at + draw.randint(0, 3)
        at = begin + draw.randint(1, 40)
        nest(draw, begin, at, 0, spans)
    times = range(-1, at + 2)
    assert labels(spans, times) == [by_instant(spans, one) for one in times]


def test_a_span_that_outlives_the_one_around_it_ends_with_it() -> None:
    assert labels([(0, 4), (2, 5), (5, 6)], range(7)) == [0, 0, 1, 1, -1, 2, -1]
