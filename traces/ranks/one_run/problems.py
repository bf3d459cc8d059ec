"""What is wrong with a set of recordings: named, and never averaged in.

Recordings are of several runs where a rank is there twice, each time with other communicators, or
where GPUs or programs differ and no communicator is in common.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np

from traces.arrays import IntArray, distinct
from traces.frozen import frozen
from traces.limits import MOST, WALL, Limit
from traces.ranks.matching.match import Matched
from traces.ranks.summaries.identity import recorded_size
from traces.ranks.summaries.summary import Group, GroupSource, RankSummary
from traces.sections.cause import ProblemKind

OTHER_TIME: Final = Limit(60.0, "s", "ours: clocks of hosts in one cluster differ by far less")


@frozen
class Problem:
    """One of them. `indices`: of the recordings it is about, as given; `ranks`: of ranks nobody
    recorded.

    `left_out`: whether these recordings are not part of the run's figures.
    """

    kind: ProblemKind
    indices: tuple[int, ...]
    reason: str
    left_out: bool = False
    ranks: tuple[int, ...] = ()


T = TypeVar("T", bound=Hashable)


def _told(kind: ProblemKind, indices: Iterable[int], reason: str) -> list[Problem]:
    """One problem of recordings that are left out, or none without any."""
    found = tuple(sorted(indices))
    if found:
        return [Problem(kind, found, reason, True)]
    return []


def same_recordings(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """Recordings that are there already."""
    first: dict[tuple[int, int], int] = {}
    again = [
        index
        for index in left
        if first.setdefault(((one := summaries[index].identity).recording, one.device), index)
        != index
    ]
    return _told(ProblemKind.DUPLICATE, again, "the same recording is there already")


def same_ranks(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """Of recordings of one rank, all but the one that has communicators in common with the most
    others.
    """
    of_rank: dict[int, list[int]] = defaultdict(list)
    for index in left:
        if (rank := summaries[index].identity.rank) is not None:
            of_rank[rank].append(index)
    twice = [several for several in of_rank.values() if len(several) > 1]
    if not twice:
        return []
    keys = {
        index: {(one.source, one.key) for one in summaries[index].groups if is_named(one)}
        for index in left
    }
    members = Counter(key for index in left for key in keys[index])
    again = []
    for several in twice:
        most = max(several, key=lambda index: max((members[key] for key in keys[index]), default=0))
        again += [index for index in several if index != most]
    return _told(ProblemKind.DUPLICATE, again, "another recording is of the same rank")


def is_named(group: Group) -> bool:
    """Whether its key is that of no other run."""
    return group.source in (GroupSource.COMMUNICATOR, GroupSource.PEER)


def unix_ns(summary: RankSummary) -> tuple[int, int] | None:
    """When the recording began and ended; None where it does not say."""
    identity = summary.identity
    if identity.session_start_ns is None or identity.end_ns <= identity.begin_ns:
        return None
    return (
        identity.session_start_ns + identity.begin_ns,
        identity.session_start_ns + identity.end_ns,
    )


def other_sizes_and_times(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """Another world size than most, or another time."""
    sizes = {index: recorded_size(summaries[index].identity) for index in left}
    size = _most_common(list(sizes.values()))
    others = [index for index in left if size is not None and sizes[index] not in (None, size)]
    reason = f"their run has another number of ranks than the {size} of most"
    elsewhere = _at_other_times(summaries, [index for index in left if index not in others])
    apart = f"they were recorded more than {OTHER_TIME.value:.0f} s before or after the others"
    return [
        *_told(ProblemKind.MIXED_RUNS, others, reason),
        *_told(ProblemKind.MIXED_RUNS, elsewhere, apart),
    ]


def _at_other_times(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[int]:
    told = ((unix_ns(summaries[index]), index) for index in left)
    spans = sorted((*span, index) for span, index in told if span is not None)
    clusters: list[list[int]] = []
    until_ns = 0
    for begin_ns, end_ns, index in spans:
        if not clusters or begin_ns > until_ns + OTHER_TIME.value * 1e9:
            clusters.append([])
        clusters[-1].append(index)
        until_ns = max(until_ns, end_ns)
    most = max(clusters, key=len, default=[])
    return [index for cluster in clusters if cluster is not most for index in cluster]


def versions(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """Recordings by another recorder than most."""
    kinds = [(summaries[index].identity.kind, summaries[index].identity.version) for index in left]
    usual = _most_common(kinds)
    others = tuple(index for index, kind in zip(left, kinds, strict=True) if kind != usual)
    if not others:
        return []
    reason = "they were made by another recorder, or another version of it, than most"
    return [Problem(ProblemKind.MIXED_VERSIONS, others, reason)]


def _most_common(values: Sequence[T | None]) -> T | None:
    """The value that most have; the first of equals, None where there is none."""
    counts = Counter(value for value in values if value is not None)
    return max(counts, key=counts.__getitem__, default=None)


def of_other_work(matched: Matched, lengths: IntArray) -> IntArray:
    """Places of ranks most of whose collectives do something else than those of the others."""
    return np.flatnonzero(matched.disagreeing > MOST.value * lengths)


def truncated(matched: Matched, count: int) -> IntArray:
    """Places of ranks that miss more collectives of their groups than recordings of one run do.

    Of a group the ranks count that took part in any of its matched instances.
    """
    of_row = matched.group[matched.instance]
    groups = max(1, len(matched.groups))
    there = np.bincount(matched.group, minlength=groups)
    place, group = np.divmod(distinct(matched.place * groups + of_row), groups)
    could = np.bincount(place, weights=there[group], minlength=count)
    took = np.bincount(matched.place, minlength=count)
    return np.flatnonzero(took < (1 - WALL.value) * could)


def other_runs(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """Recordings that hang together by their communicators, and hold ranks that a larger such set
    has too.
    """
    if not (pairs := list(_rivals(summaries, left))):
        return []
    sets = _by_communicators(summaries, left)
    of_index = {index: number for number, one in enumerate(sets) for index in one}
    rivals: dict[int, set[int]] = defaultdict(set)
    for one, other in pairs:
        rivals[of_index[one]].add(of_index[other])
        rivals[of_index[other]].add(of_index[one])
    kept: set[int] = set()
    gone: list[int] = []
    for number in sorted(range(len(sets)), key=lambda number: (-len(sets[number]), sets[number])):
        named = any(is_named(group) for index in sets[number] for group in summaries[index].groups)
        if named and kept & (rivals[number] - {number}):
            gone += sets[number]
        else:
            kept.add(number)
    reason = "other recordings are of the same ranks, with other communicators"
    return _told(ProblemKind.MIXED_RUNS, gone, reason)


def same_processes(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """A process on a GPU that has another recording, at another time, where no communicator joins
    the two.

    The number of a process may be that of another host's as well. The one stays that overlaps with
    the most.
    """
    if not (pairs := list(_same_process(summaries, left))):
        return []
    sets = _by_communicators(summaries, left)
    of_index = {index: number for number, one in enumerate(sets) for index in one}
    beside = _overlapping(summaries, left)
    gone: set[int] = set()
    for one, other in pairs:
        if of_index[one] != of_index[other] and not {one, other} & gone:
            gone.add(other if beside[one] >= beside[other] else one)
    reason = "another recording is of the same process on the same GPU, at another time"
    return _told(ProblemKind.MIXED_RUNS, gone, reason)


def _by_communicators(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[list[int]]:
    leader = {index: index for index in left}

    def find(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    first: dict[int, int] = {}
    for index in left:
        for group in summaries[index].groups:
            if is_named(group):
                ours, theirs = sorted((find(index), find(first.setdefault(group.key, index))))
                leader[theirs] = ours
    sets: dict[int, list[int]] = defaultdict(list)
    for index in left:
        sets[find(index)].append(index)
    return list(sets.values())


def _rivals(summaries: Sequence[RankSummary], left: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs that cannot be two ranks of one run: one rank, or one process at two times."""
    of_rank: dict[int, int] = {}
    for index in left:
        rank = summaries[index].identity.rank
        if rank is not None and (first := of_rank.setdefault(rank, index)) != index:
            yield first, index
    yield from _same_process(summaries, left)


def _same_process(
    summaries: Sequence[RankSummary], left: Sequence[int]
) -> Iterator[tuple[int, int]]:
    of_process: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index in left:
        identity = summaries[index].identity
        if identity.process is not None and identity.rank is None:
            of_process[identity.process, identity.device].append(index)
    for several in of_process.values():
        for before, index in pairwise(several):
            for one in dict.fromkeys((several[0], before)):  # of thousands, not each with each
                ours, theirs = unix_ns(summaries[one]), unix_ns(summaries[index])
                if ours and theirs and (ours[1] < theirs[0] or theirs[1] < ours[0]):
                    yield one, index


def _overlapping(summaries: Sequence[RankSummary], left: Sequence[int]) -> dict[int, int]:
    """With how many each recording that tells its time has a moment in common, by the clocks of
    hosts.
    """
    spans = {index: span for index in left if (span := unix_ns(summaries[index])) is not None}
    begins = sorted(begin for begin, _ in spans.values())
    ends = sorted(end for _, end in spans.values())
    return {
        index: bisect_right(begins, end) - bisect_left(ends, begin)
        for index, (begin, end) in spans.items()
    }
