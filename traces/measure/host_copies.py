"""Copies between host and GPU that stand for memory the GPU lacks: offload, and what lives on the
host.
"""

from collections import Counter
from typing import Final

import numpy as np

from traces.account.host import LARGE
from traces.arrays import BoolArray, IntArray, columns_of, distinct, ints, none_of, summed
from traces.groups import begins, places_of_each
from traces.intervals import Spans, covered_ns, instants_in, instants_of, subtract
from traces.limits import WALL, Limit
from traces.missing import Missing
from traces.names.kernels import GRAPH_REPLAY, compute_class
from traces.steps.found import Steps
from traces.texts import Texts
from traces.timeline import Activities, Bucket, RankTimeline

RECURS: Final = Limit(
    2,
    "times a step",
    "by the word: activations and weights come with every layer, and a model has several",
)
BATCH_TENSORS: Final = Limit(
    8,
    "copies in a row",
    "ours: a batch is tokens, labels, positions and masks, a model has far more tensors",
)
MATRIX: Final = ("gemm", "grouped_gemm", "attention", "convolution")
_ONCE_A_PASS: Final = ("embedding", "loss", GRAPH_REPLAY)


def copy_use(rank: RankTimeline, places: IntArray, windows: Spans) -> tuple[int, int, int, int]:
    """Of some copies, by their places in the activities, the number, bytes, wall time and exposed
    time.

    Exposed is the part of the wall time in which neither compute nor communication runs. A copy
    that crosses a window's end takes what lies inside of it.
    """
    rows = rank.activities
    mine = rows.take(places)
    copying = instants_in(windows, mine)
    exposed = subtract(copying, instants_of(rows, ~rows.is_copy))
    return len(mine), summed(rank.copy_bytes(places)), copying.total_ns, exposed.total_ns


def offload_places(rank: RankTimeline, steps: Steps) -> IntArray | Missing:
    """Places in the activities of the used steps' copies that leave the GPU and come back. What
    only repeats may read results at its end and give them anew.

    Back within the time of the longest used step: what Adam on the CPU takes at a step's end comes
    back in the next. What comes in twice as often as it goes out is none: weights are read forward
    and backward, and a gradient of their size goes out once.
    """
    if not rank.has_kernels:
        return _whole_graphs(rank)
    if not steps.used or steps.unit == "block":
        return rank.lacks("without steps it is unknown what comes back within one", "steps")
    rows = rank.activities
    at = np.flatnonzero(rows.is_copy)
    copies = rows.take(at)
    size = rank.columns.copies.size_bytes[copies.row]
    used = steps.used_at(copies.start_ns) >= 0
    within_ns = max(steps.lengths_ns())
    out, back = copies.copies("memcpy_d2h"), copies.copies("memcpy_h2d")
    offloaded: list[int] = []
    for size_bytes in distinct(size[out & (size >= LARGE.value)]).tolist():
        pairs = _pairs(copies, np.flatnonzero((size == size_bytes) & (out | back)), out, within_ns)
        touching = pairs[used[pairs].any(axis=1)]
        read = summed(used & back & (size == size_bytes))
        if len(touching) >= RECURS.value * len(steps.used) and 2 * len(touching) > read:
            offloaded += touching[used[touching]].tolist()
    return at[ints(offloaded)]


def _whole_graphs(rank: RankTimeline) -> Missing:
    return rank.lacks("graph replays were recorded whole, with the copies in them", "graphs")


def _pairs(copies: Activities, places: IntArray, out: BoolArray, within_ns: int) -> IntArray:
    """Copies of one size to the host, each with the next one back that starts so soon after its
    end, shape (n, 2).
    """
    pairs: list[tuple[int, int]] = []
    waiting: list[int] = []
    for place in places.tolist():
        if out[place]:
            waiting.append(place)
            continue
        start_ns = int(copies.start_ns[place])
        waiting = [sent for sent in waiting if copies.end_ns[sent] >= start_ns - within_ns]
        if done := [sent for sent in waiting if copies.end_ns[sent] <= start_ns]:
            waiting.remove(done[-1])
            pairs.append((done[-1], place))
    return columns_of(pairs, 2).T


def resident_places(
    rank: RankTimeline, steps: Steps, offloaded: IntArray | Missing
) -> IntArray | Missing:
    """Places in the activities of copies that bring what lives in host memory: weights, optimizer
    state.

    Large ones from the host that are not in `offloaded`: those of a size that comes within a pass,
    see `_within_passes`. Of the others those that are no input batches, where more than one row of
    them comes in each used step, with those of a size that recurs among them; without steps where
    they fill enough of the window.
    """
    if not rank.has_kernels:
        return _whole_graphs(rank)
    rows = rank.activities
    at = np.flatnonzero(rows.copies("memcpy_h2d"))
    at = at[rank.copy_bytes(at) >= LARGE.value]
    if not isinstance(offloaded, Missing):
        at = at[~np.isin(at, offloaded)]
    within = _within_passes(rank, at, steps)
    inside = covered_ns(rows.start_ns[at], rows.end_ns[at], steps.windows) > 0
    if (within & inside).sum() < RECURS.value**2 * len(steps.used):
        within[:] = False  # a model has several layers, and each is read both ways
    weights, others = at[within & inside], at[inside & ~within]
    if _are_batches(rank.copy_bytes(others), rank.copy_bytes(weights), len(steps.used)):
        return weights
    return np.sort(np.concatenate((weights, _by_rows(rank, at[~within], inside[~within], steps))))


def _are_batches(others: IntArray, weights: IntArray, steps: int) -> bool:
    """Whether copies of other sizes are the tensors of batches, wherever in a step each of them
    comes.

    Each size comes at most once where one of the weights comes twice, and few are of a step.
    """
    if not len(weights) or len(others) > BATCH_TENSORS.value * steps:
        return False
    return 2 * max(Counter(others.tolist()).values(), default=0) <= min(
        Counter(weights.tolist()).values()
    )


def _by_rows(rank: RankTimeline, at: IntArray, inside: BoolArray, steps: Steps) -> IntArray:
    """Of copies that no size tells apart, those that live on the host by the rows they come in."""
    first = _rows(rank, at)
    weights = ~_batches(rank, at, first) & inside
    resident = at[weights]
    if not steps.used:
        _, _, filled_ns, _ = copy_use(rank, resident, steps.windows)
        if filled_ns > WALL.value * steps.windows.total_ns:
            return resident
        return at[:0]
    often = RECURS.value * len(steps.used)
    if len(distinct(np.searchsorted(first, np.flatnonzero(weights), "right"))) < often:
        return at[:0]
    sizes, counts = np.unique(rank.copy_bytes(resident), return_counts=True)
    return at[weights | (inside & np.isin(rank.copy_bytes(at), sizes[counts >= often]))]


def _within_passes(rank: RankTimeline, at: IntArray, steps: Steps) -> BoolArray:
    """Which of the copies, in order of start, are of a size that comes in several parts of a pass.

    Between two copies of a batch lies a whole pass, with or without what comes once a step. What is
    read forward and again backward has other kernels behind it each time: of two stretches from one
    copy to the next each holds one that the other lacks, in every used step. Only names count that
    all these steps have.
    """
    rows, size = rank.activities, rank.copy_bytes(at)
    result = none_of(len(at))
    step = steps.used_at(rows.start_ns[at])
    kernels = _in_all_steps(rows, steps)
    classes = rank.classes
    products = np.isin([compute_class(classes[name]) for name in kernels], MATRIX)
    for _, same in places_of_each(size) if kernels else ():
        between = np.flatnonzero(step[same[:-1]] >= 0)
        begin_ns, of_step = rows.start_ns[at[same]], step[same[between]]
        counts = [np.diff(np.searchsorted(starts_ns, begin_ns)) for starts_ns in kernels.values()]
        held = np.array(counts).T[between]
        by_step = [held[places] for _, places in places_of_each(of_step) if len(places) > 1]
        whole = by_step[:-1] or by_step  # behind the last copy of all nothing is known
        result[same] = bool(whole) and all(_differ(step_counts, products) for step_counts in whole)
    return result


def _in_all_steps(rows: Activities, steps: Steps) -> dict[int, IntArray]:
    """When the kernels of each name start, of names of compute that all used steps have."""
    compute = np.flatnonzero(rows.is_compute & (rows.name >= 0))
    start_ns, by_name = rows.start_ns[compute], {}
    step = steps.used_at(start_ns)
    for name, same in places_of_each(rows.name[compute]):
        if len(distinct(step[same][step[same] >= 0])) == len(steps.used):
            by_name[name] = start_ns[same]
    return by_name


def _differ(counts: IntArray, products: BoolArray) -> bool:
    """Whether of two sets of kernels, rows of shape (sets, names), each has one that the other
    lacks.

    Their products have to differ in number too: what comes once a step, beside whole passes, has
    none.
    """
    held = counts.astype(np.bool_)
    rising = held[np.argsort(held.sum(axis=1))]
    nested = not (rising[:-1] & ~rising[1:]).any()
    return not nested and bool((counts[1:, products] != counts[:1, products]).any())


def _rows(rank: RankTimeline, at: IntArray) -> IntArray:
    """Where rows of copies begin, in order of start: those without a kernel of matrices or passes
    between.
    """
    before = np.searchsorted(
        _starts(rank.activities, MATRIX + _ONCE_A_PASS), rank.activities.start_ns[at]
    )
    return np.flatnonzero(begins(before))


def _batches(rank: RankTimeline, at: IntArray, first: IntArray) -> BoolArray:
    """Which of the copies, in order of start and in rows that begin at `first`, may be input
    batches.

    An input batch is a short row before a whole pass: a kernel that runs once a pass (embedding,
    loss, a whole graph) comes before the next row, and before any of matrices, or with more of
    these than a layer has. Where none of these is known by name, rows of different sizes must
    recur: batches look alike. A single row is a model that is loaded.
    """
    rows = rank.activities
    passes, matrices = _starts(rows, _ONCE_A_PASS), _starts(rows, MATRIX)
    size = rank.copy_bytes(at)
    shapes = Counter(tuple(sorted(sizes.tolist())) for sizes in np.split(size, first[1:]))
    recurring = sum(count >= RECURS.value for count in shapes.values())
    if len(first) < RECURS.value or (not len(passes) and recurring < RECURS.value):
        return ~none_of(len(at))
    begin = rows.start_ns[at[first]]
    until = np.append(begin[1:], rows.end_ns.max())
    next_pass = np.append(passes, rows.end_ns.max())[np.searchsorted(passes, begin)]
    feeds_a_pass = next_pass < until
    fed = np.searchsorted(matrices, until) - np.searchsorted(matrices, begin)
    of_a_layer = int(fed[~feeds_a_pass].max(initial=0))
    before_matrices = np.searchsorted(matrices, next_pass) == np.searchsorted(matrices, begin)
    is_whole = before_matrices | (fed >= RECURS.value * of_a_layer)
    length = np.diff(first, append=len(at))
    return np.repeat(feeds_a_pass & is_whole & (length <= BATCH_TENSORS.value), length)


def _starts(rows: Activities, classes: Texts) -> IntArray:
    return rows.start_ns[rows.of(Bucket.COMPUTE, *classes)]
