"""Which ranks form a group: collectives of many summaries as one table, with one number for each group.

A recording that began after the communicator was made does not tell the rank's own place in it. Where all
ranks of the communicator were recorded, and say which they are, their order tells: communicators of
training frameworks number their ranks in order of the global ones.

Of some groups a recording tells nothing. Collectives of one kind on one stream stand in their order. Two
ranks are in one group where, one by one, the ends of theirs lie together, on clocks that may differ and
drift. A recording that began a few collectives later has its order shifted.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray, distinct
from traces.groups import passing
from traces.limits import Limit
from traces.ranks.clock_fit import ClockFit, line_between
from traces.ranks.identity import fingerprint_of_pair, fingerprint_of_text
from traces.ranks.summary import Group, GroupSource, Instances, RankSummary, Recorded


def groups_of(summaries: Sequence[RankSummary]) -> list[tuple[Group, ...]]:
    """The groups of each summary, with pairs known on both sides where that can be told."""
    own = _own_places(summaries)
    return [
        tuple(
            _paired(group, place, own) if group.source is GroupSource.PEER else group
            for group in summary.groups
        )
        for place, summary in enumerate(summaries)
    ]


def _paired(group: Group, place: int, own: Mapping[tuple[int, int], int]) -> Group:
    """A pair; one of which nobody else is known where its own place is not."""
    if group.peer is None or (mine := own.get((group.key, place))) is None:
        return replace(group, key=fingerprint_of_text(f"{group.key} {place} {group.peer}"))
    key = fingerprint_of_pair(group.key, mine, group.peer)
    return Group(GroupSource.COMMUNICATOR, key, 2, own=int(mine > group.peer))


def _own_places(summaries: Sequence[RankSummary]) -> dict[tuple[int, int], int]:
    """(communicator, place of the summary) -> the rank's place in the communicator."""
    peers: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for place, summary in enumerate(summaries):
        for group in summary.groups:
            if group.source is GroupSource.PEER and group.peer is not None:
                peers[group.key][place].add(group.peer)
    found: dict[tuple[int, int], int] = {}
    for key, by_place in peers.items():
        ranks = {place: summaries[place].identity.rank for place in by_place}
        if None in ranks.values():
            continue
        order = sorted(by_place, key=lambda place: ranks[place] or 0)
        known = [by_place[place] for place in order]
        if _fit(known):
            found |= {(key, place): number for number, place in enumerate(order)}
    return found


def _fit(peers: Sequence[set[int]]) -> bool:
    return all(
        other < len(peers) and number in peers[other] for number, mine in enumerate(peers) for other in mine
    )


@dataclass(frozen=True, slots=True)
class Flat:
    """Rows of all summaries, shape (n,): `place` is that of the summary, `rows.group` indexes `groups`."""

    place: IntArray
    rows: Instances
    groups: tuple[Group, ...]

    def __len__(self) -> int:
        return len(self.place)

    def of_source(self, source: GroupSource) -> BoolArray:
        return passing(lambda group: group.source == source, self.groups)[self.rows.group]


def flat_of(summaries: Sequence[RankSummary], recorded: Recorded) -> Flat:
    """All rows, in the order of the summaries; a group's number is that of its key, in order of keys."""
    groups = groups_of(summaries)
    known: dict[tuple[GroupSource, int], Group] = {}
    for group in (group for several in groups for group in several):
        known.setdefault((group.source, group.key), group)
    number = {key: place for place, key in enumerate(sorted(known))}
    of_group = [number[group.source, group.key] for several in groups for group in several]
    before = np.cumsum([0, *map(len, groups)])[recorded.place]
    number_of = np.array(of_group, dtype=np.int64)[before + recorded.rows.group]
    rows = replace(recorded.rows, group=number_of)
    return Flat(recorded.place, rows, tuple(known[key] for key in number))


TOGETHER: Final = Limit(
    40_000,
    "ns",
    "ours: the ends of one collective lie within 7 us on the eight ranks of a recorded run, within 27 us on "
    "two of another; those of different groups are as far apart as their work differs",
)
MEET: Final = Limit(10_000, "ns", "ours: clocks that were fitted are apart by some us")
_LEAST: Final = 3
"""Collectives that two ranks must have in common: two lie on any line."""
_SHIFTS: Final = 64
"""How many collectives later a recording may begin."""
_GLANCE: Final = 24
"""How many ends judge a shift at a glance."""
_BEST: Final = 4
"""How many shifts are looked at more closely."""
MOST: Final = Limit(128, "ranks", "ours: each is compared with each; of more, groups must be recorded")
_CLEARLY: Final = 2.0
"""How many times better a shift must fit than none."""
_FARTHER: Final = 8.0
"""How many times as far apart as those of the best fit ends may lie."""
_FINEST_NS: Final = 1_000.0
"""Fits better than this are alike."""


def settled_order(flat: Flat, clocks: Sequence[int], fits: Mapping[int, ClockFit] | None = None) -> Flat:
    """The rows, with groups known only by order split into those whose ranks end together.

    With `fits` all is on one clock, by which a rank never ends what another of its group has not begun.
    """
    of_order = flat.of_source(GroupSource.ORDER)
    if not of_order.any():
        return flat
    group, sequence = flat.rows.group.copy(), flat.rows.sequence.copy()
    groups = list(flat.groups)
    for number in distinct(group[of_order]).tolist():
        mine = np.flatnonzero(flat.rows.group == number)
        by_place = np.split(mine, np.flatnonzero(np.diff(flat.place[mine])) + 1)
        if len(by_place) > MOST.value:
            continue
        gathered = (
            _gathered(flat, by_place, clocks) if fits is None else _by_clock(flat, by_place, clocks, fits)
        )
        for leader, members in gathered:
            known = groups[number]
            groups.append(Group(GroupSource.ORDER, known.key ^ (leader + 1), purpose=known.purpose))
            for rows, shift in members:
                group[rows] = len(groups) - 1
                sequence[rows] = np.arange(len(rows)) + shift
    return replace(flat, rows=replace(flat.rows, group=group, sequence=sequence), groups=tuple(groups))


def _gathered(
    flat: Flat, by_place: Sequence[IntArray], clocks: Sequence[int]
) -> list[tuple[int, list[tuple[IntArray, int]]]]:
    """Groups as (place of the leader, [(rows, shift against it)]).

    Two ranks are together where their ends are, and not much farther apart than those of the rank that
    either fits best: ranks of other groups work in nearly the same rhythm.
    """
    place = [clocks[flat.place[rows[0]]] for rows in by_place]
    ends = [flat.rows.end_ns[rows] for rows in by_place]
    fits = {
        (one, other): found
        for one, other in combinations(range(len(by_place)), 2)
        if (found := shift_between(ends[other], ends[one], one_clock=place[one] == place[other])) is not None
    }
    best = _best(fits, len(by_place))
    together = _Gathered(len(by_place))
    for residual_ns, one, other, by in sorted((ns, *pair, by) for pair, (ns, by) in fits.items()):
        if residual_ns <= _FARTHER * max(min(best[one], best[other]), _FINEST_NS):
            together.join(one, other, by)
    return together.groups(flat, by_place)


def _by_clock(
    flat: Flat, by_place: Sequence[IntArray], clocks: Sequence[int], fits: Mapping[int, ClockFit]
) -> list[tuple[int, list[tuple[IntArray, int]]]]:
    """The same where all is on one clock: every two of a group are in each collective at the same time.

    Those whose ends lie nearest come together first. Ranks of other groups may be in lockstep, so ends must
    not lie much farther apart than those of the nearest of either: of a rank with a slow link all are far.
    """
    on_clock = [fits[clocks[int(flat.place[rows[0]])]] for rows in by_place]
    starts = [fit.times_of(flat.rows.start_ns[rows]) for fit, rows in zip(on_clock, by_place, strict=True)]
    ends = [fit.times_of(flat.rows.end_ns[rows]) for fit, rows in zip(on_clock, by_place, strict=True)]
    near = {
        (one, other): found
        for one, other in combinations(range(len(by_place)), 2)
        if (found := _shift_at_once(starts[other], ends[other], starts[one], ends[one])) is not None
    }
    best = _best(near, len(by_place))
    together = _Gathered(len(by_place))
    for apart_ns, by, one, other in sorted((*found, *pair) for pair, found in near.items()):
        if apart_ns > _FARTHER * max(best[one], best[other], _FINEST_NS):
            continue
        mine, theirs = together.members(one), together.members(other)
        if all((min(a, b), max(a, b)) in near for a in mine for b in theirs if a != b):
            together.join(one, other, by)
    return together.groups(flat, by_place)


def _best(fits: Mapping[tuple[int, int], tuple[float, int]], count: int) -> list[float]:
    """How near the nearest other is to each of `count`."""
    best = [np.inf] * count
    for pair, (apart_ns, _) in fits.items():
        for one in pair:
            best[one] = min(best[one], apart_ns)
    return best


class _Gathered:
    """Ranks put together pair by pair, each with its shift against the first of its group."""

    def __init__(self, count: int) -> None:
        self._leader, self._shift = [*range(count)], [0] * count

    def members(self, one: int) -> list[int]:
        return [place for place, leader in enumerate(self._leader) if leader == self._leader[one]]

    def join(self, one: int, other: int, by: int) -> None:
        """Let two groups be one, where they are not; `by`: the shift of the other against the one."""
        apart = self._shift[one] + by - self._shift[other]
        for member in self.members(other) if self._leader[one] != self._leader[other] else ():
            self._leader[member] = self._leader[one]
            self._shift[member] += apart

    def groups(
        self, flat: Flat, by_place: Sequence[IntArray]
    ) -> list[tuple[int, list[tuple[IntArray, int]]]]:
        return [
            (
                int(flat.place[by_place[head][0]]),
                [(by_place[one], self._shift[one]) for one in self.members(head)],
            )
            for head in sorted({*self._leader})
        ]


def _shift_at_once(
    own_start_ns: IntArray, own_ns: IntArray, led_start_ns: IntArray, led_ns: IntArray
) -> tuple[float, int] | None:
    """How far ends lie apart, and the shift at which no collective of one ends before the other's began."""
    found = []
    for shift in (0, *_likely_shifts(own_ns, led_ns, one_clock=True)):
        mine, led = slice(max(0, -shift), None), slice(max(0, shift), None)
        common = min(len(own_ns[mine]), len(led_ns[led]))
        if common < _LEAST or common < min(len(led_ns), len(own_ns)) / 2:
            continue
        own_end, led_end = own_ns[mine][:common], led_ns[led][:common]
        own_begin, led_begin = own_start_ns[mine][:common], led_start_ns[led][:common]
        latest_ns = np.maximum(own_begin - led_end, led_begin - own_end).max()
        if latest_ns <= MEET.value:
            found.append((float(np.median(np.abs(own_end - led_end))), shift))
    return min(found, default=None)


def shift_between(own_ns: IntArray, led_ns: IntArray, *, one_clock: bool) -> tuple[float, int] | None:
    """Residual and shift at which the ends lie together, none if that does; None where they never do."""
    found = []
    for shift in (0, *_likely_shifts(own_ns, led_ns, one_clock=one_clock)):
        own, led = own_ns[max(0, -shift) :], led_ns[max(0, shift) :]
        common = min(len(own), len(led))
        if common < 2 or common < min(len(led_ns), len(own_ns)) / 2:
            continue
        residual_ns = line_between(own[:common], led[:common], one_clock=one_clock).residual_ns
        if residual_ns <= TOGETHER.value:
            found.append((residual_ns, shift))
            if residual_ns <= _FINEST_NS and not shift:
                break
    best = min(found, key=lambda one: (max(one[0], _FINEST_NS), abs(one[1])), default=None)
    unshifted = [one for one in found if one[1] == 0]
    if best and unshifted and unshifted[0][0] <= _CLEARLY * best[0]:
        return unshifted[0]
    return best


def _likely_shifts(own_ns: IntArray, led_ns: IntArray, *, one_clock: bool) -> list[int]:
    """The shifts at which some of the ends lie best together, judged at a glance."""
    reach = min(_SHIFTS, abs(len(own_ns) - len(led_ns)) + min(len(own_ns), len(led_ns)) // 2)
    if reach < 1:
        return []
    shifts = np.arange(-reach, reach + 1)
    some = distinct(np.linspace(0, len(own_ns) - 1, _GLANCE).astype(np.int64))
    at = some + shifts[:, np.newaxis]
    within = (at >= 0) & (at < len(led_ns))
    apart = np.where(within, led_ns[np.clip(at, 0, len(led_ns) - 1)] - own_ns[some], np.nan)
    enough = within.sum(axis=1) >= _LEAST
    apart, shifts = apart[enough], shifts[enough]
    middle = 0.0 if one_clock else np.nanmedian(apart, axis=1)[:, np.newaxis]
    spread = np.nanmedian(np.abs(apart - middle), axis=1)
    return [int(shift) for shift in shifts[np.argsort(spread, kind="stable")[:_BEST]] if shift]
