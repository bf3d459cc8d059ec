"""Of a comparison: how runs of one thing vary, and all that was recorded, whatever is a step."""

from typing import Literal

from traces.sections.section import Count, Ns, Section
from traces.texts import FileName


class BaseRun(Section):
    """One of several recordings of base: how many steps or logged iterations, and their mean."""

    name: FileName
    count: Count
    mean_ns: Ns


class BetweenRuns(Section):
    """Recordings of one thing as base, that of the page first, and how they vary from run to run.

    `std_ns`: the standard deviation of their means. `half_ns`: half of the interval that this alone
    makes.
    """

    runs: tuple[BaseRun, ...]
    std_ns: Ns
    half_ns: Ns


WholePart = Literal["steps", "warm_up", "hiccups", "before", "between", "after"]


class WholeRow(Section):
    """A part of all that was recorded; `base_count` and `new_count`: of its steps, null where it
    has none.
    """

    part: WholePart
    base_ns: Ns
    new_ns: Ns
    delta_ns: int
    base_count: Count | None
    new_count: Count | None


class Whole(Section):
    """All that was recorded of both sides, not per step; `rows` add up to it on each side.

    `steps` are whole ones, and of hiccups and warm-up what a usual step takes; what they take
    beyond is theirs. `before`, `between` and `after`: in no step, those left out for other reasons
    included.
    """

    base_ns: Ns
    new_ns: Ns
    delta_ns: int
    rows: tuple[WholeRow, ...]
