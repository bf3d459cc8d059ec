"""A faster dispatcher: moving data takes less time, waiting for peers does not."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from traces.columns import IntArray
from traces.intervals import covered_ns, union
from traces.limits import Limit
from traces.replay.changes.change import Draft, Recorded
from traces.replay.changes.exchanges import EP_KINDS, find_exchanges, of_kinds
from traces.replay.graph import Timing
from traces.replay.without import without_stretch

_TABLE: Final = "per a digest of arXiv 2603.07685, table 7"
LEAST: Final = Limit(
    744 / 827, "of the time before", f"combine, alltoall to HybridEP, EP64 on GB200: 827 to 744 us; {_TABLE}"
)
MOST: Final = Limit(
    4.4 / 9.2,
    "of the time before",
    f"dispatch and combine, alltoall to DeepEP, EP64 on H100: 8.7 to 9.2 ms down to 4.4 to 4.6; {_TABLE}",
)


def dispatcher_drafts(recorded: Recorded) -> Iterator[Draft]:
    """`faster_dispatcher`, where NCCL's all-to-all is the dispatcher: the published factors are from there.

    Pessimistic: of each kernel the part that the fastest of its like took shrinks by the smallest published
    factor. The other end: all of it by the largest, for one rank cannot tell waiting from moving, and compute
    is stretched for so much less time.
    """
    expert = of_kinds(recorded, EP_KINDS)
    names = (*recorded.subject.rank.columns.kernel_names, "")
    send = np.array(["SendRecv" in name for name in names], dtype=np.bool_)[recorded.rows.name]
    if not (expert & send).any():
        return
    moving_ns = _moving_ns(recorded)
    rows = recorded.rows
    beside_ns = covered_ns(rows.start_ns, rows.end_ns, union(rows.start_ns[expert], rows.end_ns[expert]))
    relieved_ns = np.where(recorded.subject.crowded(), beside_ns * (1 - MOST.value), 0).astype(np.int64)

    def low(timing: Timing) -> Timing:
        saved = ((1 - LEAST.value) * np.minimum(moving_ns, timing.duration_ns)).astype(np.int64)
        return replace(timing, duration_ns=timing.duration_ns - saved)

    def high(timing: Timing) -> Timing:
        left = (timing.duration_ns * MOST.value).astype(np.int64)
        faster = replace(timing, duration_ns=np.where(expert, left, timing.duration_ns))
        return without_stretch(faster, relieved_ns, recorded.subject.stretch_frac or 0.0)

    yield Draft("faster_dispatcher", {"communication": EP_KINDS}, low, high)


def _moving_ns(recorded: Recorded) -> IntArray:
    """Of each payload kernel the length of the fastest of its like, shape (n,), 0 for all else.

    Alike are kernels of one name, kind, phase, number of blocks and place in their exchange.
    """
    rows, blocks = recorded.rows, recorded.subject.rank.blocks
    length = rows.end_ns - rows.start_ns
    like: dict[tuple[int, ...], list[int]] = {}
    for exchange in find_exchanges(recorded):
        for part, work in enumerate(exchange.works):
            key = (int(rows.name[work]), int(rows.key[work]), exchange.backward, int(blocks[work]), part)
            like.setdefault(key, []).append(work)
    moving = np.zeros(len(rows), dtype=np.int64)
    for works in like.values():
        moving[works] = length[works].min()
    return moving
