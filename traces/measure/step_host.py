"""What the launching threads did during a step: their CUDA calls and NVTX ranges, nested as recorded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from traces.columns import NULL, Calls, IntArray, Ranges, distinct
from traces.limits import Limit
from traces.measure.timeline_columns import Texts, longest
from traces.names.public_names import public_call, public_range
from traces.sections.tables import HostLane
from traces.timeline import RankTimeline

CALLS: Final = Limit(12_000, "calls", "ours: one for each activity that a step can show; a quarter of a MB")
RANGES: Final = Limit(6_000, "ranges", "ours: an eighth of a MB; the longest are those that can be seen")
_THREAD_BITS: Final = 0xFFFFFF


@dataclass(frozen=True, slots=True)
class Host:
    """Lanes by thread, ranges before calls, outer before inner; `left_out`: shorter rows not among them."""

    lanes: tuple[HostLane, ...]
    left_out: int


def host_lanes(rank: RankTimeline, within_ns: tuple[int, int], names: Texts, most: int | None) -> Host:
    """The launching threads within a stretch, `most` rows of each kind where given; names go into `names`."""
    columns, launched = rank.columns, rank.activities.launch_thread
    threads = distinct(launched[launched != NULL])
    kinds: tuple[_Kind, ...] = (
        _Kind("ranges", columns.ranges, columns.ranges.text, columns.range_texts, public_range, RANGES),
        _Kind("calls", columns.calls, columns.calls.name, columns.call_names, public_call, CALLS),
    )
    found = [_rows(kind, threads, within_ns, most) for kind in kinds]
    lanes = [
        lane
        for thread in threads.tolist()
        for kind, (mine, _) in zip(kinds, found, strict=True)
        for lane in _lanes(kind, thread, mine, within_ns, names)
    ]
    return Host(tuple(lanes), sum(left_out for _, left_out in found))


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of rows, where their texts stand and what of a text may be shown."""

    name: Literal["calls", "ranges"]
    rows: Calls | Ranges
    text: IntArray
    texts: tuple[str, ...]
    public: Callable[[str], str | None]
    most: Limit


def _rows(
    kind: _Kind, threads: IntArray, within_ns: tuple[int, int], most: int | None
) -> tuple[IntArray, int]:
    """Places of the longest rows within the stretch, in order, outer ones first; and how many others."""
    rows = kind.rows
    timed = (rows.start_ns != NULL) & (rows.start_ns < within_ns[1]) & (rows.end_ns > within_ns[0])
    mine = np.flatnonzero(timed & np.isin(rows.thread_gid, threads))
    mine = mine[np.lexsort((-rows.end_ns[mine], rows.start_ns[mine]))]
    limit = int(kind.most.value) if most is None else most
    kept = mine[longest((rows.end_ns - rows.start_ns)[mine], limit)]
    return kept, len(mine) - len(kept)


def _lanes(
    kind: _Kind, thread: int, places: IntArray, within_ns: tuple[int, int], names: Texts
) -> Iterator[HostLane]:
    rows, (first_ns, last_ns) = kind.rows, within_ns
    mine = places[rows.thread_gid[places] == thread]
    start_ns, end_ns = np.maximum(rows.start_ns[mine], first_ns), np.minimum(rows.end_ns[mine], last_ns)
    depth = _depths(start_ns, end_ns)
    name = names.places(
        kind.text[mine], lambda code: kind.public(kind.texts[code]), lambda code: kind.texts[code]
    )
    for level in distinct(depth).tolist():
        on = depth == level
        yield HostLane(
            thread=thread & _THREAD_BITS,
            kind=kind.name,
            depth=level,
            at_ns=tuple((start_ns[on] - first_ns).tolist()),
            length_ns=tuple((end_ns - start_ns)[on].tolist()),
            name=tuple(name[on].tolist()),
        )


def _depths(start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """The first level that is free when a row starts, which for nested rows is how deep each lies."""
    free_ns: list[int] = []
    depth = np.empty(len(start_ns), dtype=np.int64)
    for place, (start, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        level = next((level for level, at_ns in enumerate(free_ns) if at_ns <= start), len(free_ns))
        free_ns[level : level + 1] = [end]
        depth[place] = level
    return depth
