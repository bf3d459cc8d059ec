"""Which work of a rank its own steps launched, and which helper threads did beside them."""

from typing import Final

import numpy as np

from traces.columns import NULL, BoolArray, IntArray, distinct
from traces.limits import Limit
from traces.names.kinds import compute_classes
from traces.timeline import Activities, Bucket

DECODES: Final = Limit(
    0.5, "fraction of a thread's kernels", "ours: a loader's pipeline also resizes, crops and casts"
)


def helper_work(rows: Activities) -> BoolArray:
    """Work that helper threads launched, a mask of shape (n,): it owns no step and ends no wait of one.

    Decoding kernels whose launch was not recorded are helpers' too.
    """
    helpers = helper_threads(rows)
    if not len(helpers):
        return np.zeros(len(rows), dtype=np.bool_)
    result: BoolArray = np.isin(rows.launch_thread, helpers) | (_decodes(rows) & (rows.launch_thread == NULL))
    return result


def helper_threads(rows: Activities) -> IntArray:
    """Threads most of whose kernels decode or augment input, or that only copy while others launch."""
    nobody = np.zeros(0, dtype=np.int64)
    thread, decodes, copies = rows.launch_thread, _decodes(rows), rows.bucket == Bucket.COPY
    if not decodes.any() and not copies.any():
        return nobody
    threads = distinct(thread[thread != NULL]).tolist()
    helpers = []
    for one in threads:
        mine = thread == one
        kernels = int((mine & ~copies).sum())
        if not kernels or int((mine & decodes).sum()) > DECODES.value * kernels:
            helpers.append(one)
    if len(helpers) == len(threads):  # then nobody is left to help
        return nobody
    return np.array(helpers, dtype=np.int64)


def _decodes(rows: Activities) -> BoolArray:
    result: BoolArray = (rows.bucket == Bucket.COMPUTE) & (rows.key == compute_classes().index("decode"))
    return result
