"""Are host and GPU times of one clock? Real recordings were seen apart by -156, +325 and +823 ms."""

from __future__ import annotations

from typing import Final

from traces.columns import NULL
from traces.limits import Limit
from traces.timeline import Activities, Source

SOON: Final = Limit(
    50_000, "ns from launch to start", "some kernel of any recording finds an empty GPU: arrival is 4-13 us"
)


def clock_offset_ns(rows: Activities) -> int | None:
    """0 where host and GPU clocks agree, else about how far the GPU's is ahead; None without a launch.

    They agree where some work starts within 0 to 50 us of its launch call's start, or of its return: a first
    launch that loads its module takes milliseconds and its kernel still follows at once. Copies count too.
    """
    joined = rows.launch_ns != NULL
    if not (joined & (rows.source != Source.COPY)).any():
        return None
    delay = (rows.start_ns - rows.launch_ns)[joined]
    after_return = (rows.start_ns - rows.launch_end_ns)[joined]
    if any(((ns >= 0) & (ns <= SOON.value)).any() for ns in (delay, after_return)):
        return 0
    return int(delay.min())
