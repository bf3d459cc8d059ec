"""Which frees are the caching allocator's: it frees what it kept within an allocation that found no
room.

Its frees stand in one run right before that allocation, in the same operator, and it asked the
driver before it gave anything back. A library that takes a workspace for a kernel frees it behind
that kernel, or frees the last one before it takes one for a convolution; a program whose cache is
off frees each tensor where it dies. No setting of the allocator changes these.
"""

import numpy as np

from traces.account.calls import CallKind, call_kinds
from traces.addresses.nested import innermost
from traces.arrays import PLACE, BoolArray, IntArray, last_at, none_of, shifted
from traces.groups import begins, in_order, next_at
from traces.timeline import RankTimeline


def launching_calls(rank: RankTimeline) -> IntArray:
    """Kind of each call of a thread that launches; -1 of those of others."""
    calls = rank.calls
    kind = call_kinds(rank.columns.call_names)[calls.name]
    return np.where(np.isin(calls.thread_gid, rank.activities.launching_threads), kind, -1)


def frees_to_allocate(rank: RankTimeline) -> tuple[BoolArray, BoolArray]:
    """Masks over the calls of a rank: those of launching threads that free, and of these the
    allocator's.
    """
    calls, kind = rank.calls, launching_calls(rank)
    freeing = kind == CallKind.FREE
    own = none_of(len(freeing))
    if not freeing.any():
        return freeing, own
    order = np.flatnonzero(kind > CallKind.OTHER)  # queries move no memory
    order = in_order(order, calls.thread_gid, calls.start_ns)
    thread, frees = calls.thread_gid[order], freeing[order]
    place, allocates = _innermost_range(rank, order), kind[order] == CallKind.ALLOCATE
    of_library = _before_convolutions(rank, order, frees | allocates, frees, place)
    first = np.flatnonzero(begins(frees, thread))
    last = np.append(first[1:], len(order)) - 1
    runs = np.flatnonzero(frees[first])
    for begin, end in zip(first[runs], last[runs], strict=True):
        after = end + 1
        is_own = after < len(order) and thread[after] == thread[end] and place[after] == place[end]
        own[order[begin : end + 1]] = is_own and allocates[after] and not of_library[begin]
    return freeing, own


def _before_convolutions(
    rank: RankTimeline, order: IntArray, moves: BoolArray, frees: BoolArray, place: IntArray
) -> BoolArray:
    """Which calls, in order by thread, stand before a convolution's launch in its operator, after a
    free.

    `moves`: those that allocate or free; the first of them since the launch before is what counts.
    """
    rows = rank.activities
    launched = rows.call[rows.is_kernel & (rows.call >= 0)]
    convolved = rows.call[rank.of_class("convolution") & (rows.call >= 0)]
    launches, thread = np.isin(order, launched), rank.calls.thread_gid[order]
    stretch = np.cumsum(shifted(launches) | begins(thread), dtype=PLACE)
    moved = np.flatnonzero(moves)
    first = moved[begins(stretch[moved])]
    # the last of all where none follows, which then launches nothing
    last = np.minimum(next_at(launches), len(order) - 1)[: len(order)]
    same = (thread[last] == thread) & (place[last] == place)
    return same & np.isin(order[last], convolved) & np.isin(stretch, stretch[first[frees[first]]])


def _innermost_range(rank: RankTimeline, calls: IntArray) -> IntArray:
    """The row of the innermost range that holds each call, shape (n,); -1 where none does."""
    ranges, recorded = rank.columns.ranges, rank.calls
    range_row = np.full(len(calls), -1)
    for thread in np.unique(recorded.thread_gid[calls]).tolist():
        mine = recorded.thread_gid[calls] == thread
        theirs = np.flatnonzero(ranges.thread_gid == thread)
        tiling = innermost(ranges.start_ns[theirs], ranges.end_ns[theirs], theirs)
        range_row[mine] = tiling.label[last_at(tiling.start_ns, recorded.start_ns[calls][mine])]
    return range_row
