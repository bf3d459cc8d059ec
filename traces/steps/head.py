"""A capture that begins with a few kernels of initialisation and then a whole step: the step is kept."""

from typing import Final

import numpy as np

from traces.account.inferred import signature
from traces.columns import IntArray
from traces.groups import group_of
from traces.limits import Limit
from traces.steps.borders import HostOrder, found_between
from traces.steps.found import Found
from traces.steps.rules import PARTIAL
from traces.timeline import Activities, Source

ALIKE_START: Final = Limit(
    16, "kernels", "ours: where a head goes on for so long as the next step begins, the step begins there"
)


def without_initialisation(found: Found, order: HostOrder, rows: Activities) -> Found:
    """The stretches with the first one, the head, cut at the launch before its last kernels that are a step.

    Its last kernels are a step where they begin as the next step does, and hold 95 % of its kernels. Nothing
    changes where there are none, or where nothing lies before them.
    """
    kernels = rows.source[order.places] != Source.COPY
    places = order.places[kernels]
    launch_ns, what = order.launch_ns[kernels], signature(rows)[places]
    first, second = (
        slice(*np.searchsorted(launch_ns, (since, until)))
        for since, until in zip(found.host_start_ns[:2], found.host_end_ns[:2], strict=True)
    )
    cut = _where_step_begins(what[first], what[second])
    if not cut:
        return found
    start_ns = found.host_start_ns.copy()
    start_ns[0] = launch_ns[first][cut - 1] + 1
    return found_between(order, start_ns, found.host_end_ns, found.what)


def _where_step_begins(head: IntArray, step: IntArray) -> int:
    """How many kernels of a head come before a whole step that is like the given one; 0: none do.

    Of several such places, the one that leaves most nearly as many kernels as the step has.
    """
    if not len(step):
        return 0
    few = int(PARTIAL.value * len(step))
    begins = step[: int(ALIKE_START.value)]
    first = max(len(head) - len(step) - few, 1)
    last = min(len(head) - len(step) + few, len(head) - len(begins))
    cuts = np.arange(first, last + 1)
    for place, kernel in enumerate(begins):
        cuts = cuts[head[cuts + place] == kernel]
    left = len(head) - cuts
    alike = _shared(head, step)[cuts] >= (1 - PARTIAL.value) * np.maximum(left, len(step))
    cuts, left = cuts[alike], left[alike]
    return int(cuts[np.argmin(np.abs(left - len(step)))]) if len(cuts) else 0


def _shared(head: IntArray, step: IntArray) -> IntArray:
    """For each place of a head, how many kernels from there on the step has as well, whatever their order.

    Counted from the end: a kernel is shared where the step has more of its kind than come after it.
    """
    kind = group_of(np.concatenate((head[::-1], step)))
    backward, in_step = kind[: len(head)], np.bincount(kind[len(head) :], minlength=len(kind))
    order = np.argsort(backward, kind="stable")
    come_after = np.empty(len(head), dtype=np.int64)
    come_after[order] = np.arange(len(head)) - np.searchsorted(backward[order], backward[order])
    shared: IntArray = np.cumsum(come_after < in_step[backward], dtype=np.int64)[::-1]
    return shared
