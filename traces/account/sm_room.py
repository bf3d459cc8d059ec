"""Producers that held the SMs: compute that begins as compute of another stream leaves room for it.

Delayed weight gradients and shared experts run on streams of their own, and two kernels that each fill the
GPU do not run at once, whatever their streams: the later one starts as the earlier ends. No call and no event
says so. Where nothing known explains why a kernel had to wait, and it begins within a moment of such an end,
the kernel that ended is taken for its producer: marked as inferred.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.account.tight import last_to_end
from traces.columns import BoolArray, IntArray
from traces.gpu_samples import FloatArray
from traces.limits import Limit
from traces.timeline import Bucket, RankTimeline

FULL: Final = Limit(
    160, "blocks", "ours: as many as the largest GPU has SMs, for traces that do not tell how many there are"
)


def sm_room_producers(rank: RankTimeline, ended_ns: IntArray) -> tuple[IntArray, IntArray]:
    """(consumer, producer) pairs; `ended_ns`, shape (n,): when all known producers of each had ended."""
    rows, fill = rank.activities, _fill(rank)
    compute = rows.bucket == Bucket.COMPUTE

    def held(place: int, others: IntArray) -> BoolArray:
        began = rows.start_ns[others] < rows.start_ns[place]
        result: BoolArray = compute[others] & began & (fill[others] + fill[place] > 1)
        return result

    return last_to_end(rows, ended_ns, compute, held)


def _fill(rank: RankTimeline) -> FloatArray:
    """The part of the SMs that each kernel's blocks take at one each, shape (n,); 0 where not known."""
    blocks, gpu = rank.blocks, rank.gpu
    sm_count = gpu.sm_count if gpu and gpu.sm_count else FULL.value
    return np.clip(blocks / sm_count, 0, 1)
