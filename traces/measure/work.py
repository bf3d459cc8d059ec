"""What stays of a step when its kernels change: the input it is given, and the ranges around its
work.

Another precision, container or library has other kernels of other names; a step still gets as many
bytes of input, and the program still runs through the same operators and ranges.
"""

from collections import Counter, defaultdict
from statistics import median

import numpy as np

from traces.account.host import input_copies
from traces.arrays import row_by_row, summed
from traces.columns import NULL
from traces.measure.data_loading import pageable_copies
from traces.measure.kernel_table import ROWS
from traces.missing import Missing
from traces.names.ranges import family, public_range
from traces.sections.work import HostCopies, InputCopies, Work
from traces.steps.found import Steps
from traces.timeline import RankTimeline


def measure_work(rank: RankTimeline, steps: Steps) -> Work:
    """Of one rank, over its used steps, or over the window where there are none.

    `input_sizes`: copies that recur with equal bytes, a pass of kernels apart, largest first.
    `ranges`: by family, of how many a typical step has, those of frameworks and training loops
    alone.
    """
    rows, at = rank.activities, input_copies(rank)
    at = at[steps.windows.hold(rows.start_ns[at])]
    sizes = Counter(rank.copy_bytes(at).tolist())
    largest = sorted((size for size in sizes if size > 0), reverse=True)[: ROWS.whole]
    copies = tuple(InputCopies(size, sizes[size]) for size in largest)
    ways = [_host_copies(rank, steps, kind) for kind in ("memcpy_h2d", "memcpy_d2h")]
    return Work(copies, dict(_families(rank, steps)), *ways)


def _host_copies(rank: RankTimeline, steps: Steps, kind: str) -> HostCopies:
    rows = rank.activities
    at = np.flatnonzero(rows.copies(kind) & steps.windows.hold(rows.start_ns))
    size_bytes = rank.copy_bytes(at)
    if (size_bytes == NULL).any():
        unknown = rank.lacks("the size of some copies was not recorded", "version")
        return HostCopies(len(at), unknown, unknown)
    pageable = pageable_copies(rank, at)
    pageable_bytes = pageable if isinstance(pageable, Missing) else summed(size_bytes[pageable])
    return HostCopies(len(at), summed(size_bytes), pageable_bytes)


def _families(rank: RankTimeline, steps: Steps) -> list[tuple[str, float]]:
    """Public families of ranges, each with its median number in a step, the most frequent first."""
    begin_ns, end_ns = _launched(rank, steps)
    ranges, texts = rank.columns.ranges, rank.columns.range_texts
    mine = np.isin(ranges.thread_gid, rank.activities.launching_threads) & (ranges.text >= 0)
    start_ns, text = ranges.start_ns[mine], ranges.text[mine]
    counts = defaultdict[str, list[int]](lambda: [0] * len(begin_ns))
    for place, (begin, end) in enumerate(zip(begin_ns, end_ns, strict=True)):
        codes, numbers = np.unique(
            text[(start_ns >= begin) & (start_ns <= end)], return_counts=True
        )
        for code, number in row_by_row(codes, numbers):
            if shown := public_range(texts[code]):
                counts[family(shown)][place] += number
    families = list[tuple[str, float]]()
    for name, by_step in counts.items():
        if usual := float(median(by_step)):
            families.append((name, usual))
    return sorted(families, key=lambda row: (-row[1], row[0]))[: ROWS.whole]


def _launched(rank: RankTimeline, steps: Steps) -> tuple[list[int], list[int]]:
    """When the kernels of each used step, or of the window, were launched: first and last."""
    rows = rank.activities
    mine = ~rows.is_transfer & rows.is_launched
    place = steps.used_at(rows.start_ns)
    if not steps.used:
        place = np.where(steps.windows.hold(rows.start_ns), 0, -1)
    begins_ns, ends_ns = list[int](), list[int]()
    for number in range(max(1, len(steps.used))):
        launched = rows.launch_ns[mine & (place == number)]
        if len(launched):
            begins_ns.append(int(launched.min()))
            ends_ns.append(int(launched.max()))
    return begins_ns, ends_ns
