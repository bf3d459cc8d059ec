"""CUDA graphs recorded whole: equal replays that make up most of a rank's work are passes of a step each."""

from typing import Final

import numpy as np

from traces.columns import NULL, IntArray
from traces.limits import Limit
from traces.timeline import Activities, Source

EQUAL: Final = Limit(
    0.05, "fraction of the median replay", "ours, as for slow steps: replays of one graph repeat its work"
)
MOST: Final = Limit(
    0.5, "fraction of the GPU's work", "ours: a step holds its work; a graph of a part of it does not"
)


def equal_replays(rows: Activities) -> IntArray:
    """Places of at least two equal replays, recorded whole, that make up most of the work; else none."""
    length_ns = rows.end_ns - rows.start_ns
    replays = np.flatnonzero((rows.source == Source.REPLAY) & (rows.launch_ns != NULL))
    few = len(replays) < 2 or int(length_ns[replays].sum()) < MOST.value * int(length_ns.sum())
    middle = 0.0 if few else float(np.median(length_ns[replays]))
    if few or (np.abs(length_ns[replays] - middle) > EQUAL.value * middle).any():
        return replays[:0]
    return replays
