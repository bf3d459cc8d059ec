"""Recomputed activations: which modules run forward twice, and how long the second time takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.intervals import Spans, covered_ns, intersect, union
from traces.limits import Limit
from traces.measure.recompute_extent import stretches
from traces.missing import Missing
from traces.names.kernels import classify_kernel
from traces.names.passes import MODULES, pass_of
from traces.resolve.neighbours import launch_order
from traces.steps.training import roles_of
from traces.timeline import KEYS, Activities, Bucket, RankTimeline, Source

Evidence = Literal["threads", "counts", "none"]

TWICE: Final = Limit(
    1.2, "forward passes per backward pass", "ours: passes cut at the borders of a window stay below it"
)
MOST: Final = Limit(
    2.5, "forward passes per backward pass", "ours: recompute makes it 2; more is forward work of its own"
)
ALL_LAYERS: Final = Limit(
    0.9, "originals per recomputed pass", "ours: fewer means layers that are not recomputed among the matched"
)
_CURE: Final = "record whole steps with nsys, which notes the names of threads"


@dataclass(frozen=True, slots=True)
class ModulePasses:
    """Passes of one module that start in the window.

    `recomputed_count` is None where it cannot be told, `evidence` what it rests on: the thread that launched
    them, or the counts alone.
    """

    forward_count: int
    backward_count: int
    recomputed_count: int | None
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Recompute:
    """What a rank computes a second time, in the windows.

    `modules` holds every module with passes both ways. `recompute_ns` is the wall time of the recomputed
    stretches, the union of their kernels, copies and collectives, and at least that where launches of others
    come between; 0 where attention was judged and no module is recomputed. `recompute_modules` splits it by
    class of work: wall times, whose sum is more where they overlap. Where these two are None, `missing` says
    why.
    """

    modules: Mapping[str, ModulePasses]
    recompute_ns: int | None
    recompute_modules: Mapping[str, int] | None
    missing: Missing | None


@dataclass(frozen=True, slots=True)
class _Judged:
    """A module's passes, and the recomputed ones with their originals: places in `Activities`, shape (m,).

    `original` is -1 where there is none. `open_` says in words what keeps the extent unknown.
    """

    passes: ModulePasses
    recomputed: IntArray
    original: IntArray
    open_: str | None


def measure_recompute(rank: RankTimeline, windows: Spans) -> Recompute:
    """Find recomputed passes within the windows and how far the recomputed stretch around each reaches."""
    if not rank.has_kernels:
        return _untold("graph replays were recorded whole", "record with --cuda-graph-trace=node")
    rows, roles = rank.activities, roles_of(rank)
    if not roles.backward.any():
        return _without_backward(bool(roles.forward.any()) or roles.threads_tell)
    inside = covered_ns(rows.start_ns, rows.start_ns + 1, windows) > 0
    found, order = {}, launch_order(rows)
    for module, (forward, backward) in _passes(rank, inside).items():
        if forward.any() and backward.any():
            found[module] = _judge(order, forward, backward, roles.autograd)
    modules = {module: judged.passes for module, judged in found.items()}
    if not found:
        return _untold("no kernel in the window has forward and backward names that differ", "none is needed")
    if open_ := "; ".join(f"{module}: {judged.open_}" for module, judged in found.items() if judged.open_):
        return _untold(open_, _CURE, modules)
    which = _extent(rank, list(found.values()))
    if not len(which) and "attention" not in found:
        seen = " and ".join(found)
        why = f"only {seen} could be judged, which is not recomputed; attention alone could be, unseen"
        return _untold(why, "none: attention has no kernel names of its own here", modules)
    return Recompute(modules, _wall(rows, which, windows).total_ns, _by_class(rows, which, windows), None)


def _untold(reason: str, cure: str, modules: Mapping[str, ModulePasses] | None = None) -> Recompute:
    return Recompute(modules or {}, None, None, Missing("memory.recompute_ns", reason, cure))


def _without_backward(would_be_seen: bool) -> Recompute:
    if would_be_seen:
        return _untold("no backward ran, so nothing is computed twice for one", "record training steps")
    return _untold("no kernel or thread name tells what runs backward", _CURE)


def _passes(rank: RankTimeline, inside: BoolArray) -> dict[str, tuple[BoolArray, BoolArray]]:
    """Masks of the forward and backward passes of each module, shape (n,) each."""
    rows = rank.activities
    named = [pass_of(name, classify_kernel(name)) for name in rank.columns.kernel_names]
    kernel = inside & (rows.source == Source.KERNEL)

    def mask(module: str, phase: str) -> BoolArray:
        of_name = np.array([*(one == (module, phase) for one in named), False], dtype=np.bool_)
        result: BoolArray = kernel & of_name[rows.name]
        return result

    return {module: (mask(module, "fwd"), mask(module, "bwd")) for module in MODULES}


def _judge(order: IntArray, forward: BoolArray, backward: BoolArray, autograd: BoolArray) -> _Judged:
    """Judge a module's passes. `order`: all activities by launch.

    Threads tell for certain where backward runs on autograd's; else the counts have to.
    """
    forward_count, backward_count = int(forward.sum()), int(backward.sum())
    order = order[(forward | backward)[order]]
    nothing = np.empty(0, dtype=np.int64)
    if (autograd & backward).any():
        again = forward & autograd
        recomputed = order[again[order]]
        original = _originals(order, forward & ~again, again)
        return _Judged(
            ModulePasses(forward_count, backward_count, len(recomputed), "threads"),
            recomputed,
            original,
            None,
        )
    if forward_count <= TWICE.value * backward_count:
        return _Judged(ModulePasses(forward_count, backward_count, 0, "counts"), nothing, nothing, None)
    matched = np.zeros(len(forward), dtype=np.bool_)
    matched[_originals(order, forward, backward, keep=False)] = True
    again = matched & forward
    left = forward_count - int(again.sum())
    if forward_count > MOST.value * backward_count or left < ALL_LAYERS.value * int(again.sum()):
        why = f"{forward_count} forward and {backward_count} backward passes fit more than one explanation"
        passes = ModulePasses(forward_count, backward_count, None, "none")
        return _Judged(passes, nothing, nothing, why)
    recomputed = order[again[order]]
    passes = ModulePasses(forward_count, backward_count, len(recomputed), "counts")
    return _Judged(passes, recomputed, _originals(order, forward & ~again, again), None)


def _originals(order: IntArray, opens: BoolArray, closes: BoolArray, keep: bool = True) -> IntArray:
    """Of each closing activity the nearest opening one before it that is still open: a stack.

    `order`: places in `Activities`, in order of launch. Where none is open the result is -1, left out
    without `keep`.
    """
    stack: list[int] = []
    result: list[int] = []
    for place, is_open, is_close in zip(
        order.tolist(), opens[order].tolist(), closes[order].tolist(), strict=True
    ):
        if is_open:
            stack.append(place)
        elif is_close and (stack or keep):
            result.append(stack.pop() if stack else -1)
    return np.array(result, dtype=np.int64)


def _extent(rank: RankTimeline, judged: list[_Judged]) -> IntArray:
    """Places of all recomputed activities: from each recomputed pass as far as it repeats its original."""
    recomputed = np.concatenate([one.recomputed for one in judged])
    original = np.concatenate([one.original for one in judged])
    by_name = [classify_kernel(name).phase == "bwd" for name in rank.columns.kernel_names]
    backward = np.array([*by_name, False], dtype=np.bool_)[rank.activities.name]
    return stretches(rank.activities, recomputed, original, backward)


def _wall(rows: Activities, which: IntArray, windows: Spans) -> Spans:
    return intersect(union(rows.start_ns[which], rows.end_ns[which]), windows)


def _by_class(rows: Activities, which: IntArray, windows: Spans) -> dict[str, int]:
    """Wall time by class of compute or kind of communication; copies by kind."""
    found = {}
    for bucket in Bucket:
        mine = which[rows.bucket[which] == bucket]
        for code in sorted(set(rows.key[mine].tolist())):
            found[KEYS[bucket][code]] = _wall(rows, mine[rows.key[mine] == code], windows).total_ns
    return found
