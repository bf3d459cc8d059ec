"""Several traces at once: the same document, the same errors, and nothing left running."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import diagnoser
from diagnoser.demo import unpack
from diagnoser.running.work import processes
from diagnoser.running.work.measured import TraceTask, measure_all
from diagnoser.running.work.processes import Workers
from tests.places import ROOT
from tests.recordings.measured_changes import joints_of
from traces.errors import NotATrace, ProcessEnded
from traces.formats.open import ReadOptions
from traces.limits import Limit
from traces.progress import report, silent
from traces.steps.selection import Selection

DEMOS = ("host_overhead", "token_sync", "graphs_lost")  # of one GPU; changes of which are replayed together


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("demos")
    paths = [folder / f"{name}.sqlite" for name in DEMOS]
    for path, name in zip(paths, DEMOS, strict=True):
        unpack(path, name)
    return paths


@pytest.fixture(params=["fork", "spawn"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    way = str(request.param)
    monkeypatch.setattr(processes, "_forks", lambda: way == "fork")
    return way


def doubled(number: int) -> int:
    report(f"doubling {number}")
    return 2 * number


def refused(number: int) -> int:
    if number:
        raise NotATrace(f"{number} is no trace")
    time.sleep(0.2)
    return number


def killed(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def never(number: int) -> int:
    time.sleep(600)
    return number


def deaf(number: int) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
    return number


def named(*numbers: int) -> dict[str, int]:
    return {f"task {number}": number for number in numbers}


def test_documents_are_the_same_with_one_process_and_with_two(demos: list[Path], way: str) -> None:
    one, two = (diagnoser.analyze(demos, jobs=jobs).to_dict() for jobs in (1, 2))
    assert one == two
    assert one["combined"]


def test_what_processes_report_reaches_the_one_who_listens() -> None:
    heard: list[tuple[str, float | None]] = []
    with Workers(2, lambda doing, fraction=None, rows=None: heard.append((doing, fraction))) as workers:
        workers.map(doubled, named(5, 3))
    assert any(doing.endswith("done, doubling 5") for doing, _ in heard)
    assert {fraction for _, fraction in heard} <= {0.0, 0.5}


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_the_first_error_by_order_is_raised_as_it_is(jobs: int) -> None:
    with pytest.raises(NotATrace, match="7 is no trace"), Workers(jobs, silent) as workers:
        workers.map(refused, named(0, 7, 8))


def test_the_task_of_a_process_that_is_killed_is_named_and_the_others_go_on() -> None:
    with Workers(2, silent) as workers:
        ended, *others = workers.map(killed, named(1, 2, 3, 4))
    assert isinstance(ended, ProcessEnded)
    assert re.match("the process that read task 1 was ended from outside.*--jobs 1", str(ended))
    assert others == [2, 3, 4]


def test_what_was_kept_by_a_process_that_is_gone_is_made_again(demos: list[Path], way: str) -> None:
    tasks = {path.name: TraceTask(path, Selection(), ReadOptions(), None, False) for path in demos}
    told = []
    for jobs in (1, 2):
        with Workers(jobs, silent) as workers:
            found = measure_all(workers, tasks)
            for child in multiprocessing.active_children():
                child.kill()
                child.join()
            told.append(joints_of(workers, found))
    assert told[0] == told[1]
    assert any(one.high_ns for one in told[0])


def test_an_interrupt_ends_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(doing: str, fraction: float | None = None, rows: int | None = None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Workers(2, interrupt) as workers:
        workers.map(reported_then_never, named(1, 2))
    assert multiprocessing.active_children() == []


def reported_then_never(number: int) -> int:
    report("waiting")
    return never(number)


_PARENT = """
import os, signal
from diagnoser.running.work.processes import Workers
from tests.diagnoser.test_processes import doubled
from traces.progress import silent

with Workers(2, silent) as workers:
    print(workers.map(doubled, {"a": 1, "b": 2}), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_end_with_a_parent_that_is_killed() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _PARENT],
        cwd=ROOT,
        stdout=subprocess.PIPE,  # which the processes hold too: it ends once they have
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"[2, 4]\n")


def test_a_process_that_hears_no_signal_is_ended_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE", Limit(0.2, "seconds", "for a test"))

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt), Workers(2, silent) as workers:
            workers.map(deaf, named(1, 2))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert multiprocessing.active_children() == []
