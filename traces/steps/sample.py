"""What is replayed of a recording: of many steps some, and where there are none, slices of a long
window.
"""

from typing import Final

import numpy as np

from traces.arrays import ints, listed, row_by_row
from traces.frozen import frozen
from traces.intervals import Spans, spans
from traces.limits import Limit
from traces.steps.found import Step, Steps

STEPS: Final = Limit(
    32,
    "steps",
    "ours: costs of simulated runs of 100 to 300 steps were within 0.2 points of a replay of all",
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
        ends, starts = self.stretches.end_ns[:-1].tolist(), self.stretches.start_ns[1:].tolist()
        return [(end + start) // 2 for end, start in zip(ends, starts, strict=True)]

    @property
    def weights(self) -> list[float]:
        """How many steps each stands for, by time; 1 as a mean."""
        each = [
            ns / (end - start)
            for ns, (start, end) in zip(self.stand_for_ns, self.pairs_ns, strict=True)
        ]
        return [one * len(each) / sum(each) for one in each]


def sample_of(steps: Steps, activities: int = 0) -> Sample:
    """The steps to replay: the middle of each group of steps of like length.

    The groups are equally large, so the middle ones hold the median, and lengths are spread as
    those of all. Where there are no steps, and more `activities` than are replayed whole, slices of
    the window.
    """
    used, before = steps.used, {one.end_ns: one.start_ns for one in steps.recorded}
    if not used and activities > WHOLE.value:
        return _slices(steps.windows, WHOLE.value / activities)
    if len(used) <= STEPS.value:
        pairs = [one.within_ns for one in used] or [(a, b) for a, b in steps.windows.pairs()]
        whole = spans((before.get(pairs[0][0], pairs[0][0]), pairs[-1][1]))
        return Sample(used, tuple(pairs), tuple(end - start for start, end in pairs), whole)
    in_order = sorted(used, key=lambda step: (step.length_ns, step.index))
    parts = np.array_split(np.arange(len(in_order)), int(STEPS.value))
    groups = [[in_order[place] for place in places] for places in parts]
    found = sorted(
        ((group[len(group) // 2], group) for group in groups), key=lambda one: one[0].index
    )
    return Sample(
        tuple(step for step, _ in found),
        tuple(step.within_ns for step, _ in found),
        tuple(sum(one.length_ns for one in group) for _, group in found),
        spans(*((before.get(step.start_ns, step.start_ns), step.end_ns) for step, _ in found)),
    )


def _slices(windows: Spans, frac: float) -> Sample:
    """The middle of each of equal parts of a window; slices and what precedes them are a fraction
    of it.
    """
    borders = ints(np.linspace(windows.start_ns[0], windows.end_ns[-1], int(STEPS.value) + 1))
    parts_ns = np.diff(borders)
    middle_ns, half_ns = borders[:-1] + parts_ns // 2, ints(parts_ns * frac / 2)
    return Sample(
        (),
        tuple(row_by_row(middle_ns, middle_ns + half_ns)),
        listed(parts_ns),
        Spans(middle_ns - half_ns, middle_ns + half_ns),
    )
