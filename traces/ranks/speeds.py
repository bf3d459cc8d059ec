"""How long a rank's kernels take beside those of ranks like it: same kernel, same shape, alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traces.columns import FloatArray, distinct
from traces.ranks.alike import Alike, ratio
from traces.ranks.summary import RankSummary


def device_factors(summaries: Sequence[RankSummary], groups: Sequence[Alike]) -> FloatArray:
    """Of each rank how many times as long its kernels take, the median over kinds; NaN where nobody is alike.

    Kernels whose work depends on routing are no evidence. A slow GPU is slow in all its kernels.
    """
    factor = np.full(len(summaries), np.nan)
    for group in groups:
        several = [summaries[place].kernels for place in group.places]
        kinds = distinct(np.concatenate([times.kernel for times in several]))
        if len(several) < 2 or not len(kinds):
            continue
        table = np.full((len(several), len(kinds)), np.nan)
        for row, times in enumerate(several):
            own = times.is_grouped == 0
            table[row, np.searchsorted(kinds, times.kernel[own])] = times.median_ns[own]
        ratios = ratio(table, [Alike(group.fingerprint, tuple(range(len(several))))])
        told = ~np.isnan(ratios).all(axis=1)
        factor[np.array(group.places)[told]] = np.nanmedian(ratios[told], axis=1)
    return factor
