"""Totals of a rank: its whole recording, kernels only, independent of steps."""

from traces.intervals import subtract, union
from traces.missing import Missing, OrMissing
from traces.sections.rank import Totals
from traces.timeline import Activities, Bucket, Source


def measure_totals(activities: Activities, unseen: Missing | None = None) -> OrMissing[Totals]:
    """Totals over the whole recording. `unseen`: why communication cannot be told from compute.

    `kernel_work_ns` is a sum and can exceed the wall time; the `union` figures are wall time. Communication
    is what the kernel names of class `comm` say; `exposed_comm_ns` is its wall time without compute.
    """
    kernels = activities.take(activities.source == Source.KERNEL)
    if not len(kernels):
        return unseen
    is_comm = kernels.bucket == Bucket.COMM
    comm = union(kernels.start_ns[is_comm], kernels.end_ns[is_comm])
    compute = union(kernels.start_ns[~is_comm], kernels.end_ns[~is_comm])
    return Totals(
        kernel_count=len(kernels),
        kernel_work_ns=int((kernels.end_ns - kernels.start_ns).sum()),
        span_ns=int(kernels.end_ns.max() - kernels.start_ns.min()),
        busy_union_ns=union(kernels.start_ns, kernels.end_ns).total_ns,
        comm_union_ns=unseen or comm.total_ns,
        exposed_comm_ns=unseen or subtract(comm, compute).total_ns,
    )
