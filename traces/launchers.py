"""Which work of a rank its own steps launched, and which helper threads or whole CUDA graphs did.

Equal replays of a graph recorded whole that make up most of a rank's work are passes of a step
each.
"""

import numpy as np

from traces.arrays import NOWHERE, BoolArray, IntArray, distinct, ints, none_of, summed
from traces.columns import NULL
from traces.limits import HALF_A_WALL, MOST
from traces.timeline import Activities, Bucket


def helper_work(rows: Activities) -> BoolArray:
    """Work that helper threads launched, a mask of shape (n,): it owns no step and ends no wait of
    one.

    Decoding kernels whose launch was not recorded are helpers' too.
    """
    helpers = helper_threads(rows)
    if not len(helpers):
        return none_of(len(rows))
    return np.isin(rows.launch_thread, helpers) | (_decodes(rows) & (rows.launch_thread == NULL))


def helper_threads(rows: Activities) -> IntArray:
    """Threads most of whose kernels decode or augment input, or that only copy while others
    launch.
    """
    nobody = NOWHERE
    thread, decodes, copies = rows.launch_thread, _decodes(rows), rows.is_copy
    if not decodes.any() and not copies.any():
        return nobody
    threads = distinct(thread[thread != NULL]).tolist()
    helpers = []
    for gid in threads:
        mine = thread == gid
        kernels = summed(mine & ~copies)
        if not kernels or summed(mine & decodes) > MOST.value * kernels:
            helpers.append(gid)
    if len(helpers) == len(threads):  # then nobody is left to help
        return nobody
    return ints(helpers)


def _decodes(rows: Activities) -> BoolArray:
    return rows.of(Bucket.COMPUTE, "decode")


def equal_replays(rows: Activities) -> IntArray:
    """Places of at least two equal replays, recorded whole, that make up most of the work; else
    none.
    """
    length_ns = rows.length_ns
    replays = np.flatnonzero(rows.is_replay & rows.is_launched)
    few = len(replays) < 2 or summed(length_ns[replays]) < MOST.value * summed(length_ns)
    middle = 0.0 if few else float(np.median(length_ns[replays]))
    if few or (np.abs(length_ns[replays] - middle) > HALF_A_WALL.value * middle).any():
        return replays[:0]
    return replays
