"""Late launches of simulated runs are put under the functions that their threads are known to be in."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bench.simulate.export import write_export
from bench.simulate.frames import KIND, NAMES, functions, sample, stacks, with_functions
from bench.simulate.happened import CallMade
from bench.simulate.host_program import AUTOGRAD, MAIN, Engine, Synchronise
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import PID, START_NS, Process, View, record
from bench.simulate.run import Run, run_program
from bench.simulate.step import program_of
from tests.recordings.kineto import Event, as_profiler_json, as_us, event
from traces.account.account import absent_pieces, measure_account
from traces.account.device import find_queueing
from traces.addresses.measure import measure_addresses
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.missing import Missing
from traces.sections.addresses import Addresses
from traces.steps.choose import choose_steps
from traces.steps.selection import Selection

LEAST = 0.95
"""Of the host's time, what stands under its function: what the addresses are held to."""
EVERY_NS = 5_000
"""How far apart the instants are at which truth is looked up."""
SLOW = Knobs(step_count=4, layer_count=4, python_us=150.0, data_stall_ms=2.0)
RUNS = {
    "one thread": Knobs(step_count=4, layer_count=3, python_us=150.0, autograd_thread=False),
    "two threads": SLOW,
    "dense": Knobs(step_count=4, layer_count=4, python_us=200.0, dispatcher="none"),
    "deepep": Knobs(step_count=3, layer_count=4, python_us=150.0, dispatcher="deepep"),
    "gc": Knobs(step_count=4, layer_count=4, python_us=120.0, gc_pause_ms=2.0, gc_per_layer_frac=0.3),
}


def ran(knobs: Knobs) -> Run:
    return run_program(knobs, with_functions(program_of(knobs)))


def host_times(run: Run, first_ns: int, end_ns: int) -> list[tuple[int, str]]:
    """Instants at which no compute runs and the next compute is not launched yet, with the busy thread.

    By the simulator's own record, which knows who is at work: a thread that waits for another is in no call.
    Instants in a call that waits for the GPU are left out, and those at which no thread is at work.
    """
    compute = sorted(
        (one for one in run.own if one.work.engine is Engine.SMS and one.end_ns > one.start_ns),
        key=lambda one: one.start_ns,
    )
    calls, until, found = run.executed.calls, first_ns, list[tuple[int, str]]()
    work: list[tuple[int, int, str, CallMade | None]] = [
        (call.start_ns, call.end_ns, call.thread, call) for call in calls if call.thread in (MAIN, AUTOGRAD)
    ]
    work += [
        (span.start_ns, span.end_ns, span.thread, None) for span in run.executed.spans if span.kind == "busy"
    ]
    work.sort(key=lambda one: one[0])
    starts = [one[0] for one in work]
    for kernel in compute:
        launched_ns = min(calls[kernel.call].end_ns, kernel.start_ns, end_ns)
        for at_ns in range(max(until, first_ns) + EVERY_NS // 2, launched_ns, EVERY_NS):
            near = work[max(0, bisect_right(starts, at_ns) - 4) : bisect_right(starts, at_ns)]
            busy = [one for one in near if one[1] > at_ns]
            if busy and not (busy[-1][3] and isinstance(busy[-1][3].operation, Synchronise)):
                found.append((at_ns, busy[-1][2]))
        until = max(until, kernel.end_ns)
    return found


def truth(run: Run, first_ns: int, end_ns: int) -> Counter[str]:
    """Nanoseconds under each function, by its name."""
    found, times = Counter[str](), host_times(run, first_ns, end_ns)
    for thread in (MAIN, AUTOGRAD):
        mine = [at_ns for at_ns, who in times if who == thread]
        for stack in stacks(run.executed, mine, thread):
            own = [NAMES[text] for text in stack if text in NAMES]
            found[own[-1] if own else ""] += EVERY_NS
    return found


def frames_of(run: Run) -> list[Event]:
    return [
        event("python_function", one.text, as_us(START_NS + one.start_ns), as_us(one.end_ns - one.start_ns))
        | {"pid": PID, "tid": Process().tid(one.thread)}
        for one in functions(run.executed)
    ]


def addresses_of(path: Path) -> tuple[Addresses, int, int]:
    """The addresses of the only rank, and the window of its steps."""
    (rank,) = build(read_trace(path)).ranks
    windows = choose_steps(rank, Selection()).windows
    found = measure_addresses(
        rank, windows, absent_pieces(measure_account(rank, windows, find_queueing(rank)))
    )
    assert not isinstance(found, Missing)
    return found, int(windows.start_ns[0]) - START_NS, int(windows.end_ns[-1]) - START_NS


def right_frac(found: Addresses, known: Counter[str]) -> float:
    """The part of the known time that stands under its function."""
    said = {one.name: one.starved_ns for one in found.hosts if one.kind == "function"}
    return sum(min(ns, said.get(name, 0)) for name, ns in known.items()) / known.total()


@pytest.mark.parametrize("name", RUNS)
def test_of_recorded_python_frames_the_late_launches_have_their_functions(name: str, tmp_path: Path) -> None:
    run, path = ran(RUNS[name]), tmp_path / "run.json"
    path.write_text(as_profiler_json(record(run, View(events=False)), frames_of(run)), encoding="utf-8")
    found, *window = addresses_of(path)
    known = truth(run, *window)
    assert known.total() > 0.2 * (window[1] - window[0])
    print(
        "RIGHT",
        name,
        right_frac(found, known),
        known.total() / (window[1] - window[0]),
        found.host_starved_ns / known.total(),
    )
    assert right_frac(found, known) >= LEAST
    assert found.host_starved_ns <= 1.05 * known.total()


@pytest.mark.parametrize("name", ["two threads"])
def test_of_samples_the_late_launches_have_their_functions(name: str, tmp_path: Path) -> None:
    """By 2000 samples a second, the most that nsys takes of Python; chance has its part in few steps."""
    run, path = ran(replace(RUNS[name], step_count=30)), tmp_path / "run.sqlite"
    recording = record(run, View())
    sample(recording, run, 500_000)
    write_export(path, recording)
    found, *window = addresses_of(path)
    assert right_frac(found, truth(run, *window)) >= LEAST


def test_functions_change_nothing_else_of_a_run() -> None:
    plain, framed = run_program(SLOW, program_of(SLOW)), ran(SLOW)
    assert plain.borders_ns == framed.borders_ns
    assert plain.executed.calls == framed.executed.calls
    assert [one for one in framed.executed.spans if one.kind != KIND] == [*plain.executed.spans]
