"""The most that can be computed a second time, where it could not be told what is."""

from typing import Final

import numpy as np

from traces.columns import NULL, BoolArray, IntArray, distinct
from traces.intervals import Spans, intersect, union
from traces.limits import Limit
from traces.names.kernels import classify_kernel
from traces.names.kinds import compute_classes
from traces.resolve.neighbours import launch_order
from traces.timeline import Bucket, RankTimeline, Source
from traces.training import Roles

UNKNOWN: Final = Limit(
    0.10, "fraction of the time of compute kernels", "ours: less of unknown class is no wall, whatever it is"
)
FAMILIES: Final = ("attention", "norm", "activation")
"""Operations with kernels of their own both ways. Matrix products have two in backward for one in forward."""


def recompute_at_most_ns(rank: RankTimeline, roles: Roles, inside: BoolArray, windows: Spans) -> int | None:
    """Wall time in the windows that recompute can take at most; None where no witness bounds it.

    Nothing where nothing runs backward: hardly any kernel is of unknown class, or one thread launches all of
    a PyTorch program, whose backward has threads of its own. Else the time of kernels that are forward by
    name and lie in backward, none where each family runs forward once for each time it runs backward.
    `inside`, shape (n,): the activities that start in the windows.
    """
    if not roles.backward.any():
        return 0 if _few_unknown(rank, inside) or _one_thread(rank, inside) else None
    if _once_each(rank, inside):
        return 0
    rows = rank.activities
    again = np.flatnonzero(inside & _forward(rank) & _in_backward(rank, roles))
    return intersect(union(rows.start_ns[again], rows.end_ns[again]), windows).total_ns


def _few_unknown(rank: RankTimeline, inside: BoolArray) -> bool:
    rows = rank.activities
    compute = inside & (rows.bucket == Bucket.COMPUTE)
    length_ns = rows.end_ns - rows.start_ns
    unknown = compute & (rows.key == compute_classes().index("other"))
    return int(length_ns[unknown].sum()) < UNKNOWN.value * int(length_ns[compute].sum())


def _one_thread(rank: RankTimeline, inside: BoolArray) -> bool:
    rows = rank.activities
    threads = distinct(rows.launch_thread[inside & (rows.source == Source.KERNEL)])
    of_pytorch = any("at::native" in name for name in rank.columns.kernel_names)
    return of_pytorch and len(threads) == 1 and threads[0] != NULL


def _forward(rank: RankTimeline) -> BoolArray:
    return _mask(rank, [classify_kernel(name).phase == "fwd" for name in rank.columns.kernel_names])


def _mask(rank: RankTimeline, of_name: list[bool]) -> BoolArray:
    """The kernels whose name is one of these, shape (n,)."""
    rows = rank.activities
    chosen: BoolArray = np.array([*of_name, False], dtype=np.bool_)[rows.name]
    chosen &= rows.source == Source.KERNEL
    return chosen


def _once_each(rank: RankTimeline, inside: BoolArray) -> bool:
    """Whether a family runs both ways, and each that does no more often forward than backward."""
    classes = [classify_kernel(name) for name in rank.columns.kernel_names]
    both = []
    for family in FAMILIES:
        forward, backward = (
            int((inside & _mask(rank, [(one.class_, one.phase) == (family, way) for one in classes])).sum())
            for way in ("fwd", "bwd")
        )
        if forward and backward:
            both.append(forward <= backward)
    return bool(both) and all(both)


def _in_backward(rank: RankTimeline, roles: Roles) -> BoolArray:
    """What autograd's threads launched; without any, what is launched between backward kernels of a step."""
    if roles.autograd.any():
        return roles.autograd
    order = launch_order(rank.activities)
    backward, optimizer = roles.backward[order], roles.optimizer[order]
    step = np.cumsum(optimizer & ~np.append(False, optimizer[:-1]))
    place = np.arange(len(order))
    within = np.zeros(len(order), dtype=np.bool_)
    for one in distinct(step[backward]).tolist():
        theirs: IntArray = place[backward & (step == one)]
        within[theirs[0] : theirs[-1] + 1] = True
    result = np.zeros(len(order), dtype=np.bool_)
    result[order] = within
    return result
