"""What is replayed of a recording: of many steps some, and where there are none, slices of a long
window.
"""

from typing import Final

import numpy as np

from traces.arrays import ints, listed, order_of, row_by_row, summed
from traces.frozen import frozen
from traces.intervals import Spans, spans
from traces.limits import Limit
from traces.steps.found import Step, Steps, borders_ns

STEPS: Final = Limit(
    32,
    "steps",
    "by counting: of steps in order of length one of each thirty-second, so that a mean is off by "
    "less than a thirty-second of what lies between shortest and longest",
)
WHOLE: Final = Limit(
    1_500_000,
    "activities",
    "ours: a replay of so many takes half a gigabyte; without steps, more are sliced",
)


@frozen
class Sample:
    """Some used steps in order of time: all where there are few, none where there are no steps.

    `pairs_ns`: their borders; where there are no steps, those of the windows, or of slices of a
    long one. `stand_for_ns`: how long the steps last that each stands for, itself among them;
    together as long as all. `stretches`: what is to be replayed: each step after the one before it,
    in which the host may get further ahead than it was; each slice after as much time before it.
    """

    steps: tuple[Step, ...]
    pairs_ns: tuple[tuple[int, int], ...]
    stand_for_ns: tuple[int, ...]
    stretches: Spans

    @property
    def windows(self) -> Spans:
        return spans(*self.pairs_ns)

    @property
    def apart_ns(self) -> list[int]:
        return ((self.stretches.end_ns[:-1] + self.stretches.start_ns[1:]) // 2).tolist()


def sample_of(steps: Steps, activities: int = 0) -> Sample:
    """The steps to replay: the middle of each group of steps of like length.

    The groups are equally large, so the middle ones hold the median, and lengths are spread as
    those of all. Where there are no steps, and more `activities` than are replayed whole, slices of
    the window.
    """
    used, before = steps.used, {step.end_ns: step.start_ns for step in steps.recorded}
    if not used and activities > WHOLE.value:
        return _slices(steps.windows, WHOLE.value / activities)
    begin_ns, end_ns = steps.windows.start_ns, steps.windows.end_ns
    if used:
        begin_ns, end_ns = steps.borders_ns
    lengths_ns = end_ns - begin_ns
    if len(used) <= STEPS.value:
        first_ns = int(begin_ns[0])
        whole = spans((before.get(first_ns, first_ns), int(end_ns[-1])))
        return Sample(used, tuple(row_by_row(begin_ns, end_ns)), listed(lengths_ns), whole)
    stand_for_ns: dict[int, int] = {}
    for group in np.array_split(order_of(lengths_ns), STEPS.whole):
        stand_for_ns[int(group[len(group) // 2])] = summed(lengths_ns[group])
    in_time = dict(sorted(stand_for_ns.items()))
    middle = [used[place] for place in in_time]
    pairs = borders_ns(middle)
    return Sample(
        tuple(middle),
        tuple(pairs),
        tuple(in_time.values()),
        spans(*((before.get(start, start), end) for start, end in pairs)),
    )


def _slices(windows: Spans, frac: float) -> Sample:
    """The middle of each of equal parts of a window; slices and what precedes them are a fraction
    of it.
    """
    ((first_ns, last_ns),) = windows.pairs()
    borders = ints(np.linspace(first_ns, last_ns, STEPS.whole + 1))
    parts_ns = np.diff(borders)
    middle_ns, half_ns = borders[:-1] + parts_ns // 2, ints(parts_ns * frac / 2)
    return Sample(
        (),
        tuple(row_by_row(middle_ns, middle_ns + half_ns)),
        listed(parts_ns),
        Spans(middle_ns - half_ns, middle_ns + half_ns),
    )
