"""Expert-parallel passes as each dispatcher spells them: dispatch, combine, and the backward of both.

All spellings of one pass move the same data in the same time, launch as many kernels and wait for the same
peers; they differ in names, in control kernels and in how the host learns the token counts. A pass begins on
the communication stream and is finished where its result is needed, so that compute can run between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.simulate.script import COMPUTE, EXPERT_PARALLEL, Script

_COUNT_BYTES: Final = 2_048
_PROBS_FRAC: Final = 0.07
"""Probabilities travel beside the tokens."""
_PERMUTE: Final = 0.9
"""A permutation of all tokens, in small kernels."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass under way: the event of its end (None on the compute stream), and what follows it."""

    ends: int | None
    then: Callable[[], None]


def finish(script: Script, begun: Pass) -> None:
    """Let compute wait for a pass, and undo or redo the local order of tokens."""
    if begun.ends is not None:
        script.wait(COMPUTE, begun.ends)
    begun.then()


def begin(script: Script, operation: str) -> Pass:
    """Begin "dispatch", "combine", "combine_bwd" (which dispatches) or "dispatch_bwd" (which combines)."""
    write = _PASSES[script.knobs.dispatcher][operation]
    with script.range(_NODES[operation], "node"):
        return write(_Moving(script, operation))


class _Moving:
    """Communication kernels of one pass; the first of them is the one that waits for the peers."""

    def __init__(self, script: Script, operation: str) -> None:
        self.script, self.operation = script, operation
        hybrid = script.knobs.dispatcher == "hybridep" and not script.knobs.ep_overlap
        self.stream = COMPUTE if hybrid else EXPERT_PARALLEL
        self._us = script.knobs.dispatch_us * script.imbalance()
        self._late_us = script.knobs.peer_late_us
        self._pieces = 0

    def control(self, kernel: str, share: float, mark: int | None = None) -> None:
        """A control kernel that takes a share of the pass's control time."""
        self._move(kernel, self._us * self.script.knobs.control_frac * share, mark)

    def payload(self, kernel: str, share: float = 1.0, *, alone: bool = False) -> None:
        """A kernel that moves a share of the data; `alone`: no control kernel took any of the time."""
        kept = 1.0 if alone else 1 - self.script.knobs.control_frac
        self._move(kernel, self._us * kept * share, None)

    def _move(self, kernel: str, us: float, mark: int | None) -> None:
        self._pieces += 1
        name = f"{self.operation} {self._pieces}"
        late_us = self._late_us if self._pieces == 1 else 0.0
        self.script.communicate(kernel, us, self.stream, name=name, late_us=late_us, mark=mark)

    def enter(self) -> None:
        """What compute did so far comes first."""
        if self.stream != COMPUTE:
            self.script.after(COMPUTE, self.stream)

    def leave(self, then: Callable[[], None]) -> Pass:
        """The pass is under way."""
        return Pass(None if self.stream == COMPUTE else self.script.record(self.stream), then)

    def local(self, kernel: str, share: float = _PERMUTE) -> None:
        """A local reordering of tokens."""
        us = self.script.knobs.small_kernel_us * share
        self.script.kernel(kernel, us, name=f"{self.operation} {kernel}")

    def row_map(self) -> None:
        """Which token goes where; in the preprocess graph where that is captured."""
        with self.script.graph("moe_preprocess", captured=self.script.knobs.graph_preprocess):
            self.local("multihot", 0.2)
            self.local("row_id_map", 0.2)


def _alltoall_dispatch(moving: _Moving) -> Pass:
    script = moving.script
    moving.enter()
    moving.control("nccl_all_gather", 1.0)
    moving.row_map()
    if script.knobs.token_sync:
        script.read_back(_COUNT_BYTES, EXPERT_PARALLEL, "token_counts")
    moving.local("permute")
    moving.enter()
    moving.payload("nccl_send_recv", 1 - _PROBS_FRAC)
    moving.payload("nccl_send_recv", _PROBS_FRAC)
    return moving.leave(lambda: moving.local("sort_chunks", 0.5))


def _alltoall_combine(moving: _Moving) -> Pass:
    moving.local("sort_chunks", 0.5)
    moving.enter()
    moving.payload("nccl_send_recv", alone=True)
    return moving.leave(lambda: moving.local("unpermute"))


def _alltoall_combine_bwd(moving: _Moving) -> Pass:
    moving.local("unpermute_bwd")
    moving.enter()
    moving.payload("nccl_send_recv", alone=True)
    return moving.leave(lambda: moving.local("sort_chunks", 0.5))


def _alltoall_dispatch_bwd(moving: _Moving) -> Pass:
    moving.local("sort_chunks", 0.5)
    moving.enter()
    script = moving.script
    moving.payload("nccl_send_recv", (1 - _PROBS_FRAC) / (1 - script.knobs.control_frac))
    moving.payload("nccl_send_recv", _PROBS_FRAC / (1 - script.knobs.control_frac))
    return moving.leave(lambda: moving.local("unpermute"))


def _deepep_dispatch(moving: _Moving) -> Pass:
    script = moving.script
    moving.enter()
    moving.control("deepep_layout", 0.2)
    mark = script.new_event()
    moving.control("deepep_notify_dispatch", 0.8, mark)
    if script.knobs.token_sync:
        script.spin(mark)
    moving.enter()
    moving.payload("deepep_dispatch")

    def permute() -> None:
        moving.row_map()
        moving.local("permute", 1.4)

    return moving.leave(permute)


def _deepep_combine(moving: _Moving) -> Pass:
    moving.local("unpermute", 1.4)
    moving.enter()
    moving.control("deepep_cached_notify_combine", 1.0)
    moving.payload("deepep_combine")
    return moving.leave(lambda: None)


def _deepep_combine_bwd(moving: _Moving) -> Pass:
    moving.enter()
    moving.control("deepep_cached_notify_dispatch", 1.0)
    moving.payload("deepep_dispatch")
    return moving.leave(lambda: moving.local("permute", 1.4))


def _deepep_dispatch_bwd(moving: _Moving) -> Pass:
    moving.local("unpermute", 1.0)
    moving.local("multihot", 0.4)
    moving.enter()
    moving.control("deepep_cached_notify_combine", 1.0)
    moving.payload("deepep_combine")
    return moving.leave(lambda: None)


def _hybridep_dispatch(moving: _Moving) -> Pass:
    script = moving.script
    moving.enter()
    moving.control("hybridep_gather_map", 0.4)
    moving.control("hybridep_scan", 0.3)
    if script.knobs.token_sync:
        script.read_back(_COUNT_BYTES, moving.stream, "token_counts")
    moving.enter()
    moving.control("hybridep_sync", 0.3)
    moving.payload("hybridep_dispatch_fwd")

    def permute() -> None:
        with script.graph("moe_preprocess", captured=script.knobs.graph_preprocess):
            moving.local("multihot", 0.4)
        moving.local("hybridep_permute", 1.4)

    return moving.leave(permute)


def _hybridep_combine(moving: _Moving) -> Pass:
    moving.local("hybridep_unpermute", 1.4)
    moving.enter()
    moving.control("hybridep_sync", 1.0)
    moving.payload("hybridep_combine_fwd")
    return moving.leave(lambda: None)


def _hybridep_combine_bwd(moving: _Moving) -> Pass:
    moving.enter()
    moving.control("hybridep_sync", 1.0)
    moving.payload("hybridep_dispatch_bwd")
    return moving.leave(lambda: moving.local("hybridep_permute", 1.4))


def _hybridep_dispatch_bwd(moving: _Moving) -> Pass:
    moving.local("hybridep_unpermute", 1.4)
    moving.enter()
    moving.control("hybridep_sync", 0.8)
    moving.payload("hybridep_combine_bwd")
    moving.control("hybridep_expected", 0.2)
    return moving.leave(lambda: None)


def _allgather_dispatch(moving: _Moving) -> Pass:
    moving.enter()
    moving.control("nccl_all_gather", 0.5)
    moving.control("nccl_all_gather", 0.5)
    moving.payload("nccl_all_gather")

    def permute() -> None:
        moving.row_map()
        if moving.script.knobs.token_sync:
            moving.script.read_back(_COUNT_BYTES, COMPUTE, "token_counts")
        moving.local("permute", 1.4)

    return moving.leave(permute)


def _scatter(moving: _Moving) -> Pass:
    moving.local("unpermute", 1.4)
    moving.enter()
    moving.payload("nccl_reduce_scatter", alone=True)
    return moving.leave(lambda: None)


def _gather(moving: _Moving) -> Pass:
    moving.enter()
    moving.payload("nccl_all_gather", alone=True)
    return moving.leave(lambda: moving.local("permute", 1.4))


_NODES: Final = {
    "dispatch": "moe_dispatch forward",
    "combine": "moe_combine forward",
    "combine_bwd": "moe_combine backward",
    "dispatch_bwd": "moe_dispatch backward",
}
"""Ranges of Megatron-Core's schedule nodes."""

_PASSES: Final[dict[str, dict[str, Callable[[_Moving], Pass]]]] = {
    "alltoall": {
        "dispatch": _alltoall_dispatch,
        "combine": _alltoall_combine,
        "combine_bwd": _alltoall_combine_bwd,
        "dispatch_bwd": _alltoall_dispatch_bwd,
    },
    "deepep": {
        "dispatch": _deepep_dispatch,
        "combine": _deepep_combine,
        "combine_bwd": _deepep_combine_bwd,
        "dispatch_bwd": _deepep_dispatch_bwd,
    },
    "hybridep": {
        "dispatch": _hybridep_dispatch,
        "combine": _hybridep_combine,
        "combine_bwd": _hybridep_combine_bwd,
        "dispatch_bwd": _hybridep_dispatch_bwd,
    },
    "allgather": {
        "dispatch": _allgather_dispatch,
        "combine": _scatter,
        "combine_bwd": _gather,
        "dispatch_bwd": _scatter,
    },
}
