"""Forward's kernels that backward launches again in the same order: recompute of whatever has no
pass by name.

Names tell forward from backward only for some modules. Kernels and grids of a convolution, its
norm and its activation in a row come twice only where they are computed twice.
"""

from typing import Final

import numpy as np

from traces.arrays import BoolArray, none_of
from traces.groups import group_of, in_order, mask_within
from traces.limits import Limit
from traces.measure.recompute_extent import PRODUCTS
from traces.timeline import RankTimeline

ROW: Final = Limit(
    4,
    "kernels in a row",
    "measured on recordings of others: backward of twelve without recompute repeats no such row "
    "of forward, of those with a checkpoint 13 to 39 % of its kernels' work",
)


def repeated_rows(rank: RankTimeline, backward: BoolArray) -> BoolArray:
    """Kernels of rows that `backward` launches as forward's threads do, between two kernels that
    are backward by name; masks of shape (n,).

    A row is `ROW` kernels of one thread in order of launch, by name and grid, not all of one kind,
    and more than a convolution with its layouts: backward of a transposed one launches the same.
    None where no product, nor a kernel that is forward by name, is in any: sums and copies are
    alike everywhere.
    """
    rows, length = rank.activities, ROW.whole
    result = none_of(len(rows))
    mine = np.flatnonzero(rows.is_kernel & rows.is_compute & rows.is_launched)
    mine = in_order(mine, rows.launch_thread, rows.launch_ns)
    if len(mine) < length:
        return result
    kind = group_of(rows.name[mine], rank.kernels.shape[rows.row[mine]])
    kinds = np.lib.stride_tricks.sliding_window_view(kind, length)
    threads = np.lib.stride_tricks.sliding_window_view(rows.launch_thread[mine], length)
    named = np.lib.stride_tricks.sliding_window_view(rank.of_phase("bwd")[mine], length)
    row, first = group_of(*kinds.T), backward[mine][: len(kinds)]
    whole = (threads == threads[:, :1]).all(axis=1)
    others = ~rank.of_class("convolution", "layout")[mine]
    more = np.lib.stride_tricks.sliding_window_view(others, length).any(axis=1)
    again = whole & first & more & ~named.any(axis=1) & (kinds != kinds[:, :1]).any(axis=1)
    again &= np.isin(row, row[whole & ~first])
    begin = np.flatnonzero(again)
    covered = mask_within(begin, begin + length, len(mine))
    tells = rank.of_class(*PRODUCTS) | rank.of_phase("fwd")
    result[mine] = covered & (covered & tells[mine]).any()
    return result
