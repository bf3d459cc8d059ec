"""What is wrong with a set of recordings: named, and never averaged in.

Recordings are of several runs where a rank is there twice, each time with other communicators, or
where GPUs or programs differ and no communicator is in common.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np

from traces.arrays import IntArray, distinct
from traces.frozen import frozen
from traces.limits import MOST, WALL, Limit
from traces.ranks.matching.match import Matched
from traces.ranks.summaries.identity import recorded_size
from traces.ranks.summaries.summary import RankSummary
from traces.sections.cause import ProblemKind

OTHER_TIME: Final = Limit(60.0, "s", "ours: clocks of hosts in one cluster differ by far less")


@frozen
class RecordingProblem:
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
Problems = list[RecordingProblem]
Left = Mapping[int, RankSummary]
"""Recordings by their index as given, in the order of ranks, which does not hang on that."""


def _left_out(kind: ProblemKind, indices: Iterable[int], reason: str) -> Problems:
    """One problem of recordings that are left out, or none without any."""
    left_out = tuple(sorted(indices))
    if left_out:
        return [RecordingProblem(kind, left_out, reason, True)]
    return []


def same_recordings(left: Left) -> Problems:
    """Recordings that are there already."""
    recordings = set[tuple[int, int]]()
    again = []
    for index, summary in left.items():
        known = summary.identity.recording, summary.identity.device
        if known in recordings:
            again.append(index)
        recordings.add(known)
    return _left_out(ProblemKind.DUPLICATE, again, "the same recording is there already")


def same_ranks(left: Left) -> Problems:
    """Of recordings of one rank, all but the one that has communicators in common with the most
    others.
    """
    of_rank = defaultdict[int, list[int]](list)
    members = Counter[int]()
    for index, summary in left.items():
        members.update(summary.communicators)
        if summary.identity.rank is not None:
            of_rank[summary.identity.rank].append(index)
    again = set[int]()
    for indices in of_rank.values():
        again |= {*indices} - {max(indices, key=lambda index: _shared(left[index], members))}
    return _left_out(ProblemKind.DUPLICATE, again, "another recording is of the same rank")


def _shared(summary: RankSummary, members: Counter[int]) -> int:
    """How many are in the communicator of this one that most are in."""
    return max((members[key] for key in summary.communicators), default=0)


def unix_ns(left: Left) -> dict[int, tuple[int, int]]:
    """When recordings began and ended, by the clocks of hosts, of those that say so."""
    spans = {}
    for index, summary in left.items():
        known, start_ns = summary.identity, summary.identity.session_start_ns
        if start_ns is not None and known.end_ns > known.begin_ns:
            spans[index] = start_ns + known.begin_ns, start_ns + known.end_ns
    return spans


def other_sizes_and_times(left: Left) -> Problems:
    """Another world size than most, or another time."""
    size, unlike = _unlike({index: recorded_size(rank.identity) for index, rank in left.items()})
    reason = f"their run has another number of ranks than the {size} of most"
    elsewhere = _at_other_times(without(left, unlike))
    apart = f"they were recorded more than {OTHER_TIME.value:.0f} s before or after the others"
    return [
        *_left_out(ProblemKind.MIXED_RUNS, unlike, reason),
        *_left_out(ProblemKind.MIXED_RUNS, elsewhere, apart),
    ]


def _at_other_times(left: Left) -> set[int]:
    spans = unix_ns(left)
    clusters: list[set[int]] = []
    until_ns = 0
    for (begin_ns, end_ns), index in sorted((span, index) for index, span in spans.items()):
        if not clusters or begin_ns > until_ns + OTHER_TIME.value * 1e9:
            clusters.append(set())
        clusters[-1].add(index)
        until_ns = max(until_ns, end_ns)
    return {*spans} - max(clusters, key=len, default=set())


def versions(left: Left) -> Problems:
    """Recordings by another recorder than most."""
    _, unlike = _unlike(
        {index: (rank.identity.kind, rank.identity.version) for index, rank in left.items()}
    )
    if not unlike:
        return []
    return [
        RecordingProblem(
            ProblemKind.MIXED_VERSIONS,
            tuple(sorted(unlike)),
            "they were made by another recorder, or another version of it, than most",
        )
    ]


def _unlike(values: Mapping[int, T | None]) -> tuple[T | None, list[int]]:
    """The value that most have, the first of equals, and whose is another; None is no value."""
    counts = Counter(values.values())
    del counts[None]
    usual = max(counts, key=counts.__getitem__, default=None)
    return usual, [index for index, value in values.items() if value not in (None, usual)]


def without(left: Left, gone: Container[int]) -> dict[int, RankSummary]:
    """The others, in their order."""
    return {index: summary for index, summary in left.items() if index not in gone}


def of_other_work(matched: Matched) -> IntArray:
    """Places of ranks most of whose collectives do something else than those of the others."""
    lengths = np.bincount(matched.recorded.place, minlength=matched.ranks)
    return np.flatnonzero(matched.disagreeing > MOST.value * lengths)


def truncated(matched: Matched) -> IntArray:
    """Places of ranks that miss more collectives of their groups than recordings of one run do.

    Of a group the ranks count that took part in any of its matched instances.
    """
    of_row = matched.group[matched.instance]
    groups = max(1, len(matched.groups))
    of_group = np.bincount(matched.group, minlength=groups)
    place, group = np.divmod(distinct(matched.place * groups + of_row), groups)
    could = np.bincount(place, weights=of_group[group], minlength=matched.ranks)
    took = np.bincount(matched.place, minlength=matched.ranks)
    return np.flatnonzero(took < (1 - WALL.value) * could)


def other_runs(left: Left) -> Problems:
    """Recordings that hang together by their communicators, and hold ranks that a larger such set
    has too.
    """
    leader = _by_communicators(left)
    sets = defaultdict[int, list[int]](list)
    for index in left:
        sets[leader[index]].append(index)
    rivals = defaultdict[int, set[int]](set)
    for first, second in _rivals(left):
        rivals[leader[first]].add(leader[second])
        rivals[leader[second]].add(leader[first])
    kept = set[int]()
    gone: list[int] = []
    for number in sorted(sets, key=lambda number: -len(sets[number])):  # the first of equals
        if left[number].communicators and kept & (rivals[number] - {number}):
            gone += sets[number]
        else:
            kept.add(number)
    return _left_out(
        ProblemKind.MIXED_RUNS,
        gone,
        "other recordings are of the same ranks, with other communicators",
    )


def same_processes(left: Left) -> Problems:
    """A process on a GPU that has another recording, at another time, where no communicator joins
    the two.

    The number of a process may be that of another host's as well. The one stays that overlaps with
    the most.
    """
    leader, beside = _by_communicators(left), _overlapping(left)
    gone = set[int]()
    for first, second in _same_process(left):
        if leader[first] != leader[second] and not {first, second} & gone:
            gone.add(second if beside[first] >= beside[second] else first)
    return _left_out(
        ProblemKind.MIXED_RUNS,
        gone,
        "another recording is of the same process on the same GPU, at another time",
    )


def _by_communicators(left: Left) -> dict[int, int]:
    """Of each one of those that it hangs together with by communicators, the same for all."""
    leader = {index: index for index in left}

    def find(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    first: dict[int, int] = {}
    for index, summary in left.items():
        for key in summary.communicators:
            leader[find(first.setdefault(key, index))] = find(index)
    return {index: find(index) for index in left}


def _rivals(left: Left) -> Iterator[tuple[int, int]]:
    """Pairs that cannot be two ranks of one run: one rank, or one process at two times."""
    of_rank: dict[int, int] = {}
    for index, summary in left.items():
        rank = summary.identity.rank
        if rank is not None and (first := of_rank.setdefault(rank, index)) != index:
            yield first, index
    yield from _same_process(left)


def _same_process(left: Left) -> Iterator[tuple[int, int]]:
    spans = unix_ns(left)
    of_process = defaultdict[tuple[int, int], list[int]](list)
    for index in spans:
        identity = left[index].identity
        if identity.process is not None and identity.rank is None:
            of_process[identity.process, identity.device].append(index)
    for indices in of_process.values():
        for before, index in pairwise(indices):
            for earlier in dict.fromkeys((indices[0], before)):  # of thousands, not each with each
                ours, theirs = spans[earlier], spans[index]
                if ours[1] < theirs[0] or theirs[1] < ours[0]:
                    yield earlier, index


def _overlapping(left: Left) -> dict[int, int]:
    """With how many each recording that tells its time has a moment in common."""
    spans = unix_ns(left)
    begins = sorted(begin for begin, _ in spans.values())
    ends = sorted(end for _, end in spans.values())
    return {
        index: bisect_right(begins, end) - bisect_left(ends, begin)
        for index, (begin, end) in spans.items()
    }
