"""Kernels of the windows by name and grid: what two recordings are compared by, kernel by
kernel.
"""

import hashlib
from typing import Final

import numpy as np

from traces.arrays import IntArray, row_by_row
from traces.columns import NULL
from traces.groups import first_of, group_of, sums_of
from traces.intervals import Spans, ns_in
from traces.launches import grid_numbers
from traces.limits import Limit
from traces.missing import Missing, known
from traces.sections.tables import Kernel, KernelsLeftOut, KernelTable
from traces.timeline import KEYS, Bucket, RankTimeline

NO_NAME = "(no name recorded)"


def no_grid(rank: RankTimeline) -> Missing:
    """Why kernels have no grid."""
    return rank.lacks("the trace has no grid of these", "version")


ROWS: Final = Limit(
    600,
    "rows",
    "ours: every kernel of every real recording we have (578 at most), in a file one can open",
)
NAME_LENGTH: Final = Limit(
    300,
    "characters",
    "ours: templates run to 3,000 and differ only at their end, which a digest keeps apart",
)


def measure_kernels(rank: RankTimeline, windows: Spans) -> KernelTable:
    """The kernels of one rank with time in the windows; work_ns of all rows and the rest add up to
    theirs.

    `count`: kernels with time in the windows; `work_ns`: that time, summed; `std_ns`: standard
    deviation of their whole durations.
    """
    rows = rank.activities
    in_windows_ns = ns_in(rows, windows)
    mine = np.flatnonzero(rows.is_kernel & (in_windows_ns > 0))
    shapes, shape = rank.kernels.shapes, rank.kernels.shape[rows.row[mine]]
    group = group_of(
        grid_numbers(shapes)[shape], rows.name[mine], rows.bucket[mine], rows.key[mine]
    )
    count = np.bincount(group)
    work_ns = sums_of(in_windows_ns[mine], group, len(count))
    length_ns = rows.length_ns[mine]
    mean_ns = np.bincount(group, weights=length_ns) / count
    # about its own mean, so that no square loses digits
    variance = np.bincount(group, weights=(length_ns - mean_ns[group]) ** 2) / count
    names, unknown = rank.columns.kernel_names, no_grid(rank)
    no_block = rank.lacks("the trace has no block of these, or several", "version")
    first = first_of(group)
    kind, grids = rows.take(mine[first]), shapes.grid[shape[first]]
    block = _same_of(group, first, group_of(*shapes.block.T)[shape], shapes.block[shape[first]])
    columns = (kind.name, kind.bucket, kind.key, grids, block, count, work_ns, np.sqrt(variance))
    kernels = [
        Kernel(
            name=shortened(names[name]) if name >= 0 else NO_NAME,
            grid=unknown if NULL in grid else tuple(grid),
            key=f"{PREFIX[bucket]}.{KEYS[bucket][key]}",
            count=number,
            work_ns=ns,
            std_ns=round(std_ns),
            block=tuple(threads) if min(threads) > 0 else no_block,
        )
        for name, bucket, key, grid, threads, number, ns, std_ns in row_by_row(*columns)
    ]
    kernels.sort(key=lambda row: (-row.work_ns, row.name, known(row.grid) or (), row.key))
    most = ROWS.whole
    left = kernels[most:]
    left_out = KernelsLeftOut(
        len(left), sum(row.count for row in left), sum(row.work_ns for row in left)
    )
    return KernelTable(tuple(kernels[:most]), left_out)


def _same_of(group: IntArray, first: IntArray, code: IntArray, block: IntArray) -> IntArray:
    """The `block` of the first kernel of each group, shape (g, 3); NULL where others of the group
    have another `code`, shape (n,).
    """
    differs = np.bincount(group, weights=code != code[first][group]) > 0
    return np.where(differs[:, None], NULL, block)


PREFIX: Final = {Bucket.COMPUTE: "compute", Bucket.COMM: "comm", Bucket.COPY: "copy"}


def shortened(name: str) -> str:
    """The name, or its beginning and a digest of all of it."""
    most = NAME_LENGTH.whole
    if len(name) <= most:
        return name
    return f"{name[:most]}...#{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
