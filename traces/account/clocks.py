"""Are host and GPU times of one clock? Real recordings were seen apart by -156, +325 and +823 ms."""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.columns import NULL, distinct
from traces.intervals import union
from traces.limits import Limit
from traces.timeline import Activities, Source

SOON: Final = Limit(
    50_000, "ns from launch to start", "some kernel of any recording finds an empty GPU: arrival is 4-13 us"
)

HELD: Final = Limit(
    10, "launch calls held by a full queue", "ours: so many do not end together with GPU work by chance"
)
LONG: Final = Limit(5, "times the usual launch call", "ours: a call that waits for room lasts far longer")
ROOM: Final = Limit(20_000, "ns", "ours: a call that waited for room returns within microseconds of it")
MOST: Final = Limit(0.8, "fraction of the held calls", "ours: kernels of 100 us would give a fifth by chance")
CHANCE: Final = Limit(
    0.5,
    "fraction of the time that lies so soon after some end",
    "ours: where more does, chance would agree too",
)


def clock_offset_ns(rows: Activities) -> int | None:
    """0 where host and GPU clocks agree, else about how far the GPU's is ahead; None without a launch.

    They agree where some work starts within 0 to 50 us of its launch call's start, or of its return: a first
    launch that loads its module takes milliseconds and its kernel still follows at once. Copies count too. A
    capture of a GPU with a full queue has none such; there the calls held by the queue return as work ends.
    """
    joined = rows.launch_ns != NULL
    if not (joined & (rows.source != Source.COPY)).any():
        return None
    delay = (rows.start_ns - rows.launch_ns)[joined]
    after_return = (rows.start_ns - rows.launch_end_ns)[joined]
    if any(((ns >= 0) & (ns <= SOON.value)).any() for ns in (delay, after_return)):
        return 0
    if delay.min() >= 0 and _held_calls_return_with_work(rows.take(joined)):
        return 0
    return int(delay.min())


def _held_calls_return_with_work(rows: Activities) -> bool:
    """Whether long launch calls return just after some work has ended, nearly all of them."""
    length_ns = rows.launch_end_ns - rows.launch_ns
    returns_ns = distinct(rows.launch_end_ns[length_ns > LONG.value * np.median(length_ns)])
    ends_ns = np.sort(rows.end_ns)
    place = np.searchsorted(ends_ns, returns_ns, side="right") - 1
    near = union(ends_ns, ends_ns + int(ROOM.value)).total_ns
    if near > CHANCE.value * max(1, int(ends_ns[-1] - ends_ns[0])):
        return False
    since_ns = (returns_ns - ends_ns[np.maximum(place, 0)])[place >= 0]
    held = since_ns <= ROOM.value
    return int(held.sum()) >= HELD.value and held.sum() >= MOST.value * len(returns_ns)
