"""Which steps there are, where they begin and end on the GPU, and which are used."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import numpy as np

from tests.second_definition.rows import EARLIEST, Rank, Work

NAMED = re.compile(r"^(iteration |train_step_|ProfilerStep#|step )\d+$")
INITIALISES = re.compile(r"^(cu(Module|Library)Load|cudaMalloc|cudaFree|cuMem)")
Stretch = tuple[int, int]


@dataclass
class Steps:
    """How steps were found, those that are used, by their index, and those left out, with the reason."""

    source: str
    used: dict[int, Stretch] = field(default_factory=dict)
    dropped: dict[int, str] = field(default_factory=dict)
    kernels: list[int] = field(default_factory=list)
    doubt: str = ""
    """Why the page does not settle which steps are used; empty where it does."""

    @property
    def windows(self) -> list[Stretch]:
        """The union of the used steps."""
        joined: list[Stretch] = []
        for start, end in self.used.values():
            if joined and joined[-1][1] == start:
                joined[-1] = joined[-1][0], end
            else:
                joined.append((start, end))
        return joined


def steps(rank: Rank) -> Steps:
    """Named ranges, else clusters of optimizer kernels, else one window."""
    for source, hosts in (("nvtx", _by_ranges(rank)), ("optimizer", _by_optimizer(rank))):
        if hosts:
            found = _judged(rank, source, hosts)
            if source == "optimizer":
                found.doubt = found.doubt or _doubt(rank, hosts, found)
            if found.used or found.doubt:
                return found
    found = Steps("none", {0: (min(w.start for w in rank.works), max(w.end for w in rank.works))})
    if any(not work.call for work in rank.works):
        found.doubt = "work without a launch row"
    return found


def _doubt(rank: Rank, hosts: list[Stretch], found: Steps) -> str:
    """Where the page does not say what is a tenth of the period, or what a head is like."""
    if len(hosts) < 3:
        return "two clusters of optimizer kernels"
    begins = sorted(work.start for work in rank.works if work.kind == "optimizer")
    gaps = [b - a for a, b in pairwise(begins)]
    if 10 * min(gaps) < max(gaps):
        return "clusters whose distances differ tenfold"
    kernels = [len([w for w in launched(rank, EARLIEST, end) if w.is_kernel]) for _, end in hosts[:2]]
    return "a longer head" if 2 * kernels[0] > kernels[1] else ""


def launched(rank: Rank, start: int, end: int) -> list[Work]:
    """Work whose launch call began in a stretch of the host's time."""
    return [work for work in rank.works if work.call and start <= work.call.start < end]


def _by_ranges(rank: Rank) -> list[Stretch]:
    """The named ranges of the thread that launches most kernels of those with such ranges."""
    kernels = [work for work in rank.works if work.is_kernel and work.call]
    named = [span for span in rank.spans["NVTX_EVENTS"] if NAMED.match(span.name)]
    launches = Counter(work.call.thread for work in kernels if work.call)
    if not named:
        return []
    thread = max({span.thread for span in named}, key=lambda thread: launches[thread])
    spans = sorted((span.start, span.end) for span in named if span.thread == thread)
    inside = sum(len([w for w in launched(rank, *span) if w.is_kernel]) for span in spans)
    return spans if 2 * inside >= len(kernels) else []


def _by_optimizer(rank: Rank) -> list[Stretch]:
    """A step ends with its cluster of optimizer kernels and the collectives launched directly behind it."""
    queue = sorted((w for w in rank.works if w.call), key=lambda w: (w.call.start if w.call else 0, w.start))
    places = [place for place, work in enumerate(queue) if work.kind == "optimizer"]
    gaps = [queue[b].start - queue[a].start for a, b in pairwise(places)]
    ends = []
    for number, place in enumerate(places):
        if number + 1 < len(places) and 10 * gaps[number] < median(gaps):
            continue  # the same cluster
        end = place + 1
        while end < len(queue) and queue[end].is_kernel and queue[end].kind in ("all_reduce", "other_comm"):
            end += 1
        ends.append(end)
    if len(ends) < 2:
        return []
    times = [work.call.start for work in queue if work.call] + [1 << 62]
    cut = [0, *ends] if ends[-1] == len(queue) else [0, *ends, len(queue)]
    names = [[w.name for w in queue[a:b] if w.is_kernel] for a, b in pairwise(cut)]
    head = len(names[0]) - len(names[1])
    if head > 0 and names[0][head:] == names[1]:
        cut[0] = [place for place in range(cut[1]) if queue[place].is_kernel][head]
    return [(times[a], times[b]) for a, b in pairwise(cut)]


def border(rank: Rank, host: int) -> int:
    """The earlier of the first compute launched in a step, and the end of the last work before it."""
    inside = launched(rank, host, 1 << 62)
    before = [work.end for work in launched(rank, EARLIEST, host)]
    if not before:
        return min(work.start for work in inside)
    return min([max(before), *(work.start for work in inside if work.group == "compute")])


def _judged(rank: Rank, source: str, hosts: list[Stretch]) -> Steps:
    spans = []
    for number, (start, end) in enumerate(hosts):
        following = hosts[number + 1][0] if number + 1 < len(hosts) else end
        spans.append(
            (border(rank, start), border(rank, end if launched(rank, end, following) else following))
        )
    spans[-1] = spans[-1][0], _last_end(rank, hosts, spans)
    if len(hosts) == 1:  # a range that occurs once is cut by what it launched
        own = [work.end for work in launched(rank, *hosts[0]) if work.group != "comm"]
        spans[0] = spans[0][0], max([spans[0][1], *own])
    found = Steps(source, dict(enumerate(spans)))
    counts = [len([w for w in launched(rank, *host) if w.is_kernel]) for host in hosts]
    found.kernels = counts
    if any(not work.call for work in rank.works):
        found.doubt = "work without a launch row"
    for number, count in enumerate(counts):
        others = sorted(counts[:number] + counts[number + 1 :])
        if not count or spans[number][0] >= spans[number][1]:
            found.dropped[number] = "no GPU work"
        elif others and count < 0.95 * others[(len(others) - 1) // 2]:
            found.dropped[number] = "partial"
    if source == "optimizer" and not any(w.kind == "optimizer" for w in launched(rank, *hosts[-1])):
        found.dropped.setdefault(len(hosts) - 1, "partial")
    for number in range(len(hosts)):
        if _is_flushed(rank, spans[number]):
            found.dropped.setdefault(number, "profiler flush")
    return _without_outliers(rank, found, hosts)


def _is_flushed(rank: Rank, span: Stretch) -> bool:
    """A profiler's flush over a border that takes over a twentieth of the step."""
    return any(
        flush.start <= edge <= flush.end
        and min(flush.end, span[1]) - max(flush.start, span[0]) > 0.05 * (span[1] - span[0])
        for flush in rank.spans["PROFILER_OVERHEAD"]
        for edge in span
    )


def _last_end(rank: Rank, hosts: list[Stretch], spans: list[Stretch]) -> int:
    """The last step's end, less what of its closing collectives most other steps hide under the next one."""
    end = spans[-1][1]
    if launched(rank, hosts[-1][1], 1 << 62):
        return end
    exposed = []
    for host, (_, until) in zip(hosts[:-1], spans[:-1], strict=True):
        works = launched(rank, *host)
        if any(work.group == "comm" and work.end > until for work in works):
            exposed.append(max(0, until - max((w.end for w in works if w.group != "comm"), default=until)))
    own = [work.end for work in launched(rank, *hosts[-1]) if work.group != "comm"]
    if not exposed or not own or 2 * len(exposed) < len(hosts) - 1:
        return end
    return min(end, max(own) + max(exposed))


def _without_outliers(rank: Rank, found: Steps, hosts: list[Stretch]) -> Steps:
    """Warm-up and hiccups, by the letter, and with single exceptions: where these differ it is open."""
    found.used = {number: span for number, span in found.used.items() if number not in found.dropped}
    length = {number: end - start for number, (start, end) in found.used.items()}
    if len(length) < 2:
        if length and found.source == "optimizer":
            found.doubt = found.doubt or "one stretch between optimizers"
        return found
    readings = [_outliers(rank, hosts, length, by_letter) for by_letter in (True, False)]
    if readings[0] != readings[1]:
        found.doubt = found.doubt or "rhythm, warm-up and hiccup of few steps"
    # of stretches between optimizers the shortest may be whole and the others hold more, or it may be cut
    counts = {*found.kernels} if found.source == "optimizer" else {found.kernels[number] for number in length}
    if len(length) < 8 and len(counts) > 1:  # what others do not hold is a hiccup at any number
        found.doubt = found.doubt or "few steps of several counts of kernels"
    found.dropped |= readings[0]
    found.used = {number: span for number, span in found.used.items() if number not in readings[0]}
    return found


def _outliers(rank: Rank, hosts: list[Stretch], length: dict[int, int], by_letter: bool) -> dict[int, str]:
    """Steps left out for their length."""
    dropped: dict[int, str] = {}
    if by_letter and _alternate(list(length.values()), 1):
        return dropped
    first, *rest = length
    if _is_warm_up(rank, hosts, length, by_letter):
        dropped[first] = "warm-up"
        length = {number: length[number] for number in rest}
    lengths = list(length.values())
    usual = median(lengths)
    spread = 1.4826 * median(abs(one - usual) for one in lengths)
    slow = [n for n, one in length.items() if one > usual + 3 * spread and one > 1.1 * usual]
    if len(length) < 8 or (not by_letter and (_alternate(lengths, 2) or 5 * len(slow) > max(5, len(length)))):
        return dropped
    return dropped | dict.fromkeys(slow, "hiccup")


def _alternate(lengths: list[int], least: int) -> bool:
    """A quarter or more of the steps lie outside a fifth around the median."""
    usual = median(lengths)
    far = sum(abs(one - usual) > 0.2 * usual for one in lengths)
    return far >= max(least, len(lengths) / 4)


def _is_warm_up(rank: Rank, hosts: list[Stretch], length: dict[int, int], by_letter: bool) -> bool:
    first, *rest = length
    others = [length[number] for number in rest]
    usual = median(others)
    if length[first] <= 1.05 * max(others):
        return False
    if not by_letter and _alternate(others, 2):
        return length[first] > 2 * max(others)
    more = length[first] - usual
    limit = 0.05 * usual if by_letter else max(0.05 * usual, 0.1 * more)
    if len(others) >= 2 and float(np.subtract(*np.percentile(others, (75, 25)))) < limit:
        return True
    spent = {number: _initialising(rank, hosts[number]) for number in length}
    return spent[first] - median(spent[number] for number in rest) > more / 2


def _initialising(rank: Rank, host: Stretch) -> int:
    calls = [c for c in rank.calls if host[0] <= c.start < host[1] and INITIALISES.match(c.name)]
    return sum(call.end - call.start for call in calls)
