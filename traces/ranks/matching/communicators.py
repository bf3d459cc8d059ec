"""Which ranks form a group: collectives of many summaries as one table, with one number for each
group.

A recording that began after the communicator was made does not tell the rank's own place in it.
Where all ranks of the communicator were recorded, and say which they are, their order tells:
communicators of training frameworks number their ranks in order of the global ones.

Of some groups a recording tells nothing. Collectives of one kind on one stream stand in their
order. Two ranks are in one group where, one by one, the ends of theirs lie together, on clocks that
may differ and drift. A recording that began a few collectives later has its order shifted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, distinct
from traces.frozen import frozen
from traces.groups import passing
from traces.limits import Limit
from traces.names.kernels import COMM_KINDS
from traces.ranks.clocks.clock_fit import ClockFit, scatter_ns
from traces.ranks.matching.gathered import (
    FARTHER,
    FINEST_NS,
    Gathered,
    Members,
    OnClock,
    best_of,
    by_clock,
    likely_shifts,
)
from traces.ranks.matching.messages import Exchanges, Pair
from traces.ranks.rows import parts
from traces.ranks.summaries.identity import fingerprint_of_pair, fingerprint_of_text
from traces.ranks.summaries.summary import (
    Group,
    GroupSource,
    Instances,
    Operation,
    RankSummary,
    Recorded,
)


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
        other < len(peers) and number in peers[other]
        for number, mine in enumerate(peers)
        for other in mine
    )


@frozen
class Flat:
    """Rows of all summaries, shape (n,): `place` is that of the summary, `rows.group` indexes
    `groups`.
    """

    place: IntArray
    rows: Instances
    groups: tuple[Group, ...]

    def __len__(self) -> int:
        return len(self.place)

    def of_source(self, source: GroupSource) -> BoolArray:
        return passing(lambda group: group.source == source, self.groups)[self.rows.group]


def flat_of(summaries: Sequence[RankSummary], recorded: Recorded) -> Flat:
    """All rows, in the order of the summaries; a group's number is that of its key, in order of
    keys.
    """
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
    "measured: the ends of one collective lie within 7 us on eight ranks of a recorded run, within "
    "27 us on "
    "two of another; those of different groups are as far apart as their work differs",
)
MOST: Final = Limit(
    128, "ranks", "ours: each is compared with each; of more, groups must be recorded"
)
_CLEARLY: Final = 2.0
"""How many times better a shift must fit than none."""


def settled_order(
    flat: Flat, clocks: Sequence[int], fits: Mapping[int, ClockFit] | None = None
) -> Flat:
    """The rows, with groups known only by order split into those whose ranks end together.

    With `fits` all is on one clock, by which a rank never ends what another of its group has not
    begun; then the turn of a stream says nothing, since programs of other stages use other streams.
    """
    of_order = flat.of_source(GroupSource.ORDER)
    settled = _Settled(flat)
    for several in _candidates(flat, of_order, any_turn=fits is not None):
        if len(several) > MOST.value:
            continue
        if fits is None:
            settled.add(several, _gathered(flat, several, clocks))
            continue
        on_clock = [
            _on_clock(flat, rows, fits[clocks[int(flat.place[rows[0]])]]) for rows in several
        ]
        if flat.rows.operation[several[0][0]] == Operation.EXCHANGE:
            several, on_clock = _without_messages(settled, several, on_clock)
        settled.add(several, by_clock(on_clock))
    return settled.flat()


def _candidates(flat: Flat, of_order: BoolArray, *, any_turn: bool) -> Iterator[list[IntArray]]:
    """Sequences, as rows, that may be of one group: by operation, and by the turn of their
    stream.
    """
    group, place, operation = flat.rows.group, flat.place, flat.rows.operation
    codes = distinct(operation[of_order]).tolist()
    for code in sorted(codes, key=lambda code: (code == Operation.EXCHANGE, code)):  # stages first
        mine = np.flatnonzero(of_order & (operation == code))
        mine = mine[np.lexsort((mine, group[mine], place[mine]))]
        first = parts.begins_of(place[mine], group[mine])
        rows, turns = np.split(mine, first[1:-1]), group[mine[first[:-1]]].tolist()
        count = Counter(turns)
        if any_turn and len({*count.values()}) > 1:
            yield rows  # some have more streams than others
            continue
        for turn in sorted(count):
            yield [one for one, of in zip(rows, turns, strict=True) if of == turn]


_PIPELINE: Final = COMM_KINDS.index("pp_p2p")
_UNRESOLVED: Final = COMM_KINDS.index("sendrecv_unresolved")


_OFTEN: Final = 16
"""Collectives of a group, from which on chance does not put ranks of two stages into it."""


class _Settled:
    """Groups and numbers as they are found."""

    def __init__(self, flat: Flat) -> None:
        self._flat = flat
        self._group, self._sequence = flat.rows.group.copy(), flat.rows.sequence.copy()
        self._groups = list(flat.groups)
        self._taken = np.zeros(len(flat), dtype=np.bool_)
        self._places = len(distinct(flat.place))
        self.beside: set[tuple[int, int]] = set()
        """Places in one group that is not of all: of one stage, which sends itself no messages."""

    def add(self, several: Sequence[IntArray], gathered: Sequence[Members]) -> None:
        """Whole sequences, each with its shift."""
        for members in gathered:
            self._new(several[members[0][0]], 0)
            places = sorted({int(self._flat.place[several[one][0]]) for one, _ in members})
            if len(places) < self._places and len(several[members[0][0]]) >= _OFTEN:
                self.beside |= set(combinations(places, 2))
            for one, shift in members:
                free = ~self._taken[several[one]]
                self._group[several[one][free]] = len(self._groups) - 1
                self._sequence[several[one][free]] = (np.arange(len(free)) + shift)[free]

    def _new(self, rows: IntArray, other: int) -> None:
        known = self._flat.groups[self._flat.rows.group[rows[0]]]
        leader = int(self._flat.place[rows[0]])
        key = fingerprint_of_pair(known.key, leader, other) if other else known.key ^ (leader + 1)
        self._groups.append(Group(GroupSource.ORDER, key, purpose=known.purpose))

    def kinds(self, rows: IntArray) -> list[int]:
        """What some rows are for, each once."""
        return distinct(self._flat.rows.kind[rows]).tolist()

    def of_one_program(self, several: Sequence[IntArray]) -> BoolArray:
        """Which sequences are of one turn on ranks that are one rank or beside each other, shape
        (n, n).
        """
        place, turn = self._flat.place, self._flat.rows.group
        same = np.eye(len(several), dtype=np.bool_)
        for one, other in combinations(range(len(several)), 2):
            mine, theirs = several[one][0], several[other][0]
            pair = sorted((int(place[mine]), int(place[theirs])))
            if turn[mine] == turn[theirs] and tuple(pair) in self.beside:
                same[one, other] = same[other, one] = True
        return same

    def add_messages(
        self, several: Sequence[IntArray], which: Sequence[int], pairs: Sequence[Pair]
    ) -> None:
        """Messages in pairs, of the sequences `which`. Of the rest nobody knows who had the other
        end.
        """
        for pair in pairs:
            self._new(several[pair.one], int(self._flat.place[several[pair.other][0]]) + 1)
            for one, turns in ((pair.one, pair.rows), (pair.other, pair.others)):
                rows = several[one][turns]
                self._taken[rows] = True
                self._group[rows] = len(self._groups) - 1
                self._sequence[rows] = np.arange(len(rows))
        for one in which:
            rows = several[one][~self._taken[several[one]]]
            if len(rows):
                self._new(rows, self._places + 1)
                self._group[rows] = len(self._groups) - 1

    def flat(self) -> Flat:
        rows = replace(self._flat.rows, group=self._group, sequence=self._sequence)
        return replace(self._flat, rows=rows, groups=tuple(self._groups))


def _without_messages(
    settled: _Settled, several: Sequence[IntArray], on_clock: Sequence[OnClock]
) -> tuple[list[IntArray], list[OnClock]]:
    """The sequences of exchanges that are none of messages; those are settled.

    Messages with one other rank each are known by their kind, else by how they meet others. Ranks
    beside each other run one program: of their sequences of one turn most decide.
    """
    kind = [set(settled.kinds(rows)) for rows in several]
    known = np.array([one == {_PIPELINE} for one in kind])
    unknown = np.array([_UNRESOLVED in one for one in kind])
    may = np.flatnonzero(known | unknown).tolist()
    among = Exchanges.of([on_clock[one] for one in may])
    stage = among.stage_size()
    alone = np.ones(len(may), dtype=np.bool_) if stage else ~among.are_whole()
    same = settled.of_one_program([several[one] for one in may])
    by_most = (same @ alone.astype(np.int64)) * 2 > same.sum(axis=1)
    which = np.flatnonzero(known[may] | by_most).tolist()
    pairs = among.messages(which, settled.beside, stage)
    settled.add_messages([several[one] for one in may], which, pairs)
    rest = sorted({*range(len(several))} - {may[one] for one in which})
    return [several[one] for one in rest], [on_clock[one] for one in rest]


def _on_clock(flat: Flat, rows: IntArray, fit: ClockFit) -> OnClock:
    start_ns, end_ns = (
        fit.times_of(times[rows]) for times in (flat.rows.start_ns, flat.rows.end_ns)
    )
    return OnClock(int(flat.place[rows[0]]), start_ns, end_ns)


def _gathered(flat: Flat, several: Sequence[IntArray], clocks: Sequence[int]) -> list[Members]:
    """Groups of sequences, by number.

    Two ranks are together where their ends are, and not much farther apart than those of the rank
    that either fits best: ranks of other groups work in nearly the same rhythm.
    """
    place = [clocks[flat.place[rows[0]]] for rows in several]
    ends = [flat.rows.end_ns[rows] for rows in several]
    fits = {
        (one, other): found
        for one, other in combinations(range(len(several)), 2)
        if (found := shift_between(ends[other], ends[one], one_clock=place[one] == place[other]))
        is not None
    }
    best = best_of(fits, len(several))
    together = Gathered(len(several))
    for residual_ns, one, other, by in sorted((ns, *pair, by) for pair, (ns, by) in fits.items()):
        if residual_ns <= FARTHER * max(min(best[one], best[other]), FINEST_NS):
            together.join(one, other, by)
    return together.groups()


def shift_between(
    own_ns: IntArray, led_ns: IntArray, *, one_clock: bool
) -> tuple[float, int] | None:
    """Residual and shift at which the ends lie together, none if that does; None where they never
    do.
    """
    found = []
    for shift in (0, *likely_shifts(own_ns, led_ns, one_clock=one_clock)):
        own, led = own_ns[max(0, -shift) :], led_ns[max(0, shift) :]
        common = min(len(own), len(led))
        if common < 2 or common < min(len(led_ns), len(own_ns)) / 2:
            continue
        own, led = own[:common], led[:common]
        residual_ns = float(np.median(np.abs(led - own))) if one_clock else scatter_ns(own, led)
        if residual_ns <= TOGETHER.value:
            found.append((residual_ns, shift))
            if residual_ns <= FINEST_NS and not shift:
                break
    best = min(found, key=lambda one: (max(one[0], FINEST_NS), abs(one[1])), default=None)
    if best and not found[0][1] and found[0][0] <= _CLEARLY * best[0]:  # none is the first
        return found[0]
    return best
