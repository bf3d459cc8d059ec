"""Expert all-to-alls of a recording: payload kernels that belong together."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.names.kinds import COMM_KINDS
from traces.replay.changes.change import Recorded
from traces.timeline import Activities, Bucket
from traces.training import roles_of

EP_KINDS: Final = ("ep_dispatch", "ep_combine", "ep_a2a", "ep_control")
HEAVY: Final = ("gemm", "attention")
"""Classes that only run in the modules around an exchange, never in it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One dispatch or combine: places of its payload kernels in order of start; `backward`: autograd's."""

    works: list[int]
    backward: bool


def of_kinds(recorded: Recorded, kinds: tuple[str, ...]) -> BoolArray:
    """Mask of communication of some kinds, shape (n,)."""
    rows = recorded.rows
    result: BoolArray = (rows.bucket == Bucket.COMM) & np.isin(
        rows.key, [COMM_KINDS.index(kind) for kind in kinds]
    )
    return result


def find_exchanges(recorded: Recorded) -> list[Exchange]:
    """All exchanges in order of start: payload with a GEMM or attention between belongs to two of them."""
    payload = np.flatnonzero(of_kinds(recorded, EP_KINDS[:3]))
    heavy = np.flatnonzero([one.class_ in HEAVY for one in recorded.classes])
    before = np.searchsorted(heavy, payload)
    autograd = roles_of(recorded.subject.rank).autograd
    found: list[Exchange] = []
    last = -1
    for work, count in zip(payload.tolist(), before.tolist(), strict=True):
        backward = bool(autograd[work])
        if count != last or found[-1].backward != backward:
            found.append(Exchange([], backward))
        found[-1].works.append(work)
        last = count
    return found


def autograd_compute(recorded: Recorded) -> tuple[BoolArray, BoolArray]:
    """Compute that autograd's threads launched, and that others did; masks of shape (n,)."""
    autograd = roles_of(recorded.subject.rank).autograd
    compute = recorded.rows.bucket == Bucket.COMPUTE
    return compute & autograd, compute & ~autograd


def running_ns(
    rows: Activities, length: IntArray, which: BoolArray, begin: IntArray, end: IntArray
) -> IntArray:
    """How much of some work, `length` ns each, starts in each of some stretches; shape of the stretches."""
    start = rows.start_ns[which]
    total = np.concatenate(([0], np.cumsum(length[which])))
    first, last = np.searchsorted(start, begin), np.searchsorted(start, np.maximum(begin, end))
    result: IntArray = total[last] - total[first]
    return result
