"""The result of looking for steps, whichever way found them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from traces.intervals import Spans, spans

StepSource = Literal["user", "nvtx", "optimizer", "period", "none"]


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded step of one rank, on the GPU's time. `dropped` says why it is left out, None if used."""

    index: int
    start_ns: int
    end_ns: int
    dropped: str | None = None

    @property
    def length_ns(self) -> int:
        """Its wall time."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of one rank, all recorded ones in order, and the window they make.

    `windows` is the union of the used steps, or the one window where there are none. `what` says in words
    what was taken for a step.
    """

    source: StepSource
    what: str
    recorded: tuple[Step, ...]
    windows: Spans

    @property
    def used(self) -> tuple[Step, ...]:
        """Steps that count."""
        return tuple(step for step in self.recorded if step.dropped is None)

    @property
    def dropped(self) -> tuple[Step, ...]:
        """Steps left out, each with its reason."""
        return tuple(step for step in self.recorded if step.dropped is not None)

    def lengths_ns(self) -> list[int]:
        """Wall times of the used steps."""
        return [step.length_ns for step in self.used]


def from_steps(source: StepSource, what: str, recorded: tuple[Step, ...]) -> Steps:
    """Steps whose window is the union of the used ones."""
    used = [(step.start_ns, step.end_ns) for step in recorded if step.dropped is None]
    return Steps(source, what, recorded, spans(*used))


def one_window(source: StepSource, what: str, start_ns: int, end_ns: int) -> Steps:
    """No steps: one window, without per-step figures."""
    return Steps(source, what, (), spans((start_ns, end_ns)))


def drop(step: Step, reason: str) -> Step:
    """The step, left out for a reason; a first reason stays."""
    return step if step.dropped else replace(step, dropped=reason)


def median_ns(lengths_ns: list[int]) -> int:
    """Median in whole nanoseconds (a half is rounded down)."""
    return int(median(lengths_ns))
