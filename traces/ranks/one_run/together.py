"""Summaries put together into one run: what does not belong to it is named and left out."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from itertools import compress

import numpy as np

from traces.arrays import BoolArray, IntArray, bools, ints, none_of
from traces.frozen import frozen
from traces.groups import mask_of
from traces.ranks.matching.match import Matched, by_joints, match, together
from traces.ranks.one_run.align import (
    Aligned,
    align,
    by_sessions,
    consistent,
    hold,
    one_clock_holds,
    with_own_clocks,
)
from traces.ranks.one_run.problems import (
    Left,
    Problems,
    RecordingProblem,
    of_other_work,
    other_runs,
    other_sizes_and_times,
    same_processes,
    same_ranks,
    same_recordings,
    truncated,
    versions,
    without,
)
from traces.ranks.summaries.identity import WorldSize, recorded_size, with_numbers, world_size_of
from traces.ranks.summaries.summary import GroupSource, RankSummary, Summaries, clocks_of
from traces.sections.cause import ProblemKind


@frozen
class OneRun:
    """The summaries of one run, in order of rank: `indices` are their places as given."""

    used: tuple[RankSummary, ...]
    indices: tuple[int, ...]
    matched: Matched
    world_size: WorldSize | None
    problems: tuple[RecordingProblem, ...]

    @property
    def all_ranks_seen(self) -> bool:
        return not self.of_kind(ProblemKind.MISSING_RANKS)

    def of_kind(self, kind: ProblemKind) -> Problems:
        return [problem for problem in self.problems if problem.kind is kind]


def put_together(summaries: Summaries) -> OneRun:
    """The largest set of summaries that are of one run, matched.

    Processes of one recording share its clock, unless what ends on all ranks at once contradicts
    that: one file may hold several hosts.
    """
    given = sorted(enumerate(with_numbers(summaries)), key=lambda indexed: _order_key(indexed[1]))
    run = _put(dict(given))
    if one_clock_holds(run.used, run.matched):
        return run
    several = with_own_clocks([summary for _, summary in given])
    return _put({index: summary for (index, _), summary in zip(given, several, strict=True)})


def _put(left: Left) -> OneRun:
    """`put_together` for summaries in order, by index as given."""
    problems: Problems = []
    for check in (same_recordings, other_sizes_and_times, other_runs, same_ranks, same_processes):
        problems += check(left)
        left = _without(left, problems)
    problems += versions(left)
    matched = _matched(left)
    if len(strangers := of_other_work(matched)):
        reason = "their collectives do something else than those of the others, or with other sizes"
        problems.append(_about(ProblemKind.MIXED_RUNS, strangers, left, reason, left_out=True))
        left = _without(left, problems)
        matched = _matched(left)
    number = together(matched, ~none_of(len(matched)))
    apart = number != np.bincount(number, minlength=1).argmax()
    if apart.any():
        problems += _strangers(left, matched, apart)
        left = _without(left, problems)
        matched = _matched(left)
    used = tuple(left.values())
    if len(short := truncated(matched)):
        reason = "they hold fewer of the collectives of their groups than the other recordings do"
        problems.append(_about(ProblemKind.TRUNCATED, short, left, reason))
    size = world_size_of(used)
    problems += _missing(used, size.ranks if size else None)
    return OneRun(used, tuple(left), matched, size, tuple(problems))


def _matched(left: Left) -> Matched:
    """Their collectives matched: groups known by order only by where clocks meet, else by the
    starts of sessions, where these hold, else by the clock of the others, where that is one.

    Where nothing else is known, by the clock that their order gives: on it ranks that are in
    lockstep most of the time are told apart, unless fewer collectives then belong together.
    """
    summaries = [*left.values()]
    matched = match(summaries)
    if not (by_order := matched.by_order).any():
        return matched
    if by_order.all():
        fits, one_program = by_joints(summaries)
        if fits is not None:
            return replace(match(summaries, fits), clocks=fits)
        matched = replace(matched, agreed=one_program)
    if sessions := by_sessions(summaries):
        begun = match(summaries, sessions)
        if hold(summaries, begun, sessions):
            return replace(begun, clocks=sessions)
    aligned = align(summaries, matched if by_order.all() else matched.take(~by_order))
    fitted, (fingerprints, _) = aligned.clocks.by_fingerprint(), clocks_of(summaries)
    if not aligned.clocks.aligned or not fitted.keys() >= {*fingerprints}:
        return matched
    again = match(summaries, fitted)
    if not by_order.all() or _held(again, align(summaries, again)) >= _held(matched, aligned):
        return again
    return matched


def _held(matched: Matched, aligned: Aligned) -> int:
    """Participations that can be what they seem, of ranks that are all held together by them."""
    if not aligned.clocks.aligned:
        return 0
    possible = matched.take(consistent(matched, aligned))
    return 0 if together(possible, ~none_of(len(possible))).any() else len(possible.place)


def _order_key(summary: RankSummary) -> tuple[tuple[int, ...], str, int, int]:
    """What recordings are ordered by: by what is in them first, so that names of files change no
    figure.
    """
    identity = summary.identity
    inside = [(-size, key, own) for key, size, own in summary.own_places()]
    place: tuple[int, ...] = (True, *min(inside, default=()))
    if identity.rank is not None:
        place = (False, identity.rank)
    return place, identity.trace, identity.device, identity.recording


def _without(left: Left, problems: Sequence[RecordingProblem]) -> dict[int, RankSummary]:
    gone = set[int]()
    for problem in problems:
        if problem.left_out:
            gone.update(problem.indices)
    return without(left, gone)


def _about(
    kind: ProblemKind, places: IntArray, left: Left, reason: str, *, left_out: bool = False
) -> RecordingProblem:
    about = ints([*left])[places]
    return RecordingProblem(kind, tuple(sorted(about.tolist())), reason, left_out)


def _strangers(left: Left, matched: Matched, apart: BoolArray) -> Problems:
    """Ranks without a collective in common with most. Nothing shows that these are of the run, so
    that they are left out; unless they are of the same recording, or alone and of a recorded size
    that is the others'.
    """
    reason = "they took part in no collective with the others"
    if apart.sum() == len(left) - 1:  # each by itself
        if len(clocks_of([*left.values()])[0]) == 1:
            return []
        everyone, reason = np.arange(len(left)), "they ran no collective kernel in common"
        return [_about(ProblemKind.APART, everyone, left, reason)]
    seen = mask_of(matched.place, len(left))
    most = [summary.identity for summary in compress(left.values(), ~apart)]
    traces, sizes = {who.trace for who in most}, {*map(recorded_size, most)} - {None}
    ours = bools(
        [
            summary.identity.trace in traces or recorded_size(summary.identity) in sizes
            for summary in left.values()
        ]
    )
    problems = []
    for which, left_out in ((apart & (seen | ~ours), True), (apart & ~seen & ours, False)):
        if which.any():
            places = np.flatnonzero(which)
            problems.append(_about(ProblemKind.APART, places, left, reason, left_out=left_out))
    return problems


def _missing(used: Summaries, size: int | None) -> Problems:
    seen = {summary.identity.rank for summary in used if summary.identity.rank is not None}
    if size is None:
        return _missing_in_groups(used) or _missing_between(seen)
    if len(used) >= size:
        return []
    gone = _unseen(size, seen) if len(seen) == len(used) else ()
    reason = f"{len(used)} of {size} ranks were recorded; nothing is known of the others"
    return [RecordingProblem(ProblemKind.MISSING_RANKS, (), reason, ranks=gone)]


def _unseen(count: int, seen: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({*range(count)}.difference(seen)))


def _missing_between(seen: Set[int]) -> Problems:
    gone = _unseen(max(seen, default=0), seen)
    if not gone:
        return []
    reason = f"rank {max(seen)} was recorded and not all before it; nothing is known of the others"
    return [RecordingProblem(ProblemKind.MISSING_RANKS, (), reason, ranks=gone)]


def _missing_in_groups(used: Summaries) -> Problems:
    """Ranks that a communicator has and no recording is of; the one that misses most tells."""
    seen = defaultdict[int, dict[int, int | None]](dict)
    recorded = Counter[int]()
    sizes: dict[int, int] = {}
    for summary in used:
        for group in summary.groups:
            recorded[group.key] += group.source is GroupSource.COMMUNICATOR
        for key, size, own in summary.own_places():
            seen[key][own] = summary.identity.rank
            sizes[key] = size
    worst = max(sorted(sizes), key=lambda key: sizes[key] - recorded[key], default=None)
    if worst is None or recorded[worst] >= sizes[worst]:
        return []
    places, size = seen[worst], sizes[worst]
    by_number = len(places) == recorded[worst] and [*places] == [*places.values()]
    gone = _unseen(size, places) if by_number else ()
    reason = (
        f"{recorded[worst]} of {size} ranks of a communicator were recorded; nothing is known of "
        f"the others"
    )
    return [RecordingProblem(ProblemKind.MISSING_RANKS, (), reason, ranks=gone)]
