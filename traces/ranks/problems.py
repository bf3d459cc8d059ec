"""What is wrong with a set of recordings: named, and never averaged in."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from traces.columns import IntArray, distinct
from traces.limits import Limit
from traces.ranks.cause import ProblemKind
from traces.ranks.match import Matched
from traces.ranks.numbers import recorded_size
from traces.ranks.summary import Group, GroupSource, RankSummary

TRUNCATED: Final = Limit(
    0.9, "fraction of the collectives of its groups", "ours: recordings stop within a step of each other"
)
OTHER_TIME: Final = Limit(60.0, "s", "ours: clocks of hosts in one cluster differ by far less")
OTHER_WORK: Final = Limit(
    0.5, "fraction of a rank's collectives", "ours: a rank of the same run does in all of them what others do"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One of them. `indices`: of the recordings it is about, as given; `ranks`: of ranks nobody recorded.

    `left_out`: whether these recordings are not part of the run's figures.
    """

    kind: ProblemKind
    indices: tuple[int, ...]
    reason: str
    left_out: bool = False
    ranks: tuple[int, ...] = ()


T = TypeVar("T", bound=Hashable)


def same_recordings(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """Recordings that are there already."""
    again = _again(left, lambda index: _recording(summaries[index]))
    reason = "the same recording is there already"
    return [Problem(ProblemKind.DUPLICATE, tuple(again), reason, True)] if again else []


def same_ranks(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """Of recordings of one rank, all but the one that has communicators in common with the most others."""
    of_rank: dict[int, list[int]] = defaultdict(list)
    for index in left:
        if (rank := summaries[index].identity.rank) is not None:
            of_rank[rank].append(index)
    twice = [several for several in of_rank.values() if len(several) > 1]
    if not twice:
        return []
    keys = {
        index: {(one.source, one.key) for one in summaries[index].groups if is_named(one)} for index in left
    }
    members = Counter(key for index in left for key in keys[index])
    again = []
    for several in twice:
        most = max(several, key=lambda index: max((members[key] for key in keys[index]), default=0))
        again += [index for index in several if index != most]
    reason = "another recording is of the same rank"
    return [Problem(ProblemKind.DUPLICATE, tuple(sorted(again)), reason, True)]


def is_named(group: Group) -> bool:
    """Whether its key is that of no other run."""
    return group.source in (GroupSource.COMMUNICATOR, GroupSource.PEER)


def apart_in_time(one: RankSummary, other: RankSummary) -> bool:
    """Whether two recordings are known to have no moment in common, by the clocks of their hosts."""
    ours, theirs = unix_ns(one), unix_ns(other)
    if ours is None or theirs is None:
        return False
    return ours[1] < theirs[0] or theirs[1] < ours[0]


def _again(left: Sequence[int], name: Callable[[int], Hashable]) -> list[int]:
    """Those whose name, unless None, another one before has."""
    first: dict[Hashable, int] = {}
    named = [(name(index), index) for index in left]
    return [index for key, index in named if key is not None and first.setdefault(key, index) != index]


def _recording(summary: RankSummary) -> tuple[int, int]:
    return summary.identity.recording, summary.identity.device


def unix_ns(summary: RankSummary) -> tuple[int, int] | None:
    """When the recording began and ended; None where it does not say."""
    identity = summary.identity
    if identity.session_start_ns is None or identity.end_ns <= identity.begin_ns:
        return None
    return identity.session_start_ns + identity.begin_ns, identity.session_start_ns + identity.end_ns


def other_sizes_and_times(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[Problem]:
    """Another world size than most, or another time."""
    sizes = {index: recorded_size(summaries[index].identity) for index in left}
    size = _most_common(list(sizes.values()))
    others = [index for index in left if size is not None and sizes[index] not in (None, size)]
    found = []
    if others:
        reason = f"their run has another number of ranks than the {size} of most"
        found.append(Problem(ProblemKind.MIXED_RUNS, tuple(others), reason, True))
    left = [index for index in left if index not in others]
    if elsewhere := _at_other_times(summaries, left):
        reason = f"they were recorded more than {OTHER_TIME.value:.0f} s before or after the others"
        found.append(Problem(ProblemKind.MIXED_RUNS, tuple(elsewhere), reason, True))
    return found


def _at_other_times(summaries: Sequence[RankSummary], left: Sequence[int]) -> list[int]:
    """Recordings whose UNIX times lie far from those of the most."""
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
    return sorted(index for cluster in clusters if cluster is not most for index in cluster)


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
    return counts.most_common(1)[0][0] if counts else None


def of_other_work(matched: Matched, lengths: IntArray) -> IntArray:
    """Places of ranks most of whose collectives do something else than those of the others."""
    result: IntArray = np.flatnonzero(matched.disagreeing > OTHER_WORK.value * np.maximum(lengths, 1))
    return result


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
    result: IntArray = np.flatnonzero((could > 0) & (took < TRUNCATED.value * could))
    return result
