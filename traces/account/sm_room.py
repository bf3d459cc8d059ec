"""Producers that held the SMs: compute that begins as compute of another stream leaves room for it.

Delayed weight gradients and shared experts run on streams of their own, and two kernels that each fill the
GPU do not run at once, whatever their streams: the later one starts as the earlier ends. No call and no event
says so. Where nothing known explains why a kernel had to wait, and it begins within a moment of such an end,
the kernel that ended is taken for its producer: marked as inferred.

One launched later may come first because the other waited for something else, so in a replay it holds the
other up only where it is launched by the time that one is ready. (As a producer in any case it made the host
the limit: 7 such edges took the elastic figure of a real recording from 0.37 to 0.29.) Nor is a helper's
kernel a producer: it keeps the pace of its own thread, and lies elsewhere in a faster run. Blocks are counted
one an SM: whether two share it depends on how each carves out its shared memory, which no trace tells.
"""

from typing import Final

import numpy as np

from traces.account.tight import last_to_end, tight_ns
from traces.columns import PLACE, IntArray
from traces.launchers import helper_work
from traces.limits import Limit
from traces.timeline import Bucket, RankTimeline

FULL: Final = Limit(
    160, "blocks", "ours: as many as the largest GPU has SMs, where a trace does not record them"
)


def sm_room_producers(rank: RankTimeline, ended_ns: IntArray) -> tuple[IntArray, IntArray]:
    """(consumer, producer) pairs; `ended_ns`, shape (n,): when all known producers of each had ended."""
    rows, gpu = rank.activities, rank.gpu
    sm_count = gpu.sm_count if gpu and gpu.sm_count else int(FULL.value)
    compute = (rows.bucket == Bucket.COMPUTE) & ~helper_work(rows)
    taken = np.where(compute, np.clip(rank.blocks, 0, sm_count), -1).astype(PLACE)
    return last_to_end(rows, ended_ns, compute, rows.start_ns, taken, sm_count, tight_ns(rank.columns))
