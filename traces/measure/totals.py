"""Totals of a rank: its whole recording, kernels only, independent of steps."""

from dataclasses import dataclass

from traces.intervals import subtract, union
from traces.timeline import Activities, Bucket, Source


@dataclass(frozen=True, slots=True)
class Totals:
    """Kernels of one GPU from the first start to the last end.

    `kernel_work_ns` is a sum and can exceed the wall time; the `union` figures are wall time. Communication
    is what the kernel names of class `comm` say; `exposed_comm_ns` is its wall time without compute.
    """

    kernel_count: int
    kernel_work_ns: int
    span_ns: int
    busy_union_ns: int
    comm_union_ns: int
    exposed_comm_ns: int


def measure_totals(activities: Activities) -> Totals | None:
    """Totals over the whole recording; None where no single kernel was recorded."""
    kernels = activities.take(activities.source == Source.KERNEL)
    if not len(kernels):
        return None
    is_comm = kernels.bucket == Bucket.COMM
    comm = union(kernels.start_ns[is_comm], kernels.end_ns[is_comm])
    compute = union(kernels.start_ns[~is_comm], kernels.end_ns[~is_comm])
    return Totals(
        kernel_count=len(kernels),
        kernel_work_ns=int((kernels.end_ns - kernels.start_ns).sum()),
        span_ns=int(kernels.end_ns.max() - kernels.start_ns.min()),
        busy_union_ns=union(kernels.start_ns, kernels.end_ns).total_ns,
        comm_union_ns=comm.total_ns,
        exposed_comm_ns=subtract(comm, compute).total_ns,
    )
