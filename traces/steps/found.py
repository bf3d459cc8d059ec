"""The result of looking for steps, whichever way found them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import compress
from statistics import median

import numpy as np

from traces.arrays import BoolArray, IntArray, columns_of, last_at
from traces.columns import NULL
from traces.cures import cure
from traces.frozen import frozen
from traces.intervals import Spans, spans
from traces.missing import Missing, gap
from traces.sections.steps import Outside, StepSource, Unit


@frozen
class Step:
    """One recorded step of one rank, on the GPU's time. `dropped` says why it is left out, None if
    used.

    `is_warm_up`: left out as the first one, which takes longer than all others; `initialises`:
    calls that load modules or allocate are why. `has_more`: it holds a unit that the others do not:
    more kernels, a save.
    """

    index: int
    start_ns: int
    end_ns: int
    dropped: str | None = None
    is_warm_up: bool = False
    initialises: bool = False
    has_more: bool = False

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def within_ns(self) -> tuple[int, int]:
        return self.start_ns, self.end_ns


@frozen
class Found:
    """What one way took for steps, in order, before the rules all ways share.

    Step k was launched in [host_start_ns[k], host_end_ns[k]), arrays of shape (n,); `kernel_counts`
    says how many kernels that were. `what` says in words what was taken for a step.
    """

    what: str
    host_start_ns: IntArray
    host_end_ns: IntArray
    steps: list[Step]
    kernel_counts: list[int]

    def take(self, which: BoolArray) -> Found:
        steps = enumerate(compress(self.steps, which))
        return Found(
            self.what,
            self.host_start_ns[which],
            self.host_end_ns[which],
            [replace(step, index=index) for index, step in steps],
            [*compress(self.kernel_counts, which)],
        )


@frozen
class Steps:
    """Steps of one rank, all recorded ones in order, and the window they make.

    `windows` is the union of the used steps, or the one window where there are none. `what` says in
    words what was taken for a step, and `unit` what it is. `slow` are the indices of hiccups:
    left out of `used`, a finding of their own. `extent_ns`: from the first that was recorded of
    the rank to the end of its GPU work; `preparing`: the range in which the host is for most of the
    time before the first, and how long; `starting_ns`: how long calls take up to the first
    kernel, None where the program may have begun before the recording; `whole`: it ends there
    too. `disagreement` names the
    ways of finding steps that give other lengths, None where none does. `training` says whether
    the recording is of training, None where it cannot be told; `training_evidence` says by
    what. That judges the whole recording of the rank, not the window.
    """

    source: StepSource
    what: str
    recorded: tuple[Step, ...]
    windows: Spans
    unit: Unit = "window"
    slow: tuple[int, ...] = ()
    extent_ns: tuple[int, int] = (0, 0)
    preparing: tuple[str, int] = ("", 0)
    starting_ns: int | None = None
    whole: bool = False
    disagreement: str | None = None
    training: bool | None = None
    training_evidence: str = "not looked for"

    @property
    def used(self) -> tuple[Step, ...]:
        return tuple(used_of(self.recorded))

    @property
    def dropped(self) -> tuple[Step, ...]:
        return tuple(step for step in self.recorded if step.dropped is not None)

    @property
    def warm_up(self) -> tuple[int, ...]:
        return tuple(step.index for step in self.recorded if step.is_warm_up)

    def with_warm_up(self) -> Steps:
        """These steps with the warm-up step among the used ones."""
        recorded = [*self.recorded]
        for place, step in enumerate(recorded):
            if step.is_warm_up:
                recorded[place] = replace(step, dropped=None)
        return self.with_recorded(recorded)

    def with_recorded(self, recorded: list[Step]) -> Steps:
        """These steps judged otherwise; the windows follow."""
        windows = from_steps(self.source, self.what, tuple(recorded)).windows
        return replace(self, recorded=tuple(recorded), windows=windows)

    @property
    def median_ns(self) -> int | None:
        lengths = self.lengths_ns()
        if lengths:
            return median_ns(lengths)
        return None

    @property
    def hiccups_ns(self) -> int:
        """What the hiccups took beyond the median step, together."""
        if not self.slow:
            return 0
        slow, usual = frozenset(self.slow), median_ns(self.lengths_ns())
        return sum(step.length_ns - usual for step in self.recorded if step.index in slow)

    @property
    def outside(self) -> Outside | None:
        """Time of the extent that lies in no used step and no hiccup, or not in the window of all
        GPU work; None of a window that was given.
        """
        slow, (first_ns, last_ns) = frozenset(self.slow), self.extent_ns
        inside = [step for step in self.recorded if step.dropped is None or step.index in slow]
        if self.source == "none":
            inside = [Step(0, int(self.windows.start_ns[0]), last_ns)]
        if not inside:
            return None
        begin_ns, end_ns = inside[0].start_ns, inside[-1].end_ns
        between_ns = end_ns - begin_ns - sum(lengths_ns(inside))
        after_ns = max(0, last_ns - end_ns)
        return Outside(max(0, begin_ns - first_ns), between_ns, after_ns, *self.preparing)

    @property
    def borders_ns(self) -> tuple[IntArray, IntArray]:
        """Starts and ends of the used steps, shape (k,) each."""
        begin_ns, end_ns = columns_of(borders_ns(self.used), 2)
        return begin_ns, end_ns

    def used_at(self, times_ns: IntArray) -> IntArray:
        """The place in `used` of the step that each time lies in, shape (n,), -1 where in none."""
        begin_ns, end_ns = self.borders_ns
        place = last_at(begin_ns, times_ns)
        return np.where(times_ns < np.append(end_ns, NULL)[place], place, -1)

    def lengths_ns(self) -> list[int]:
        return lengths_ns(self.used)


def used_of(steps: Iterable[Step]) -> list[Step]:
    """Those that are not left out."""
    return [step for step in steps if step.dropped is None]


def lengths_ns(steps: Iterable[Step]) -> list[int]:
    """How long each lasts."""
    return [step.length_ns for step in steps]


def borders_ns(steps: Iterable[Step]) -> list[tuple[int, int]]:
    """Start and end of each."""
    return [step.within_ns for step in steps]


def from_steps(source: StepSource, what: str, recorded: tuple[Step, ...]) -> Steps:
    """Steps whose window is the union of the used ones; a step without GPU time is never used."""
    recorded = tuple(
        drop(step, "no GPU work") if step.length_ns <= 0 else step for step in recorded
    )
    windows = spans(*borders_ns(used_of(recorded)))
    return Steps(source, what, recorded, windows, "replay" if source == "graph" else "step")


def one_window(source: StepSource, what: str, start_ns: int, end_ns: int) -> Steps:
    """No steps: one window, without per-step figures."""
    return Steps(source, what, (), spans((start_ns, end_ns)))


def drop(step: Step, reason: str) -> Step:
    """The step, left out for a reason; a first reason stays."""
    if step.dropped:
        return step
    return replace(step, dropped=reason)


def median_ns(lengths_ns: list[int]) -> int:
    """Median in whole nanoseconds (a half is rounded down)."""
    return int(median(lengths_ns))


def no_steps(kind: str) -> Missing:
    """Why figures by step are missing where there are none. `kind`: of the trace."""
    return gap(
        "no steps: neither step ranges, optimizer nor a period were found, so one window",
        cure("steps", kind),
    )
