"""Recordings of several runs, by what cannot be of one: a rank twice, each time with other communicators."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from traces.ranks.cause import ProblemKind
from traces.ranks.problems import Problem, apart_in_time, is_named, unix_ns
from traces.ranks.summary import RankSummary


def other_runs(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """Recordings that hang together by their communicators, and hold ranks that a larger such set has too."""
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
    return [Problem(ProblemKind.MIXED_RUNS, tuple(sorted(gone)), reason, True)] if gone else []


def same_processes(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """A process on a GPU that has another recording, at another time, where no communicator joins the two.

    The number of a process may be that of another host's as well. The one stays that overlaps with the most.
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
    return [Problem(ProblemKind.MIXED_RUNS, tuple(sorted(gone)), reason, True)] if gone else []


def _by_communicators(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[list[int]]:
    """Sets of recordings that communicators join, one after the other."""
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


def _same_process(summaries: Sequence[RankSummary], left: Sequence[int]) -> Iterator[tuple[int, int]]:
    of_process: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index in left:
        identity = summaries[index].identity
        if identity.process is not None and identity.rank is None:
            of_process[identity.process, identity.device].append(index)
    for several in of_process.values():
        for before, index in pairwise(several):
            for one in dict.fromkeys((several[0], before)):  # of thousands, not each with each
                if apart_in_time(summaries[one], summaries[index]):
                    yield one, index


def _overlapping(summaries: Sequence[RankSummary], left: Sequence[int]) -> dict[int, int]:
    """With how many others each recording has a moment in common, by the clocks of their hosts."""
    spans = {index: span for index in left if (span := unix_ns(summaries[index])) is not None}
    begins, ends = sorted(begin for begin, _ in spans.values()), sorted(end for _, end in spans.values())
    return {
        index: 0
        if (span := spans.get(index)) is None
        else bisect_right(begins, span[1]) - bisect_left(ends, span[0])
        for index in left
    }
