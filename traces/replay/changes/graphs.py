"""CUDA graphs of parts of a layer: one launch for all kernels of a scope.

Which kernels graphs of attention, router and preprocessing would hold is told by what the kernels
are.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from traces.arrays import IntArray, bools, ints, summed
from traces.limits import FEWEST, Limit
from traces.names.kernels import KernelClass
from traces.replay.changes.change import DraftChange, Recorded
from traces.replay.changes.launches import merge, merged_draft, uninterrupted

SCOPES: Final = ("attn", "moe_router", "moe_preprocess")

_INSIDE: Final = frozenset(
    {"gemm", "rope", "elementwise", "quantize", "attention", "rng", "softmax"}
)
_BEHIND: Final = ("gemm", "quantize", "elementwise")


def find_scopes(recorded: Recorded) -> Mapping[str, list[list[int]]]:
    """Places of each scope's kernels, one list for each time it runs with at least two of them."""
    scopes: dict[str, list[list[int]]] = {scope: [] for scope in SCOPES}
    for places in uninterrupted(recorded):
        for scope, begin, end in _scopes_of([recorded.classes[place] for place in places]):
            if end - begin > 1:
                scopes[scope].append(places[begin:end])
    return scopes


def _scopes_of(kinds: Sequence[KernelClass]) -> Iterator[tuple[str, int, int]]:
    at = free = 0
    while at < len(kinds):
        scope = _begun(kinds, at, free)
        if scope:
            yield scope
            at = free = scope[2]
        else:
            at += 1


def scope_of(kind: KernelClass) -> str | None:
    """The scope that a kernel alone tells; most kernels could be of several."""
    if _is_map(kind):
        return "moe_preprocess"
    if kind.class_ == "attention" and kind.subclass in ("fwd", "bwd"):
        return "attn"
    if kind.class_ == "router":
        return "moe_router"
    return None


def _begun(kinds: Sequence[KernelClass], at: int, free: int) -> tuple[str, int, int] | None:
    """The scope that a kernel tells, from the first kernel on that is `free`: in no scope before
    it.
    """
    scope = scope_of(kinds[at])
    if scope == "moe_preprocess":
        end = at + 1
        while end < len(kinds) and _is_map(kinds[end]):
            end += 1
        return scope, at, end
    if scope == "attn":
        return _attention(kinds, at, free)
    if scope is None:
        return None
    return _router(kinds, at, free)


def _is_map(kind: KernelClass) -> bool:
    return kind.subclass == "map" and kind.class_ in ("router", "permute")


def _attention(kinds: Sequence[KernelClass], at: int, free: int) -> tuple[str, int, int] | None:
    """Forward from its norm to what follows the projection; backward from there to the norm's
    gradient.
    """
    begin = at
    if kinds[at].subclass == "fwd":
        while begin > free and (
            kinds[begin - 1].class_ in _INSIDE or _is(kinds[begin - 1], "norm", "fwd")
        ):
            begin -= 1
        while begin < at and kinds[begin].class_ != "norm":
            begin += 1
        end = _behind(kinds, at, _INSIDE, ("attention", "bwd"))
        if begin < at:
            return "attn", begin, end
        return None
    while begin > free and kinds[begin - 1].class_ in ("gemm", "quantize", "attention"):
        if _is(kinds[begin - 1], "attention", "fwd"):
            break
        begin -= 1
    inside = _behind(kinds, at, _INSIDE, ("attention", "fwd"))
    end = _norm_backward(kinds, inside)
    if end > inside:
        return "attn", begin, end
    return None


def _router(kinds: Sequence[KernelClass], at: int, free: int) -> tuple[str, int, int] | None:
    """Forward from the norm before the gate; backward to that norm's gradient."""
    end = _behind(kinds, at, {"router", "softmax"}, ("router", "map"))
    behind = _behind(kinds, end, _BEHIND)
    last = _norm_backward(kinds, behind)
    if last > behind:
        return "moe_router", at, last
    begin = at
    while begin > free and kinds[begin - 1].class_ in (*_BEHIND, "softmax"):
        begin -= 1
    if begin > free and _is(kinds[begin - 1], "norm", "fwd"):
        return "moe_router", begin - 1, end
    return None


def _norm_backward(kinds: Sequence[KernelClass], at: int) -> int:
    """Behind a norm's gradient kernels and the addition after them; where there is none, the same
    place.
    """
    if at < len(kinds) and _is(kinds[at], "norm", "bwd"):
        return _behind(kinds, at, {"norm", "elementwise", "quantize"}, ("norm", "fwd"))
    return at


def _is(kind: KernelClass, class_: str, phase: str) -> bool:
    return kind.class_ == class_ and kind.subclass == phase


def _behind(
    kinds: Sequence[KernelClass], at: int, classes: Collection[str], but: tuple[str, str] = ("", "")
) -> int:
    """Behind the kernels of some classes from a place on, `but` one class and subclass."""
    while at < len(kinds) and kinds[at].class_ in classes and not _is(kinds[at], *but):
        at += 1
    return at


CALL: Final = Limit(
    2,
    "launch calls of this recording",
    "ours, where it has no graph launch: what one call does beside nodes",
)
NODE: Final = Limit(
    200, "ns a kernel", "ours: CUDA 11 took about that; since 12.6 it takes almost none"
)


def graph_drafts(recorded: Recorded) -> Iterator[DraftChange]:
    """One draft for each scope that is not in a graph yet (`graph_attn` and so on), and
    `graph_scopes`.
    """
    scopes = {scope: runs for scope, runs in find_scopes(recorded).items() if runs}
    for scope, runs in scopes.items():
        yield _draft(recorded, f"graph_{scope}", runs)
    if scopes:
        yield _draft(recorded, "graph_scopes", [*chain.from_iterable(scopes.values())])


def _draft(recorded: Recorded, kind: str, runs: Sequence[Sequence[int]]) -> DraftChange:
    merged = merge(recorded, runs)
    call_ns = _call_ns(recorded, merged.size)
    return merged_draft(recorded, kind, merged, call_ns, np.zeros_like(call_ns))


def _call_ns(recorded: Recorded, size: IntArray) -> IntArray:
    """What each graph's launch call takes: as in this recording where it has some, else as
    stated.
    """
    count = recorded.launch_count
    own_ns = recorded.graph.timing.own_ns
    is_graph = bools(["GraphLaunch" in name for name in recorded.call_names]) & (count > 0)
    if summed(is_graph) >= FEWEST.value:
        return np.full(len(size), int(np.median(own_ns[is_graph])))
    single = (count == 1) & ~is_graph
    one_ns = float(np.median(own_ns[single])) if single.any() else 0.0
    return ints(CALL.value * one_ns + NODE.value * size)
