"""Recomputed stretches: which first run each repeats, how far each reaches, and the most that there
can be.

Recompute comes in units: what runs forward again between two kernels that are backward by name.
Units come back in reverse order, a layer at a time, but within one the order is the first run's
own. A stretch reaches as long as the launches around it repeat the original's. Where it could not
be told what is computed a second time, there is still a most.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from traces.arrays import (
    FOREVER,
    PLACE,
    BoolArray,
    IntArray,
    distinct,
    ints,
    none_of,
    order_of,
    row_by_row,
    shifted,
    summed,
    zeros,
)
from traces.beginning import starting_ns
from traces.columns import NULL
from traces.frozen import frozen
from traces.groups import (
    group_of,
    in_order,
    mask_of,
    mask_within,
    passing,
    places_in,
    places_of_each,
)
from traces.intervals import Spans, instants_in
from traces.limits import WALL
from traces.measure.host_copies import MATRIX
from traces.names.ranges import is_recompute_name
from traces.resolve.communication import stab
from traces.resolve.neighbours import launch_order
from traces.timeline import Activities, Bucket, RankTimeline
from traces.training import Roles


def pair_units(
    order: IntArray, module: IntArray, again: BoolArray, first: BoolArray, backward: BoolArray
) -> tuple[IntArray, IntArray]:
    """Pair every pass of `again` with one of `first`, each used once: places, shape (m,), -1 where
    none is.

    `order`: places by launch; the others have shape (n,): the module of each pass, and masks. A
    unit takes the latest open stretch of first runs with the same modules in the same order; where
    there is none, each of its passes takes the latest open one of its module.
    """
    open_, unit = _Run(), _Run()
    original: list[int] = []
    rows = order[(again | first | backward)[order]]
    for place, code, is_again, is_first in row_by_row(rows, module[rows], again[rows], first[rows]):
        if is_again or is_first:
            run = unit if is_again else open_
            run.places.append(place)
            run.modules.append(code)
        else:
            original += open_.paired(unit.modules)
            unit.modules.clear()
    original += open_.paired(unit.modules)
    return ints(unit.places), ints(original)


@dataclass(slots=True)
class _Run:
    """Passes in order, and the module of each."""

    places: list[int] = field(default_factory=list)
    modules: list[int] = field(default_factory=list)

    def paired(self, unit: list[int]) -> list[int]:
        """The first run of each pass of a unit, by its modules; -1 where none is open."""
        first_runs = self._take(unit)
        if not first_runs:
            for module in unit:
                first_runs += self._take([module]) or [-1]
        return first_runs

    def _take(self, modules: list[int]) -> list[int]:
        """The latest passes of these modules in a row, which are then no longer here."""
        for at in reversed(range(len(self.modules))):
            here = slice(at, at + len(modules))
            if self.modules[here] == modules:
                places = self.places[here]
                del self.places[here], self.modules[here]
                return places
        return []


@frozen
class StretchLimits:
    """What stretches are judged by, masks of shape (n,).

    `backward`: kernels whose names say so. `doubted`: those that backward launches under the same
    name (the gradient's GEMM). `silent`: work that stands between anything: casts, fills, copies.
    """

    backward: BoolArray
    doubted: BoolArray
    silent: BoolArray


@frozen
class Stretches:
    """Activities in the stretches around recomputed passes, masks of shape (n,).

    `sure` ends where nothing but doubted and silent work follows, unless a recomputed pass is next;
    `widest` goes on to the last alike.
    """

    sure: BoolArray
    widest: BoolArray


def stretches(
    rows: Activities, recomputed: IntArray, original: IntArray, launched: StretchLimits
) -> Stretches:
    """Find the activities in the stretches around recomputed passes.

    `recomputed` and `original`, shape (m,), are places of a pass run again and of its first run
    (-1: none, then only the pass itself counts). From both, the launches of their threads are
    compared outwards, as long as the same kernel or kind of copy comes on the same stream; the next
    recomputed pass ends it, and so does a kernel that is backward by its name. Backwards, the end
    of a stretch that ran first ends it as well: layers are alike, so the end of the layer before
    would seem repeated. Parameters gathered at its edges are prefetched, not repeated. Where
    another microbatch's launches come between, or another thread launches the collectives, the
    stretch is found too short.
    """
    order = launch_order(rows)
    sequence = in_order(order, rows.launch_thread)
    place, threads = places_in(sequence), np.append(rows.launch_thread[sequence], FOREVER)
    met = mask_of(recomputed, len(rows))
    of_copy = rows.key * rows.is_transfer
    kind = group_of(rows.name, of_copy, rows.source, rows.stream_id)
    taken, sure = met.copy(), met.copy()
    ends = met | launched.backward | rows.is_replay  # a row does not say which graph it is
    paired = original >= 0
    starts, originals = place[recomputed[paired]], place[original[paired]]
    ran_first = none_of(len(rows))
    gathers = rows.of(Bucket.COMM, "dp_all_gather")
    for way in (1, -1):
        open_, reach, firm = np.arange(len(starts)), starts.copy(), starts.copy()
        new, old = starts, originals
        doubt = none_of(len(starts))
        while len(open_):
            inside = (threads[new + way] == threads[new]) & (threads[old + way] == threads[old])
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
            certain = own & ~doubt[open_]
            firm[open_[certain]] = new[certain]
        for mask, until in ((taken, reach), (sure, firm)):
            covered = mask_within(
                np.minimum(starts, until), np.maximum(starts, until) + 1, len(rows)
            )
            mask[sequence[covered]] = True
        # what was met going on; what was met going back is of no further use
        ran_first |= mask_within(originals, originals + reach - starts + 1, len(rows))
    return Stretches(sure, taken)


FAMILIES: Final = ("attention", "norm", "activation")
"""Operations with kernels of their own both ways. Matrix products have two in backward for one in
forward."""


def recompute_at_most_ns(
    rank: RankTimeline, roles: Roles, inside: BoolArray, windows: Spans, *, more: bool
) -> int | None:
    """Wall time in the windows that recompute can take at most; None where no witness bounds it.

    Nothing is backward: hardly any kernel is of unknown class, or one thread launches all of a
    PyTorch program, whose backward has threads of its own, or of a program that begins here and
    multiplies no matrices, so that it is no network; then what another thread launches as the
    first one does. Else what backward launches as forward does, and all that lies in it between two
    kernels that are backward by name, where one of it is forward by name; neither where each family
    runs forward once for each time it runs backward, unless there are `more` products. And what
    runs again `under_checkpoints`. `inside`, shape (n,): the activities that start in the windows.
    """
    if not roles.backward.any():
        if not _few_unknown(rank, inside) and not _one_thread(rank, inside):
            return None
        again = as_forward(rank, _of_another_thread(rank, inside), inside)
    else:
        again = under_checkpoints(rank, roles)
        if more or not _once_each(rank, inside):
            backward = _in_backward(rank, roles)
            again |= _with_forward_names(rank, backward) | as_forward(rank, backward, inside)
    return instants_in(windows, rank.activities, again & inside).total_ns


def under_checkpoints(rank: RankTimeline, roles: Roles) -> BoolArray:
    """What backward launches under a range or function of a checkpoint, a mask of shape (n,).

    Of the innermost only what comes before its first kernel that is backward by name: a checkpoint
    may hold the backward pass of what it computed again.
    """
    rows = rank.activities
    backward, result = rank.of_phase("bwd"), none_of(len(rows))
    mine = np.flatnonzero(_in_backward(rank, roles) & rows.is_launched)
    for spans, code, texts in rank.columns.named_spans():
        named = passing(is_recompute_name, texts)[code]
        for thread in distinct(spans.thread_gid[named]).tolist():
            which = named & (spans.thread_gid == thread)
            start_ns, theirs = spans.start_ns[which], mine[rows.take(mine).launch_thread == thread]
            launch_ns = rows.launch_ns[theirs]
            checkpoint = stab(start_ns, spans.end_ns[which], launch_ns)
            ends_ns = np.sort(launch_ns[backward[theirs]])
            last_ns = np.append(NULL, ends_ns)[np.searchsorted(ends_ns, launch_ns, "right")]
            result[theirs[(checkpoint >= 0) & (last_ns < start_ns[checkpoint])]] = True
    return result


_OF_GRADIENTS: Final = ("dp_reduce_scatter", "dp_all_gather", "all_reduce", "other_comm")
"""Communication that backward launches beside its own work, and that no forward pass repeats."""


def _with_forward_names(rank: RankTimeline, theirs: BoolArray) -> BoolArray:
    """Of backward what is launched between two kernels of that name, where one of it is forward by
    name.
    """
    rows, order = rank.activities, launch_order(rank.activities)
    backward = rank.of_phase("bwd")
    gradients = rows.of(Bucket.COMM, *_OF_GRADIENTS)
    ends = backward | (~theirs & rows.is_kernel)
    stretch = zeros(len(rows))
    stretch[order] = np.cumsum(ends[order])
    forward = theirs & rank.of_phase("fwd")
    return theirs & ~backward & ~gradients & np.isin(stretch, stretch[forward])


PRODUCTS: Final = ("gemm", "grouped_gemm", "convolution", "attention")


def as_forward(rank: RankTimeline, backward: BoolArray, inside: BoolArray) -> BoolArray:
    """Kernels of backward that ran outside of it by the same name and grid; the longest, at most as
    many.

    None where no product is among them: sums and copies are alike everywhere.
    """
    rows, result = rank.activities, none_of(len(rank.activities))
    compute = np.flatnonzero(inside & rows.is_compute & rows.is_kernel)
    shape = rank.kernels.shape[rows.row[compute]]
    length_ns = rows.length_ns[compute]
    for _, same in places_of_each(group_of(rows.name[compute], shape)):
        again = backward[compute[same]]
        longest = same[again][order_of(-length_ns[same[again]])]
        result[compute[longest[: summed(~again)]]] = True
    if (result & rank.of_class(*PRODUCTS)).any():
        return result
    return none_of(len(result))


def _few_unknown(rank: RankTimeline, inside: BoolArray) -> bool:
    rows = rank.activities
    compute = inside & rows.is_compute
    length_ns = rows.length_ns
    unknown = inside & rows.of(Bucket.COMPUTE, "other")
    return summed(length_ns[unknown]) < WALL.value * summed(length_ns[compute])


def _one_thread(rank: RankTimeline, inside: BoolArray) -> bool:
    rows = rank.activities
    threads = distinct(rows.launch_thread[inside & rows.is_kernel])
    tells = any("at::native" in name for name in rank.columns.kernel_names)
    if starting_ns(rank) is not None:
        tells |= not (rank.of_class(*MATRIX) & inside).any()
    return tells and len(threads) == 1 and NULL not in threads


def _of_another_thread(rank: RankTimeline, inside: BoolArray) -> BoolArray:
    """What other threads launched than the one that begins the window: forward comes first."""
    rows = rank.activities
    launched = np.flatnonzero(inside & rows.is_compute & rows.is_launched)
    if not len(launched):
        return none_of(len(rows))
    thread = rows.launch_thread
    first = launched[np.argmin(rows.launch_ns[launched])]
    return (thread != NULL) & (thread != thread[first])


def _once_each(rank: RankTimeline, inside: BoolArray) -> bool:
    def count(family: str, way: str) -> int:
        ran = rank.named(lambda _, kernel: (kernel.class_, kernel.phase) == (family, way))
        return summed(inside & ran)

    both_ways = False
    for family in FAMILIES:
        forward, backward = count(family, "fwd"), count(family, "bwd")
        if forward > backward > 0:
            return False
        both_ways |= forward > 0 and backward > 0
    return both_ways


def _in_backward(rank: RankTimeline, roles: Roles) -> BoolArray:
    """What autograd's threads launched; without any, what is launched between backward kernels of a
    step.
    """
    if roles.autograd.any():
        return roles.autograd
    order = launch_order(rank.activities)
    backward, optimizer = roles.backward[order], roles.optimizer[order]
    step = np.cumsum(optimizer & ~shifted(optimizer), dtype=PLACE)
    result = none_of(len(order))
    for number in distinct(step[backward]).tolist():
        theirs = np.flatnonzero(backward & (step == number))
        result[order[theirs[0] : theirs[-1] + 1]] = True
    return result
