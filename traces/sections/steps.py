"""Which stretches of a recording count as steps: `ranks[].steps`."""

from typing import Literal

from traces.missing import OrMissing
from traces.sections.section import Count, Ns, Section
from traces.texts import Recorded, Said


class Step(Section):
    """One used step, counted from 0 as recorded."""

    index: Count
    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns


class Dropped(Step):
    """One recorded step that is not used, and why."""

    reason: Said


StepSource = Literal["user", "nvtx", "optimizer", "graph", "period", "none"]
Unit = Literal["step", "block", "replay", "window"]
"""A block repeats with nothing that shows a step; a replay is of a graph whose kernels are not
recorded."""


class Outside(Section):
    """Time of the recording in none of its steps and hiccups; and the range in which the host is
    for most of it that is before the first, empty where there is none.
    """

    before_ns: Ns
    between_ns: Ns
    after_ns: Ns
    preparing: Recorded = ""
    preparing_ns: Ns = 0

    @property
    def total_ns(self) -> int:
        return self.before_ns + self.between_ns + self.after_ns


class Steps(Section):
    """How steps were found. `used` and `dropped` are all recorded ones; `slow`: hiccups, left out.

    `replayed`: used ones. `warm_up`: of those left out the first, which took longer than all
    others. `whole`: the program begins and ends in the recording.
    """

    source: StepSource
    what: Said
    used: tuple[Step, ...]
    dropped: tuple[Dropped, ...]
    median_ns: OrMissing[Ns]
    slow: tuple[Count, ...]
    replayed: tuple[Count, ...]
    replayed_ns: Ns
    disagreement: Said
    min_ns: OrMissing[Ns]
    max_ns: OrMissing[Ns]
    mean_ns: OrMissing[Ns]
    unit: Unit = "step"
    hiccups_ns: Ns = 0
    outside_ns: Outside | None = None
    alternating: bool = False
    warm_up: tuple[Count, ...] = ()
    whole: bool = False

    @property
    def found(self) -> bool:
        """Whether there are steps to count by; without them the window is one."""
        return bool(self.used)
