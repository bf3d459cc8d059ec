"""Which work of a rank its own steps launched, and which helper threads did beside them."""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.columns import NULL, BoolArray, distinct
from traces.limits import Limit
from traces.names.kinds import compute_classes
from traces.timeline import Activities, Bucket

DECODES: Final = Limit(
    0.5, "fraction of a thread's kernels", "ours: a loader's pipeline also resizes, crops and casts"
)


def helper_work(rows: Activities) -> BoolArray:
    """Work that helper threads launched, a mask of shape (n,): it owns no step and ends no wait of one.

    A thread helps where most of its kernels decode or augment input, or where it copies and launches nothing
    else while others do. Decoding kernels whose launch was not recorded are helpers' too.
    """
    thread, compute = rows.launch_thread, rows.bucket == Bucket.COMPUTE
    decodes = compute & (rows.key == compute_classes().index("decode"))
    copies = rows.bucket == Bucket.COPY
    if not decodes.any() and not copies.any():
        return np.zeros(len(rows), dtype=np.bool_)
    threads = distinct(thread[thread != NULL]).tolist()
    helpers = []
    for one in threads:
        mine = thread == one
        kernels = int((mine & ~copies).sum())
        if not kernels or int((mine & decodes).sum()) > DECODES.value * kernels:
            helpers.append(one)
    if len(helpers) == len(threads):  # then nobody is left to help
        return np.zeros(len(rows), dtype=np.bool_)
    result: BoolArray = np.isin(thread, helpers) | (decodes & (thread == NULL))
    return result
