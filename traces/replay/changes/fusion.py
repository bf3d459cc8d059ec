"""Fewer kernels: neighbours of routing, permutation, or norm and quantisation launched as one."""

from collections.abc import Iterator, Sequence
from typing import Final

from traces.names.kernels import KernelClass
from traces.replay.changes.change import Draft, Recorded
from traces.replay.changes.launches import back_to_back, launched_at_once, merge, runs_of, uninterrupted
from traces.replay.graph import Timing

_KINDS: Final = {"host_overhead": ("launch", "python", "arrival")}


def fusion_drafts(recorded: Recorded) -> Iterator[Draft]:
    """`fused_kernels`: of each run of kernels that a fusion exists for, only the first is launched.

    The fusions are Megatron-Core's of the router and of the permutation, and norm or activation with the
    quantisation that follows. What the kernels do still takes its time in the pessimistic end.
    """
    stretches = uninterrupted(recorded)
    runs = [
        run
        for places in stretches
        for family in range(2)
        for run in runs_of(places, [_family(recorded.classes[place]) == family for place in places])
    ]
    runs += [run for places in stretches for run in _quantised(recorded, places)]
    if not runs:
        return
    merged = merge(recorded, runs)

    def low(timing: Timing) -> Timing:
        return launched_at_once(recorded, timing, merged)

    def high(timing: Timing) -> Timing:
        return back_to_back(low(timing), merged)

    yield Draft("fused_kernels", _KINDS, low, high)


def _family(kind: KernelClass) -> int | None:
    """Which fusion a kernel could be part of; None where none."""
    if kind.class_ == "router" and kind.subclass != "map":
        return 0
    if kind.class_ in ("permute", "router"):
        return 1
    return None


def _quantised(recorded: Recorded, places: Sequence[int]) -> Iterator[list[int]]:
    """A norm or an activation with the quantisations that follow it at once."""
    classes = [recorded.classes[place].class_ for place in places]
    for at, class_ in enumerate(classes):
        end = at + 1
        while end < len(classes) and classes[end] == "quantize":
            end += 1
        if class_ in ("norm", "activation") and end > at + 1:
            yield list(places[at:end])
