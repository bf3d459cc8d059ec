"""Recomputed activations: which modules run forward twice, and how long the second time takes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from msgspec.structs import replace as change

from traces.arrays import NOWHERE, BoolArray, IntArray, ints, none_of, row_by_row, summed
from traces.frozen import frozen
from traces.groups import mask_of, places_of_each
from traces.intervals import Spans, instants_in
from traces.limits import MOST, NEARLY_ALL
from traces.measure.recompute_extent import (
    Stretches,
    StretchLimits,
    as_forward,
    pair_units,
    recompute_at_most_ns,
    stretches,
    under_checkpoints,
)
from traces.measure.repeats import repeated_rows
from traces.missing import Missing, gap, known
from traces.names.kernels import MODULES, pass_of
from traces.resolve.neighbours import Role, launch_order, role
from traces.sections.rank import Passes
from traces.texts import Texts
from traces.timeline import KEYS, Activities, Bucket, RankTimeline
from traces.training import Roles, roles_of

ONE_TO_ONE: Final = ("attention", "router", "dispatch")
"""Modules with one backward kernel for each forward one; norms and activations are fused with
others."""


@frozen
class Recompute:
    """What a rank computes a second time, in the windows.

    `modules` holds every module with passes both ways, by what launched them: threads, or the
    counts alone. `recompute_ns` is the wall time of the recomputed stretches, the union of their
    kernels, copies and collectives, and at least that where launches of others come between; 0
    where attention was judged and no module is recomputed. `recompute_modules` splits it by class
    of work: wall times, whose sum is more where they overlap. `places`: the activities of those
    stretches, empty where none is known. `at_most_ns`: the most that `recompute_ns` can be where it
    is missing, see `recompute_at_most_ns`; None where nothing bounds it.
    """

    modules: Mapping[str, Passes] | Missing
    recompute_ns: int | Missing
    recompute_modules: Mapping[str, int] | Missing
    places: IntArray
    at_most_ns: int | None = None

    @property
    def missing(self) -> Missing | None:
        if isinstance(self.recompute_ns, Missing):
            return self.recompute_ns
        return None

    @property
    def unseen_ns(self) -> int | None:
        """The most that runs a second time beside what is known; None where nothing bounds it."""
        if self.missing is None:
            return 0
        return self.at_most_ns

    @property
    def again(self) -> Texts:
        passes = {} if isinstance(self.modules, Missing) else self.modules
        return tuple(module for module, judged in passes.items() if known(judged.recomputed_count))


@frozen
class _Judged:
    """A module's passes; masks over `Activities`, shape (n,), of those run again and of the first
    runs.

    `open_` says in words what keeps the extent unknown.
    """

    passes: Passes
    again: BoolArray
    first: BoolArray
    open_: str | None


def measure_recompute(
    rank: RankTimeline, windows: Spans, *, whole_steps: bool = False
) -> Recompute:
    """Find recomputed passes within the windows and how far the recomputed stretch around each
    reaches.

    `whole_steps`: no pass is cut at a border of the windows.
    """
    if not rank.has_kernels:
        return _unknown("graph replays were recorded whole", rank.cure("graphs"))
    roles = roles_of(rank)
    inside = windows.hold(rank.activities.start_ns)
    again = _by_names(rank, roles, inside, windows, whole_steps)
    if not len(again.places) and roles.autograd.any():
        repeated = np.flatnonzero(repeated_rows(rank, roles.autograd) & inside)
        if len(repeated):
            return _recomputed(rank, windows, again.modules, repeated)
    more = (again.missing is not None or again.recompute_ns == 0) and _more_products(
        rank, roles, inside
    )
    if again.recompute_ns == 0 and more:
        again = _unknown(
            "backward has more matrix products than two for each of forward's", "none is needed"
        )
    if again.recompute_ns == 0 and (under_checkpoints(rank, roles) & inside).any():
        again = _unknown(
            "backward runs kernels under a checkpoint, and no module is seen twice",
            "none is needed",
        )
    if again.missing is None:
        return again
    return replace(again, at_most_ns=recompute_at_most_ns(rank, roles, inside, windows, more=more))


def _more_products(rank: RankTimeline, roles: Roles, inside: BoolArray) -> bool:
    """Whether backward has more products than two for each of forward's, and some of them are
    forward's.
    """
    products = inside & rank.of_class("gemm", "grouped_gemm")
    theirs, others = summed(products & roles.autograd), summed(products & ~roles.autograd)
    more = NEARLY_ALL.value * theirs > 2 * others
    return bool(more and (products & as_forward(rank, roles.autograd, inside)).any())


def _by_names(
    rank: RankTimeline, roles: Roles, inside: BoolArray, windows: Spans, whole_steps: bool
) -> Recompute:
    rows = rank.activities
    if not roles.backward.any():
        # then backward would be seen, and recompute is for it
        if roles.forward.any() or roles.threads_tell:
            return Recompute({}, 0, {}, NOWHERE)
        why = "no name of a kernel, thread or range shows what runs backward"
        return _unknown(why, rank.cure("threads"))
    all_judged, modules, order, open_ = list[_Judged](), dict[str, Passes](), launch_order(rows), []
    for module in MODULES:
        forward, backward = _ran(rank, inside, module, "fwd"), _ran(rank, inside, module, "bwd")
        if forward.any() and backward.any():
            may_be_cut = not (whole_steps and module in ONE_TO_ONE)
            judged = _judge(order, forward, backward, roles.autograd, may_be_cut)
            all_judged.append(judged)
            modules[module] = judged.passes
            if judged.open_:
                open_.append(f"{module}: {judged.open_}")
    if not all_judged:
        return _unknown(
            "no kernel in the window has forward and backward names that differ", "none is needed"
        )
    if open_:
        return _unknown("; ".join(open_), rank.cure("threads"), modules)
    which = _extent(rank, inside, roles.autograd, all_judged)
    if not len(which) and "attention" not in modules:
        seen = " and ".join(modules)
        why = (
            f"only {seen} could be judged, which is not recomputed; attention alone could be, "
            f"unseen"
        )
        return _unknown(why, "none: attention has no kernel names of its own here", modules)
    return _recomputed(rank, windows, modules, which)


def _recomputed(
    rank: RankTimeline, windows: Spans, modules: Mapping[str, Passes] | Missing, which: IntArray
) -> Recompute:
    rows = rank.activities
    again_ns = instants_in(windows, rows, which).total_ns
    return Recompute(modules, again_ns, _by_class(rows, which, windows), which)


def _unknown(reason: str, remedy: str, modules: Mapping[str, Passes] | None = None) -> Recompute:
    why = gap(reason, remedy)
    passes = dict(modules or {})
    for module, judged in passes.items():
        if judged.recomputed_count is None:
            passes[module] = change(judged, recomputed_count=why)
    return Recompute(passes or why, why, why, NOWHERE)


def _ran(rank: RankTimeline, inside: BoolArray, module: str, phase: str) -> BoolArray:
    """A mask of a module's passes that run this way, shape (n,)."""
    return inside & rank.named(lambda name, kernel: pass_of(name, kernel) == (module, phase))


def _judge(
    order: IntArray, forward: BoolArray, backward: BoolArray, autograd: BoolArray, may_be_cut: bool
) -> _Judged:
    """Judge a module's passes. `order`: all activities by launch.

    Threads tell for certain where backward runs on autograd's; else the counts have to. Where none
    `may_be_cut`, every forward pass too many is one run again, or forward work without a backward.
    """
    forward_count, backward_count = summed(forward), summed(backward)
    order = order[(forward | backward)[order]]
    if (autograd & backward).any():
        again = forward & autograd
        passes = Passes(forward_count, backward_count, summed(again), "threads")
        return _Judged(passes, again, forward & ~again, None)
    nothing = none_of(len(forward))
    # passes are cut at the borders of a window
    if (NEARLY_ALL.value if may_be_cut else 1) * forward_count <= backward_count:
        return _Judged(Passes(forward_count, backward_count, 0, "counts"), nothing, forward, None)
    again = mask_of(_matched(order, forward, backward), len(forward)) & forward
    count = summed(again)
    left = forward_count - count
    # recompute makes it two: more is forward work of its own, fewer are layers that are not
    # recomputed
    if NEARLY_ALL.value * forward_count > 2 * backward_count or left < NEARLY_ALL.value * count:
        why = (
            f"{forward_count} forward and {backward_count} backward passes fit more than one "
            f"explanation"
        )
        return _Judged(Passes(forward_count, backward_count, None, "none"), nothing, nothing, why)
    passes = Passes(forward_count, backward_count, count, "counts")
    return _Judged(passes, again, forward & ~again, None)


def _matched(order: IntArray, forward: BoolArray, backward: BoolArray) -> IntArray:
    """Of each backward pass the nearest forward pass before it that is still open: a stack."""
    stack: list[int] = []
    result: list[int] = []
    for place, is_forward, is_backward in row_by_row(order, forward[order], backward[order]):
        if is_forward:
            stack.append(place)
        elif is_backward and stack:
            result.append(stack.pop())
    return ints(result)


def _extent(
    rank: RankTimeline, inside: BoolArray, autograd: BoolArray, judged: list[_Judged]
) -> IntArray:
    """Places of all recomputed activities: from each recomputed pass as far as it repeats its
    original.
    """
    rows, order = rank.activities, launch_order(rank.activities)
    module = np.full(len(rows), -1)
    again, first = np.zeros((2, len(rows)), dtype=np.bool_)
    for code, of_module in enumerate(judged):
        again |= of_module.again
        first |= of_module.first
        module[of_module.again | of_module.first] = code
    launched = _launched(rank)
    recomputed, original = pair_units(order, module, again, first, launched.backward)
    reach = stretches(rows, recomputed, original, launched)
    doubted = _gradients(rows.name, launched.doubted & inside, autograd, reach)
    return np.flatnonzero(
        stretches(rows, recomputed, original, replace(launched, doubted=doubted)).sure
    )


def _launched(rank: RankTimeline) -> StretchLimits:
    """What names tell; every GEMM is doubted."""
    return StretchLimits(
        backward=rank.of_phase("bwd"),
        doubted=rank.of_class("gemm"),
        silent=rank.named(lambda name, kernel: role(name, kernel) is Role.SILENT)
        | rank.activities.is_transfer,
    )


def _gradients(name: IntArray, gemm: BoolArray, autograd: BoolArray, reach: Stretches) -> BoolArray:
    """GEMMs that may be backward's where a stretch ends with them, a mask of shape (n,).

    A GEMM of forward has two in backward, one for either gradient, and they may have its name. So
    where autograd's threads launch no more than two for each, and those inside of stretches, none
    at the edges is repeated. A name that they launch nowhere else is forward's alone. `gemm`: those
    in the windows.
    """
    theirs = gemm & autograd
    edges = theirs & reach.widest & ~reach.sure
    left = summed(theirs) - 2 * summed(gemm & ~autograd) - summed(theirs & reach.sure)
    if not edges.any() or left > MOST.value * summed(edges):
        return none_of(len(name))
    return theirs & np.isin(name, name[theirs & ~reach.widest])


def _by_class(rows: Activities, which: IntArray, windows: Spans) -> dict[str, int]:
    """Wall time by class of compute or kind of communication; copies by kind."""
    by_key_ns = {}
    for bucket in Bucket:
        mine = which[rows.bucket[which] == bucket]
        for key, same in places_of_each(rows.key[mine]):
            by_key_ns[KEYS[bucket][key]] = instants_in(windows, rows, mine[same]).total_ns
    return by_key_ns
