"""Of few steps the one with a save or an evaluation in it is a hiccup; one that is only slower is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.by_hand.run import Run
from traces.columns import HostSpans
from traces.formats.open import ReadOptions, read_trace
from traces.steps.choose import choose_steps
from traces.steps.found import Steps
from traces.steps.selection import Selection
from traces.timeline import build

US = 1_000
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
MIB = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


def steps_with(path: Path, what: str, at: Sequence[int], count: int = 5, pause_us: int = 300) -> Steps:
    """Steps of ten kernels, 100 us; those `at` hold a pause before their last, 200 us of it in `what`."""
    recording, now, written_us = Recording(), 1_000, list[int]()
    for step in range(count):
        begin = now
        for kernel in range(10):
            if kernel == 9 and step in at:
                if what in ("memcpy", "scalar"):
                    size = 2 * MIB if what == "memcpy" else 4
                    recording.copy("d2h", now * US, (now + 60) * US, size_bytes=size, launch_ns=now * US)
                elif what == "write":
                    written_us.append(now)
                elif what:
                    recording.range(what, now * US, (now + 200) * US)
                now += pause_us
            recording.kernel(GEMM, now * US, (now + 10) * US, launch_ns=(now - 1) * US)
            now += 10
        recording.range(f"iteration {step}", (begin - 2) * US, (now - 3) * US)
    write_export(path, recording)
    columns = read_trace(path, ReadOptions())
    start_ns = np.array(written_us, dtype=np.int64) * US
    thread, name = (
        np.full(len(start_ns), columns.calls.thread_gid[0]),
        np.zeros(len(start_ns), dtype=np.int64),
    )
    writes = HostSpans(start_ns, start_ns + 200 * US, thread, name, ("write",))
    (rank,) = build(replace(columns, os_calls=writes)).ranks
    return choose_steps(rank, Selection())


@pytest.mark.parametrize("what", ["save_checkpoint", "write_weights", "memcpy", "write"])
@pytest.mark.parametrize(("at", "count"), [((1,), 3), ((2,), 5), ((2, 3), 5)])
def test_of_few_steps_those_with_a_save_are_hiccups(
    what: str, at: tuple[int, ...], count: int, path: Path
) -> None:
    found = steps_with(path, what, at, count)
    assert found.slow == at
    assert {length // US for length in found.lengths_ns()} == {100}
    assert found.hiccups_ns == len(at) * 300 * US


@pytest.mark.parametrize("what", ["", "gc", "dataloader next", "scalar"])
def test_of_few_steps_one_that_is_only_slower_is_none(what: str, path: Path) -> None:
    assert steps_with(path, what, (2,)).slow == ()


@pytest.mark.parametrize(("pause_us", "slow"), [(399, (2,)), (400, ())])
def test_what_the_host_does_alone_has_to_be_over_half_of_what_a_step_takes_more(
    pause_us: int, slow: tuple[int, ...], path: Path
) -> None:
    assert steps_with(path, "save_checkpoint", (2,), pause_us=pause_us).slow == slow


@pytest.mark.parametrize(("at", "count"), [((1, 4), 7), ((0, 1, 2), 5), ((0, 1), 4)])
def test_units_in_turn_or_in_half_of_the_steps_are_how_the_run_goes(
    at: tuple[int, ...], count: int, path: Path
) -> None:
    assert steps_with(path, "memcpy", at, count).slow == ()


def test_a_copy_belongs_to_the_step_that_launched_it_not_to_the_one_in_which_it_runs() -> None:
    """The host runs ahead: the third step's copy runs within the second one's time."""
    run = Run()
    told = [(10, 20, 50), (60, 60, 130), (100, 140, 180), (190, 190, 230)]
    for place, (copied, start, end) in enumerate(told):
        launched = 30 * place - 10
        run.range(f"iteration {place}", launched, launched + 30)
        run.work("d2h", copied, copied + 10, launch=launched + 5, stream=30, size_bytes=2 << 20)
        run.work("gemm", start, end, launch=launched + 20)
    assert run.steps_found() == [(10, 50), (50, 130), (130, 180), (180, 230)]
