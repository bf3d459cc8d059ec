"""One grouped GEMM for the experts of a rank, instead of one GEMM each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

import numpy as np

from traces.columns import IntArray
from traces.names.kinds import COMM_KINDS
from traces.replay.changes.change import Draft, Recorded
from traces.replay.changes.launches import back_to_back, launched_at_once, merge, uninterrupted
from traces.replay.graph import Timing
from traces.timeline import Bucket

_KINDS: Final = {"compute": ("gemm", "quantize"), "host_overhead": ("launch", "python", "arrival")}


@dataclass(frozen=True, slots=True)
class _Experts:
    """GEMMs of one kernel that follow each other, and the quantisation before each of them."""

    gemms: list[int]
    quantised: list[int]

    @property
    def all(self) -> list[int]:
        return sorted(self.gemms + self.quantised)


def grouped_drafts(recorded: Recorded) -> Iterator[Draft]:
    """`grouped_experts`: between a dispatch and its combine, GEMMs of one kernel in a row become one.

    Pessimistic: whole waves of blocks, each as long as the slowest seen, and quantisation as before. The
    other end: no part of a wave is idle, what any kernel takes (the shortest one's time) is taken once, and
    quantisation takes as long as the longest of it.
    """
    runs = _expert_runs(recorded)
    if not runs:
        return
    merged = merge(recorded, [run.all for run in runs])
    count = recorded.subject.sm_count
    blocks = recorded.subject.rank.blocks
    rows = recorded.rows
    lengths = (rows.end_ns - rows.start_ns)[rows.bucket == Bucket.COMPUTE]
    fixed_ns = int(lengths[lengths > 0].min())

    def low(timing: Timing) -> Timing:
        once = launched_at_once(recorded, timing, merged)
        return replace(once, duration_ns=_by_waves(timing.duration_ns, blocks, runs, count))

    def high(timing: Timing) -> Timing:
        once = back_to_back(launched_at_once(recorded, timing, merged), merged)
        filled = _filled(timing.duration_ns, blocks, runs, count, fixed_ns)
        return replace(once, duration_ns=filled)

    yield Draft("grouped_experts", _KINDS, low, high)


def _by_waves(
    duration_ns: IntArray, blocks: IntArray, runs: Sequence[_Experts], count: int | None
) -> IntArray:
    result = duration_ns.copy()
    for run in runs:
        sizes = blocks[run.gemms]
        if count is None or not (sizes > 0).all():
            continue
        wave_ns = max(
            int(duration_ns[gemm]) / ceil(int(size) / count)
            for gemm, size in zip(run.gemms, sizes.tolist(), strict=True)
        )
        _shrink(result, run.gemms, ceil(int(sizes.sum()) / count) * wave_ns)
    return result


def _filled(
    duration_ns: IntArray, blocks: IntArray, runs: Sequence[_Experts], count: int | None, fixed_ns: int
) -> IntArray:
    result = duration_ns.copy()
    for run in runs:
        quantised = run.quantised
        result[quantised] = 0
        if quantised:
            result[quantised[0]] = duration_ns[quantised].max()
        sizes = blocks[run.gemms]
        if count is not None and (sizes > 0).all():
            filled_ns = np.maximum(duration_ns[run.gemms] - fixed_ns, 0) * np.minimum(1.0, sizes / count)
            _shrink(result, run.gemms, fixed_ns + filled_ns.sum() / min(1.0, int(sizes.sum()) / count))
    return result


def _shrink(result: IntArray, places: Sequence[int], to_ns: float) -> None:
    """Let some work take so long together, never longer than before."""
    whole_ns = int(result[places].sum())
    if whole_ns > to_ns:
        result[places] = np.ceil(result[places] * (to_ns / whole_ns)).astype(np.int64)


def _expert_runs(recorded: Recorded) -> list[_Experts]:
    rows, classes = recorded.rows, recorded.classes
    payload = rows.bucket == Bucket.COMM
    payload &= np.isin(rows.key, [COMM_KINDS.index(kind) for kind in ("ep_dispatch", "ep_combine", "ep_a2a")])
    exchanges = rows.start_ns[payload]
    attention = rows.start_ns[[one.class_ == "attention" for one in classes]]
    found = []
    for places in uninterrupted(recorded):
        for run in _rows_of_gemms(recorded, places):
            if len(run.gemms) > 1 and _between_exchanges(
                int(rows.start_ns[run.gemms[0]]), exchanges, attention
            ):
                found.append(run)
    return found


def _rows_of_gemms(recorded: Recorded, places: Sequence[int]) -> Iterator[_Experts]:
    """GEMMs of one kernel's name with at most quantisation between them."""
    rows, classes = recorded.rows, recorded.classes
    run = _Experts([], [])
    waiting: list[int] = []
    for place in places:
        one = classes[place]
        if one.class_ == "quantize":
            waiting.append(place)
            continue
        is_gemm = one.class_ == "gemm" and not one.subclass.startswith("grouped")
        if not is_gemm or (run.gemms and rows.name[run.gemms[-1]] != rows.name[place]):
            yield run
            run = _Experts([], [])
        if is_gemm:
            run.gemms.append(place)
            run.quantised.extend(waiting)
        waiting = []
    yield run


def _between_exchanges(start_ns: int, exchanges_ns: IntArray, attention_ns: IntArray) -> bool:
    """Whether the exchanges before and after an instant have no attention between them."""
    at = int(np.searchsorted(exchanges_ns, start_ns))
    if at == 0 or at == len(exchanges_ns):
        return False
    first, last = np.searchsorted(attention_ns, (exchanges_ns[at - 1], exchanges_ns[at]))
    return bool(first == last)
