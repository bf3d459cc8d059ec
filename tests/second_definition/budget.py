"""Every nanosecond of the windows in one bucket."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from tests.second_definition.rows import Rank, Work

KINDS = re.findall(
    r"\w+",
    "ep_dispatch ep_combine ep_a2a ep_control dp_reduce_scatter dp_all_gather all_reduce tp pp_p2p cp "
    "sendrecv_unresolved other_comm",
)
"""Of two kinds at once the earlier counts."""
Windows = Sequence[tuple[int, int]]


def pieces(
    works: Iterable[Work], windows: Windows, more: Iterable[int] = ()
) -> Iterator[tuple[int, int, list[Work]]]:
    """The windows cut wherever anything begins or ends, each with what runs in it."""
    works = list(works)
    cuts = sorted({*(t for w in works for t in (w.start, w.end)), *(t for w in windows for t in w), *more})
    for start, end in pairwise(cuts):
        if any(lo <= start and end <= hi for lo, hi in windows):
            yield start, end, [work for work in works if work.start <= start and end <= work.end]


def first(running: Iterable[Work]) -> Work:
    """Of work at once the one that started first; equal starts by stream, then correlation id."""
    return min(running, key=lambda work: (work.start, work.stream, work.correlation))


def budget(rank: Rank, windows: Windows) -> dict[str, Counter[str]]:
    """Buckets, kinds of exposed communication and copies, classes of compute, hidden communication."""
    said = {key: Counter[str]() for key in ("buckets", "comm", "copy", "compute", "hidden")}
    for start, end, running in pieces(rank.works, windows):
        length = end - start
        groups = {work.group for work in running}
        said["buckets"]["window"] += length
        if "compute" in groups:
            said["buckets"]["compute"] += length
            said["compute"][first(work for work in running if work.group == "compute").kind] += length
            said["hidden"]["comm"] += length * ("comm" in groups)
        elif "comm" in groups:
            said["buckets"]["exposed_comm"] += length
            said["comm"][min((w.kind for w in running if w.group == "comm"), key=KINDS.index)] += length
        elif "copy" in groups:
            said["buckets"]["exposed_copy"] += length
            said["copy"][first(running).kind] += length
        else:
            said["buckets"]["idle"] += length
    return said
