"""Time without compute in pieces: each with its reason, the work waited for and the kernel that ended it."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.account.pieces import Pieces
from traces.columns import BoolArray, IntArray
from traces.timeline import KEYS, Activities, Bucket

CAUSES: Final = (
    "launch",
    "sync",
    "token_count_sync",
    "allocator",
    "lazy_init",
    "profiler",
    "gc",
    "data",
    "checkpoint",
    "evaluation",
    "logging",
    "cpu_optimizer",
    "os_wait",
    "python",
)
"""Causes of a late launch. `token_count_sync`: the per-layer read of token counts in dropless routing.

`cpu_optimizer`: the CPU steps an optimizer between its gradients' copies and those of its weights.
"""
REASONS: Final = (
    *(f"launch_starved.{cause}" for cause in CAUSES),
    *(f"blocking.{kind}" for bucket in (Bucket.COMM, Bucket.COPY) for kind in KEYS[bucket]),
    "launch_latency.arrival",
    "launch_latency.kernel_gap",
    "graph_opaque",
    "dependency_stalled",
    "trailing",
)
"""Every reason that time without compute can have, in the words of the document; causes come first."""
REASON: Final = {name: code for code, name in enumerate(REASONS)}
DECIDED: Final = ("recorded", "inferred", "none")
"""By what a reason was decided."""
RECORDED, INFERRED, UNDECIDED = range(3)
_COMM, _COPY = len(CAUSES), len(CAUSES) + len(KEYS[Bucket.COMM])


@dataclass(frozen=True, slots=True)
class AbsentPieces:
    """Disjoint pieces, shape (n,), that hold all time without compute in the windows; they may reach beyond.

    `reason` indexes `REASONS`. `work` is the place in `Activities` of the work that was waited for, `kernel`
    that of the kernel judged; -1 where there is none.
    """

    start_ns: IntArray
    end_ns: IntArray
    reason: IntArray
    work: IntArray
    kernel: IntArray


@dataclass(frozen=True, slots=True)
class Judged(Pieces):
    """Pieces with what is told of them in `AbsentPieces`; `decided` indexes `DECIDED`."""

    reason: IntArray
    work: IntArray
    decided: IntArray


def judged(
    pieces: Pieces, reason: IntArray | int, decided: IntArray | int = UNDECIDED, work: IntArray | int = -1
) -> Judged:
    """Pieces of some reasons, or all of one."""
    told = (np.broadcast_to(one, len(pieces)) for one in (reason, work, decided))
    return Judged(pieces.start_ns, pieces.end_ns, pieces.gap, pieces.kernel, *told)


def waited_for(
    rows: Activities, pieces: Pieces, work: IntArray, inferred: BoolArray | bool = False
) -> Judged:
    """Pieces in which awaited work without compute ran."""
    base = np.where(rows.bucket[work] == Bucket.COMM, _COMM, _COPY)
    return judged(pieces, base + rows.key[work], np.where(inferred, INFERRED, RECORDED), work)
