"""How far a recomputed stretch reaches: as long as the launches around it repeat the original's."""

from dataclasses import dataclass

import numpy as np

from traces.columns import BoolArray, IntArray, distinct
from traces.names.kernels import COMM_KINDS
from traces.resolve.neighbours import launch_order
from traces.timeline import Activities, Bucket, Source


@dataclass(frozen=True, slots=True)
class Launched:
    """What stretches are judged by, masks of shape (n,).

    `backward`: kernels whose names say so. `doubted`: those that backward launches under the same name (the
    gradient's GEMM). `silent`: work that stands between anything: casts, fills, copies.
    """

    backward: BoolArray
    doubted: BoolArray
    silent: BoolArray


@dataclass(frozen=True, slots=True)
class Stretches:
    """Activities in the stretches around recomputed passes, masks of shape (n,).

    `sure` ends where nothing but doubted and silent work follows, unless a recomputed pass is next; `widest`
    goes on to the last alike.
    """

    sure: BoolArray
    widest: BoolArray


def stretches(rows: Activities, recomputed: IntArray, original: IntArray, launched: Launched) -> Stretches:
    """Find the activities in the stretches around recomputed passes.

    `recomputed` and `original`, shape (m,), are places of a pass run again and of its first run (-1: none,
    then only the pass itself counts). From both, the launches of their threads are compared outwards, as long
    as the same kernel or kind of copy comes; the next recomputed pass ends it, and so does a kernel that is
    backward by its name. Backwards, the end of a stretch that ran first ends it as well: layers are alike, so
    the end of the layer before would seem repeated. Parameters gathered at its edges are prefetched, not
    repeated. Where another microbatch's launches come between, or another thread launches the collectives,
    the stretch is found too short.
    """
    order = launch_order(rows)
    sequence = order[np.argsort(rows.launch_thread[order], kind="stable")]
    place = np.empty(len(rows), dtype=np.int64)
    place[sequence] = np.arange(len(rows))
    kind = _kinds(rows)
    met = np.zeros(len(rows), dtype=np.bool_)
    met[recomputed] = True
    taken, sure = met.copy(), met.copy()
    ends = met | launched.backward | (rows.source == Source.REPLAY)  # a row does not say which graph it is
    paired = original >= 0
    starts, originals = place[recomputed[paired]], place[original[paired]]
    ran_first = np.zeros(len(rows), dtype=np.bool_)
    gathers = (rows.bucket == Bucket.COMM) & (rows.key == COMM_KINDS.index("dp_all_gather"))
    for way in (1, -1):
        open_, reach, firm = np.arange(len(starts)), starts.copy(), starts.copy()
        new, old = starts, originals
        doubt = np.zeros(len(starts), dtype=np.bool_)
        while len(open_):
            inside = _on_one_thread(rows, sequence, new, way) & _on_one_thread(rows, sequence, old, way)
            open_, new, old = open_[inside], new[inside] + way, old[inside] + way
            same = kind[sequence[new]] == kind[sequence[old]]
            meets = open_[same & met[sequence[new]]]
            firm[meets] = reach[meets]
            alike = same & ~ends[sequence[new]] & ~(ran_first[new] | ran_first[old])
            open_, new, old = open_[alike], new[alike], old[alike]
            at = sequence[new]
            doubt[open_] = launched.doubted[at] | (launched.silent[at] & doubt[open_])
            own = ~gathers[at]
            reach[open_[own]] = new[own]
            told = own & ~doubt[open_]
            firm[open_[told]] = new[told]
        for mask, until in ((taken, reach), (sure, firm)):
            covered = _covered(np.minimum(starts, until), np.maximum(starts, until), len(rows))
            mask[sequence[covered]] = True
        ran_first |= _covered(originals, originals + np.abs(reach - starts), len(rows))
    return Stretches(sure, taken)


def _covered(low: IntArray, high: IntArray, count: int) -> BoolArray:
    """Which of `count` places lie in one of the ranges, both ends included, shape (count,)."""
    change = np.zeros(count + 1, dtype=np.int64)
    np.add.at(change, low, 1)
    np.add.at(change, high + 1, -1)
    result: BoolArray = np.cumsum(change[:-1]) > 0
    return result


def _kinds(rows: Activities) -> IntArray:
    """One number per activity, the same for the same kernel name or kind of copy, and the same stream."""
    streams = distinct(rows.stream_id)
    what = np.where(rows.name >= 0, rows.name + 64, rows.key)  # 64: more than there are kinds of copy
    return (what * 4 + rows.source) * len(streams) + np.searchsorted(streams, rows.stream_id)


def _on_one_thread(rows: Activities, sequence: IntArray, at: IntArray, way: int) -> BoolArray:
    """Whether the sequence goes on, one further that way, on the same thread."""
    next_ = at + way
    ends = (next_ < 0) | (next_ >= len(sequence))
    next_ = np.where(ends, at, next_)
    there, here = (rows.take(sequence[places]).launch_thread for places in (next_, at))
    result: BoolArray = ~ends & (there == here)
    return result
