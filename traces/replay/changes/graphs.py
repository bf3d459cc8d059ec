"""CUDA graphs of parts of a layer: one launch for all kernels of a scope."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from traces.columns import IntArray
from traces.limits import Limit
from traces.replay.changes.change import Draft, Recorded
from traces.replay.changes.launches import back_to_back, launched_at_once, merge
from traces.replay.changes.scopes import find_scopes
from traces.replay.graph import Timing

CALL: Final = Limit(
    2, "launch calls of this recording", "ours, where it has no graph launch: what one call does beside nodes"
)
NODE: Final = Limit(200, "ns a kernel", "ours: CUDA 11 took about that; since 12.6 it takes almost none")
ENOUGH: Final = Limit(5, "graph launches", "ours: a median of fewer is one call's luck")
_KINDS: Final = {"host_overhead": ("launch", "python", "arrival")}


def graph_drafts(recorded: Recorded) -> Iterator[Draft]:
    """One draft for each scope that is not in a graph yet (`graph_attn` and so on), and `graph_scopes`."""
    scopes = {scope: runs for scope, runs in find_scopes(recorded).items() if runs}
    for scope, runs in scopes.items():
        yield _draft(recorded, f"graph_{scope}", runs)
    if scopes:
        yield _draft(recorded, "graph_scopes", [run for runs in scopes.values() for run in runs])


def _draft(recorded: Recorded, kind: str, runs: Sequence[Sequence[int]]) -> Draft:
    merged = merge(recorded, runs)
    call_ns = _call_ns(recorded, merged.size)

    def low(timing: Timing) -> Timing:
        return launched_at_once(recorded, timing, merged, call_ns)

    def high(timing: Timing) -> Timing:
        free = launched_at_once(recorded, timing, merged, np.zeros_like(call_ns))
        return back_to_back(free, merged)

    return Draft(kind, _KINDS, low, high)


def _call_ns(recorded: Recorded, size: IntArray) -> IntArray:
    """What each graph's launch call takes: as in this recording where it has some, else as stated."""
    count = recorded.launch_count
    own_ns = recorded.graph.timing.own_ns
    is_graph = np.array(["GraphLaunch" in name for name in recorded.call_names], dtype=np.bool_) & (count > 0)
    if int(is_graph.sum()) >= ENOUGH.value:
        return np.full(len(size), int(np.median(own_ns[is_graph])), dtype=np.int64)
    single = (count == 1) & ~is_graph
    one_ns = float(np.median(own_ns[single])) if single.any() else 0.0
    return (CALL.value * one_ns + NODE.value * size).astype(np.int64)
