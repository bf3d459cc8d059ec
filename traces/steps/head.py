"""A capture that begins with a few kernels of initialisation and then a whole step: the step is kept."""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.account.inferred import signature
from traces.columns import IntArray, group_of
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
    """How many kernels of a head come before a whole step that is like the given one; 0: none do."""
    few = int(PARTIAL.value * len(step))
    begins = step[: int(ALIKE_START.value)]
    first = max(len(head) - len(step) - few, 1)
    last = min(len(head) - len(step) + few, len(head) - len(begins))
    for cut in sorted(range(first, last + 1), key=lambda cut: abs(len(head) - cut - len(step))):
        if (head[cut : cut + len(begins)] == begins).all() and _alike(head[cut:], step):
            return cut
    return 0


def _alike(one: IntArray, other: IntArray) -> bool:
    """Whether two sequences share 95 % of the longer one's kernels, whatever their order."""
    kind = group_of(np.concatenate((one, other)))
    counts = [np.bincount(part, minlength=len(kind)) for part in np.split(kind, [len(one)])]
    shared = int(np.minimum(*counts).sum())
    return shared >= (1 - PARTIAL.value) * max(len(one), len(other))
