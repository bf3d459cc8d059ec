"""The step budget: every nanosecond of the window in exactly one bucket, adding up to the integer.

1. compute: a compute kernel runs. Two at once: the one that started first (equal starts: lower
stream, then
   lower correlation id) gives the class.
2. exposed_comm: no compute; a communication kernel or a copy between GPUs runs. Kinds at once: the
earlier in
   `COMM_KINDS`.
3. exposed_copy: neither; another copy or memset runs. Kinds at once: the one that started first.
4. idle: nothing.

Totals are of the whole recording, kernels only, independent of steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from traces.arrays import IntArray, summed
from traces.frozen import frozen
from traces.groups import places_of_each, sums_of
from traces.intervals import (
    Spans,
    covered_ns,
    first_come,
    instants_in,
    instants_of,
    intersect,
    subtract,
)
from traces.missing import Missing, OrMissing, unless
from traces.names.kernels import COMM_KINDS
from traces.sections.rank import Totals
from traces.timeline import KEYS, Activities, Bucket


@frozen
class WindowBudget:
    """The partition of a window. `window_ns` = compute + exposed_comm + exposed_copy + idle,
    exactly.

    The maps add up to their bucket and hold no zero. `hidden_comm_ns` is communication under
    compute, part of the compute bucket, and `hidden_comm_by_kind_ns` that of each kind, of which
    several may run at once.
    """

    window_ns: int
    compute_ns: int
    exposed_comm_ns: int
    exposed_copy_ns: int
    idle_ns: int
    compute_by_class_ns: Mapping[str, int]
    exposed_comm_by_kind_ns: Mapping[str, int]
    exposed_copy_by_kind_ns: Mapping[str, int]
    hidden_comm_ns: int
    hidden_comm_by_kind_ns: Mapping[str, int] = field(default_factory=dict)


def measure_budget(activities: Activities, windows: Spans) -> WindowBudget:
    """Partition the windows of one rank. `activities` in the order of `Activities`."""
    compute_rows = activities.take(activities.is_compute)
    copy_rows = activities.take(activities.is_copy)
    compute = instants_in(windows, compute_rows)
    not_compute = subtract(windows, compute)

    comm_by_kind, free, hidden = _communication(activities, windows, not_compute)
    copies = instants_in(free, copy_rows)
    return WindowBudget(
        window_ns=windows.total_ns,
        compute_ns=compute.total_ns,
        exposed_comm_ns=not_compute.total_ns - free.total_ns,
        exposed_copy_ns=copies.total_ns,
        idle_ns=subtract(free, copies).total_ns,
        compute_by_class_ns=_first_come_by_key(compute_rows, Bucket.COMPUTE, compute),
        exposed_comm_by_kind_ns=comm_by_kind,
        exposed_copy_by_kind_ns=_first_come_by_key(copy_rows, Bucket.COPY, copies),
        hidden_comm_ns=hidden,
        hidden_comm_by_kind_ns=_hidden_by_kind(activities, compute),
    )


def _communication(
    activities: Activities, windows: Spans, free: Spans
) -> tuple[dict[str, int], Spans, int]:
    """Exposed communication by kind, the time it leaves free, and what is hidden under compute."""
    by_kind: dict[str, int] = {}
    rows = activities.take(activities.is_comm)
    everything = instants_in(windows, rows)
    hidden = everything.total_ns - intersect(everything, free).total_ns
    for key, kind in enumerate(COMM_KINDS):
        exposed = instants_in(free, rows, rows.key == key)
        if len(exposed):
            by_kind[kind] = exposed.total_ns
            free = subtract(free, exposed)
    return by_kind, free, hidden


def _hidden_by_kind(activities: Activities, compute: Spans) -> dict[str, int]:
    hidden_ns, rows = {}, activities.take(activities.is_comm)
    for key, places in places_of_each(rows.key):
        if ns := instants_in(compute, rows, places).total_ns:
            hidden_ns[COMM_KINDS[key]] = ns
    return hidden_ns


def _first_come_by_key(rows: Activities, bucket: Bucket, within: Spans) -> dict[str, int]:
    """Time of each key where each instant belongs to the row that started first; keys by name."""
    own_start = first_come(rows.start_ns, rows.end_ns)
    own_ns = covered_ns(np.minimum(own_start, rows.end_ns), rows.end_ns, within)
    return sums_by_name(own_ns, rows.key, KEYS[bucket])


def sums_by_name(values: IntArray, code: IntArray, names: Sequence[str]) -> dict[str, int]:
    """Exact sums by name, no zeros, in the order of names; `code`: the place of a value's name."""
    sums = sums_of(values, code, len(names)).tolist()
    return {name: ns for name, ns in zip(names, sums, strict=True) if ns}


def measure_totals(activities: Activities, unseen: Missing | None) -> OrMissing[Totals]:
    """Totals over the whole recording. `unseen`: why communication cannot be told from compute.

    `kernel_work_ns` is a sum and can exceed the wall time; the `union` figures are wall time.
    Communication is what the kernel names of class `comm` say; `exposed_comm_ns` is its wall time
    without compute.
    """
    kernels = activities.take(activities.is_kernel)
    if not len(kernels):
        return unseen
    is_comm = kernels.is_comm
    comm = instants_of(kernels, is_comm)
    compute = instants_of(kernels, ~is_comm)
    return Totals(
        kernel_count=len(kernels),
        kernel_work_ns=summed(kernels.length_ns),
        span_ns=int(kernels.end_ns.max() - kernels.start_ns.min()),
        busy_union_ns=instants_of(kernels).total_ns,
        comm_union_ns=unless(unseen, comm.total_ns),
        exposed_comm_ns=unless(unseen, subtract(comm, compute).total_ns),
    )
