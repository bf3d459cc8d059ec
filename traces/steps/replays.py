"""Steps from equal graphs recorded whole: n equal replays are n steps whose content is not seen."""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.columns import NULL
from traces.limits import Limit
from traces.steps.borders import HostOrder, found_between
from traces.steps.found import Found
from traces.timeline import RankTimeline, Source

EQUAL: Final = Limit(
    0.05, "fraction of the median replay", "ours, as for slow steps: replays of one graph repeat its work"
)
MOST: Final = Limit(
    0.5, "fraction of the GPU's work", "ours: a step holds its work; a graph of a part of it does not"
)


def replay_steps(rank: RankTimeline, order: HostOrder) -> Found | None:
    """Equal replays that make up most of the work, each with what was launched up to the next; else None."""
    rows = rank.activities
    length_ns = rows.end_ns - rows.start_ns
    replays = np.flatnonzero((rows.source == Source.REPLAY) & (rows.launch_ns != NULL))
    if len(replays) < 2 or int(length_ns[replays].sum()) < MOST.value * int(length_ns.sum()):
        return None
    middle = float(np.median(length_ns[replays]))
    if (np.abs(length_ns[replays] - middle) > EQUAL.value * middle).any():
        return None
    start_ns = np.sort(rows.launch_ns[replays])
    end_ns = np.append(start_ns[1:], order.launch_ns[-1] + 1)
    return found_between(order, start_ns, end_ns, "equal CUDA graph replays, recorded whole")
