"""Knobs -> a run: all that happened on host and GPU, and where its steps lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from bench.simulate.engine import execute
from bench.simulate.handicaps import Handicap, halved, taken_away
from bench.simulate.happened import Activity, Executed
from bench.simulate.host_program import LOADER, Engine, Program
from bench.simulate.knobs import Knobs
from bench.simulate.step import program_of


@dataclass(frozen=True, slots=True)
class Run:
    """A simulated run. `borders_ns` has one entry more than there are steps: step k is [k, k + 1)."""

    knobs: Knobs
    executed: Executed
    borders_ns: tuple[int, ...]

    @property
    def step_ns(self) -> tuple[int, ...]:
        """How long each step took on the GPU."""
        return tuple(after - before for before, after in pairwise(self.borders_ns))

    @property
    def activities(self) -> tuple[Activity, ...]:
        """GPU work in order of submission, with what bound each start."""
        return self.executed.activities

    @property
    def own(self) -> tuple[Activity, ...]:
        """The same without what helper threads launched, which owns no step."""
        calls = self.executed.calls
        return tuple(one for one in self.activities if calls[one.call].thread != LOADER)


def run(knobs: Knobs, *, without: Handicap | None = None, and_without: Handicap | None = None) -> Run:
    """Simulate a run, or the same run with one or two handicaps taken away."""
    program = program_of(knobs)
    for handicap in (without, and_without):
        program = program if handicap is None else taken_away(program, handicap)
    return run_program(knobs, program)


def run_halved(knobs: Knobs) -> Run:
    """Simulate the same run with all GPU work in half its time."""
    return run_program(knobs, halved(program_of(knobs)))


def run_program(knobs: Knobs, program: Program) -> Run:
    """Simulate a program that was made of these knobs, and perhaps edited."""
    return run_of(knobs, execute(program))


def run_of(knobs: Knobs, executed: Executed) -> Run:
    """What happened, with the borders of its steps."""
    done = Run(knobs, executed, ())
    return replace(done, borders_ns=_borders(done.own, knobs.step_count))


def _borders(own: Sequence[Activity], step_count: int) -> tuple[int, ...]:
    """Border before step k: the start of its first compute kernel, or the end of all before it if earlier.

    With nothing before it, a step begins with the first work that it launched.
    """
    ends, starts, initialised_ns = [0] * step_count, [-1] * step_count, None
    for activity in own:
        step = activity.work.place.step
        if step < 0:
            initialised_ns = max(initialised_ns or 0, activity.end_ns)
            continue
        ends[step] = max(ends[step], activity.end_ns)
        if activity.work.engine is Engine.SMS and (starts[step] < 0 or activity.start_ns < starts[step]):
            starts[step] = activity.start_ns
    begin_ns = min(one.start_ns for one in own)
    first_ns = begin_ns if initialised_ns is None else min(starts[0], initialised_ns)
    borders, before_ns = [first_ns], 0
    for step in range(1, step_count):
        before_ns = max(before_ns, ends[step - 1])
        borders.append(min(starts[step], before_ns))
    return (*borders, max(ends))
