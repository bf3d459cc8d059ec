"""How long a rank's kernels take beside those of ranks like it: always, and step by step."""

from collections.abc import Sequence

import numpy as np

from traces.columns import FloatArray, distinct
from traces.ranks.alike import Alike, ratio
from traces.ranks.excess import Excess
from traces.ranks.grid import Grid, own_step_of
from traces.ranks.match import Matched
from traces.ranks.recorded import joined
from traces.ranks.summary import RankSummary


def device_factors(summaries: Sequence[RankSummary], groups: Sequence[Alike]) -> FloatArray:
    """Of each rank how many times as long its kernels take, the median over kinds; NaN where nobody is alike.

    Compared are kernels of one name and shape that ran beside no communication.

    Kernels whose work depends on routing are no evidence. A slow GPU is slow in all its kernels.
    """
    factor = np.full(len(summaries), np.nan)
    for group in groups:
        several = [summaries[place].kernels for place in group.places]
        kernel, median_ns, grouped = (joined(several, name) for name in ("kernel", "median_ns", "is_grouped"))
        if len(several) < 2 or not len(kernel):
            continue
        row = np.repeat(np.arange(len(several)), [len(times) for times in several])
        kinds, own = distinct(kernel), grouped == 0
        table = np.full((len(several), len(kinds)), np.nan)
        table[row[own], np.searchsorted(kinds, kernel[own])] = median_ns[own]
        ratios = ratio(table, [Alike(group.fingerprint, tuple(range(len(several))))])
        told = ~np.isnan(ratios).all(axis=1)
        factor[np.array(group.places)[told]] = np.nanmedian(ratios[told], axis=1)
    return factor


def slowness_before(matched: Matched, grid: Grid, excess: Excess, factor: FloatArray) -> FloatArray:
    """Of each participation how many times as long its rank's kernels took in that step, shape (p,).

    By the kernels that routing says little about: a GPU that is slow, always or in this step, is so in all.
    """
    always = np.where(np.isnan(factor), 1.0, factor)
    dense_ns = grid.compute_ns - np.nan_to_num(grid.grouped_ns)
    usual_ns = dense_ns - excess.dense_ns
    ratios = np.divide(dense_ns, usual_ns, out=np.full(dense_ns.shape, np.nan), where=usual_ns > 0)
    by_step = np.column_stack((np.fmax(ratios, always[:, np.newaxis]), always))
    result: FloatArray = by_step[matched.place, own_step_of(matched, grid)]  # the last column is of no step
    return result
