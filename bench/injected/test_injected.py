"""Handicaps in small recordings made by hand: six steps of ten launches, one every 100 us."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.injected.graph import end
from bench.injected.handicaps import KINDS
from bench.injected.read import load, read, steps_of
from bench.injected.scene import Scene, Unfit
from bench.injected.score import can_be_decided, table
from bench.injected.truth import (
    HARMLESS,
    Base,
    Truth,
    base_of,
    is_identity,
    left_frac,
    lengths,
    put_in,
    write_harmless,
)
from bench.injected.write import save, written

STEPS = 6


class Made:
    """A recording by hand, in us: forward by thread 1, backward by 2, on stream 7; a collective on 20."""

    def __init__(
        self, kernel: int, waits: bool = True, copy: bool = False, step: str = "ProfilerStep#"
    ) -> None:
        self.events: list[dict[str, Any]] = []
        self.free = {7: 0, 20: 0}
        self.number = 0
        for one in range(STEPS):
            at = 1000 * one
            self.row("user_annotation", f"{step}{one}" if "#" in step else step, at, 990, 1, {})
            self.row("cpu_op", "aten::relu", at, 520, 1, {"External id": one})
            self.row("cpu_op", "autograd::engine::evaluate_function: X", at + 600, 320, 2, {})
            if waits:
                self.row("cuda_runtime", "cudaStreamWaitEvent", at + 1, 1, 1, {})
                self.free[7] = max(self.free.values())
            for call in range(10):
                name = (
                    "Memcpy HtoD (Pinned -> Device)" if copy and call == 0 else "void elementwise_kernel<4>"
                )
                self.launch(name, at + 2 + 100 * call, 1 if call < 6 else 2, 7, kernel)
            self.row("cuda_runtime", "cudaStreamWaitEvent", at + 914, 1, 2, {})
            self.free[20] = max(self.free.values())
            self.launch("ncclDevKernel_AllReduce", at + 916, 2, 20, kernel // 2)

    def row(self, cat: str, name: str, at: int, lasts: int, thread: int, args: dict[str, Any]) -> None:
        event = {"ph": "X", "cat": cat, "name": name, "pid": 9 if thread < 7 else 0, "tid": thread}
        self.events.append(event | {"ts": at, "dur": lasts, "args": args})

    def launch(self, name: str, at: int, thread: int, stream: int, lasts: int) -> None:
        self.number += 1
        copies = name.startswith("Memcpy")
        call = "cudaMemcpyAsync" if copies else "cudaLaunchKernel"
        self.row("cuda_runtime", call, at, 4, thread, {"correlation": self.number})
        begins = max(self.free[stream], at + 10)
        args = {"device": 0, "stream": stream, "correlation": self.number}
        self.row("gpu_memcpy" if copies else "kernel", name, begins, lasts, stream, args)
        self.free[stream] = begins + lasts

    def base(self) -> Base:
        recording = read({"schemaVersion": 1, "traceEvents": self.events})
        return base_of(Path("made.json"), recording, steps_of(recording))


HOST: dict[str, Any] = {"kernel": 50}
GPU: dict[str, Any] = {"kernel": 200}


def put(base: Base, kind: str, amount_us: int) -> tuple[Scene, list[int | None], Truth]:
    scene = Scene(base.graph.copy(), base.steps, list(range(STEPS)), Random(1))
    cause = KINDS[kind].put_in(scene, amount_us * 1000)
    times = scene.graph.times()
    new = lengths(base.steps, times, scene.graph.work_added())
    return scene, times, Truth("", "", kind, cause, "", "every", "", [], base.lengths, new)


@pytest.mark.parametrize("made", [HOST, GPU, GPU | {"waits": False}, HOST | {"copy": True}])
def test_an_edit_of_nothing_gives_the_document_back(made: dict[str, Any]) -> None:
    assert is_identity(Made(**made).base())


@pytest.mark.parametrize(
    ("kind", "made", "amount", "added"),
    [
        ("python", HOST, 100, [100] * 6),
        ("pause", HOST, 100, [100] * 6),
        ("allocator", HOST, 80, [*[80] * 5, 70]),
        ("data", HOST, 100, [*[100] * 5, 0]),  # each before a step's first launch: within the step before
        ("launch", HOST, 110, [*[110] * 5, 90]),  # of the last step nothing comes after its last two
        ("sync", GPU, 53, [114] * 6),  # 8 to come back, then 96 to the next launch and 10 until it runs
        ("clocks", GPU, 200, [200] * 6),
        ("class", GPU, 200, [200] * 6),
        ("split", GPU, 200, [200] * 6),
        ("recompute", GPU, 700, [800] * 6),  # four kernels
        ("comm_longer", GPU, 50, [50] * 6),
        ("comm_added", GPU, 60, [60] * 6),
        ("overlap_lost", GPU | {"waits": False}, 1000, [*[100] * 5, 0]),
        (
            "copies_pageable",
            HOST | {"copy": True},
            100,
            [164] * 6,
        ),  # the host is 68 later than the copy: 8 to come back,
    ],
)
def test_a_handicap_adds_what_it_says(
    kind: str, made: dict[str, Any], amount: int, added: list[int], tmp_path: Path
) -> None:
    base = Made(**made).base()
    scene, times, truth = put(base, kind, amount)
    assert [one // 1000 for one in truth.change] == added
    save(written(scene.graph, times), tmp_path / "new.json.gz")
    assert abs(left_frac(tmp_path / "new.json.gz", base, scene.graph, truth)) <= 0.01


@pytest.mark.parametrize(
    ("name", "returns", "later"),
    [
        ("Memcpy DtoH (Device -> Pageable)", 910, 100),
        ("Memcpy HtoD (Pageable -> Device)", 850, 100),  # the last piece is staged, and the call comes back
        ("Memcpy HtoD (Pageable -> Device)", 40, 0),
        ("Memcpy DtoD (Device -> Device)", 910, 0),
    ],
)
def test_a_call_waits_for_its_copy_unless_that_stays_on_the_gpu(name: str, returns: int, later: int) -> None:
    made = Made(**HOST)
    at, made.free[7] = 1000 * STEPS, 1000 * STEPS
    made.launch(name, at, 1, 7, 890)  # runs from 10 to 900
    call, copy = len(made.events) - 2, len(made.events) - 1
    made.events[call]["dur"] = returns
    graph = made.base().graph
    graph.delay(end(copy), 100_000)
    moved = graph.times()[end(call)] or 0
    assert moved == (at + returns + later) * 1000


def test_what_the_gpu_hides_is_no_pair() -> None:
    with pytest.raises(Unfit, match="hides"):
        put_in(Made(kernel=10, waits=False).base(), "comm_longer", 1)


def test_a_pair_has_the_size_that_was_drawn() -> None:
    _, _, truth = put_in(Made(**HOST).base(), "python", 3)
    assert 0.02 <= truth.delta_frac <= 0.3 or truth.scope != "every"


@pytest.mark.parametrize("kind", HARMLESS)
def test_harmless_edits_leave_the_steps(kind: str, tmp_path: Path) -> None:
    base = Made(**GPU).base()
    truth = write_harmless(base, kind, 1, tmp_path)
    recording = load(tmp_path / truth.file)
    found = base_of(Path("new.json"), recording, steps_of(recording)).lengths
    assert found == truth.new_steps
    assert abs(truth.delta_frac) < 0.01


def test_steps_are_told_by_ends_of_the_optimizer_where_no_step_is_named() -> None:
    base = Made(kernel=50, step="Optimizer.step").base()
    assert (base.steps.by, len(base.steps.rows)) == ("Optimizer.step", STEPS)


def test_a_change_is_clear_by_its_steps() -> None:
    assert can_be_decided({"base_steps": [100, 101, 99, 100], "new_steps": [110, 111, 109, 110]})
    assert not can_be_decided({"base_steps": [100, 120, 80, 100], "new_steps": [110, 130, 90, 110]})
    assert not can_be_decided({"base_steps": [100, 100, 100], "new_steps": [110, 110, 110]})


def test_the_table_has_a_row_a_kind() -> None:
    right = {"can": True, "decided": True, "wrong": False, "size": True, "first_row": True}
    said = table(
        [
            right | {"kind": "sync", "first_suspect": False, "cost": None},
            {"kind": "sync", "verdict": "refused"},
            {"kind": "ids", "alarm": False},
        ]
    )
    assert "| sync | 2 | 1 | 1 of 1 | 0 | 1 of 1 | 1 of 1 | 0 of 1 | 0 of 0 |" in said
    assert "| ids | 1 | | false alarms: 0 |" in said
