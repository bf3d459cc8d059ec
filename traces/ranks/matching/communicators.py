"""Which ranks form a group: collectives of many summaries as one table, with one number for each
group.

A recording that began after the communicator was made does not tell the rank's own place in it.
Where all ranks of the communicator were recorded, and say which they are, their order tells:
communicators of training frameworks number their ranks in order of the global ones.

Of some groups a recording tells nothing. Collectives of one kind on one stream stand in their
order. Two ranks are in one group where, one by one, the ends of theirs lie together, on clocks that
may differ and drift. A recording that began a few collectives later has its order shifted.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, compress
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, codes_of, distinct, ints, none_of, sums_before
from traces.frozen import frozen
from traces.limits import Limit
from traces.names.kernels import COMM_KINDS
from traces.ranks.clocks.clock_fit import ClockFit, scatter_ns
from traces.ranks.matching.gathered import (
    FARTHER,
    FINEST_NS,
    Fits,
    JoinedSequences,
    Members,
    OnClock,
    Pair,
    best_of,
    by_clock,
    overlaps,
)
from traces.ranks.matching.messages import Exchanges, MessagesOfTwo
from traces.ranks.rows import parts
from traces.ranks.summaries.identity import fingerprint_of_pair, fingerprint_of_text
from traces.ranks.summaries.summary import (
    Group,
    GroupSource,
    Instances,
    Operation,
    RecordedCollectives,
    Summaries,
    of_source,
)


def groups_of(summaries: Summaries) -> list[tuple[Group, ...]]:
    """The groups of each summary, with pairs known on both sides where that can be told."""
    own = _own_places(summaries)
    return [
        tuple(_paired(group, place, own) for group in summary.groups)
        for place, summary in enumerate(summaries)
    ]


def _paired(group: Group, place: int, own: Mapping[tuple[int, int], int]) -> Group:
    """A pair; one of which nobody else is known where its own place is not. Others as they are."""
    if group.source is not GroupSource.PEER:
        return group
    if group.peer is None or (mine := own.get((group.key, place))) is None:
        return replace(group, key=fingerprint_of_text(f"{group.key} {place} {group.peer}"))
    key = fingerprint_of_pair(group.key, mine, group.peer)
    return Group(GroupSource.COMMUNICATOR, key, 2, own=int(mine > group.peer))


def _own_places(summaries: Summaries) -> dict[tuple[int, int], int]:
    """(communicator, place of the summary) -> the rank's place in the communicator."""
    peers = defaultdict[int, dict[int, set[int]]](lambda: defaultdict(set))
    doubtful = set[int]()
    for place, summary in enumerate(summaries):
        for group in summary.groups:
            if group.source is GroupSource.PEER and group.peer is not None:
                peers[group.key][place].add(group.peer)
                if summary.identity.rank is None:
                    doubtful.add(group.key)
    places: dict[tuple[int, int], int] = {}
    for key, by_place in peers.items():
        order = sorted(by_place, key=lambda place: summaries[place].identity.rank or 0)
        if key not in doubtful and _fit([by_place[place] for place in order]):
            for number, place in enumerate(order):
                places[key, place] = number
    return places


def _fit(peers: Sequence[set[int]]) -> bool:
    for number, mine in enumerate(peers):
        for other in mine:
            if other >= len(peers) or number not in peers[other]:
                return False
    return True


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
        return of_source(source, self.groups)[self.rows.group]

    def place_of(self, rows: IntArray) -> int:
        """Of a sequence, whose rows are all of one place."""
        return int(self.place[rows[0]])

    def group_of(self, rows: IntArray) -> int:
        """Of a sequence, whose rows are all of one group: its number, in order of turns."""
        return int(self.rows.group[rows[0]])


def flat_of(summaries: Summaries, recorded: RecordedCollectives) -> Flat:
    """All rows, in the order of the summaries; a group's number is that of its key, in order of
    keys.
    """
    groups = groups_of(summaries)
    every = [*chain.from_iterable(groups)]
    known: dict[tuple[GroupSource, int], Group] = {}
    for group in every:
        known.setdefault((group.source, group.key), group)
    ordered = dict(sorted(known.items()))
    number = codes_of(ordered)
    of_group = ints([number[group.source, group.key] for group in every])
    before = np.cumsum([0, *map(len, groups)])[recorded.place]
    rows = replace(recorded.rows, group=of_group[before + recorded.rows.group])
    return Flat(recorded.place, rows, tuple(ordered.values()))


TOGETHER: Final = Limit(
    40_000,
    "ns",
    "measured: the ends of one collective lie within 7 us on eight ranks of a recorded run, within "
    "27 us on two of another; those of different groups are as far apart as their work differs",
)
MOST: Final = Limit(
    128, "ranks", "ours: each is compared with each; of more, groups must be recorded"
)
_CLEARLY: Final = 2.0
"""How many times better a shift must fit than none."""


def settled_order(flat: Flat, clocks: Sequence[int], fits: Mapping[int, ClockFit] | None) -> Flat:
    """The rows, with groups known only by order split into those whose ranks end together.

    With `fits` all is on one clock, by which a rank never ends what another of its group has not
    begun; then the turn of a stream says nothing, since programs of other stages use other streams.
    """
    of_order = flat.of_source(GroupSource.ORDER)
    settled = _Settled(flat)
    for operation, sequences in _candidates(flat, of_order, any_turn=fits is not None):
        if len(sequences) > MOST.value:
            continue
        if fits is None:
            settled.add(sequences, _gathered(flat, sequences, clocks))
            continue
        on_clock = [_on_clock(flat, rows, fits[clocks[flat.place_of(rows)]]) for rows in sequences]
        if operation == Operation.EXCHANGE:
            sequences, on_clock = _without_messages(settled, sequences, on_clock)
        settled.add(sequences, by_clock(on_clock))
    return settled.flat()


def _candidates(
    flat: Flat, of_order: BoolArray, *, any_turn: bool
) -> Iterator[tuple[int, list[IntArray]]]:
    """Sequences, as rows, that may be of one group: by their operation, and by the turn of their
    stream.
    """
    group, place, operation = flat.rows.group, flat.place, flat.rows.operation
    codes = distinct(operation[of_order]).tolist()
    for code in sorted(codes, key=lambda code: (code == Operation.EXCHANGE, code)):  # stages first
        mine = np.flatnonzero(of_order & (operation == code))
        mine = mine[np.lexsort((mine, group[mine], place[mine]))]
        sequences = np.split(mine, parts.begins_of(place[mine], group[mine])[1:-1])
        by_turn = defaultdict[int, list[IntArray]](list)
        for rows in sequences:
            by_turn[flat.group_of(rows)].append(rows)
        if any_turn and len({*map(len, by_turn.values())}) > 1:
            yield code, sequences  # some have more streams than others
            continue
        for turn in sorted(by_turn):
            yield code, by_turn[turn]


_OFTEN: Final = 16
"""Collectives of a group, from which on chance does not put ranks of two stages into it."""


class _Settled:
    """Groups and numbers as they are found."""

    def __init__(self, flat: Flat) -> None:
        self._flat = flat
        self._group, self._sequence = flat.rows.group.copy(), flat.rows.sequence.copy()
        self._groups = list(flat.groups)
        self._taken = none_of(len(flat))
        self._places = len(distinct(flat.place))
        self.beside = set[Pair]()
        """Places in one group that is not of all: of one stage, which sends itself no messages."""

    def add(self, sequences: Sequence[IntArray], gathered: Sequence[Members]) -> None:
        """Whole sequences, each with its shift."""
        for members in gathered:
            number = self._new(sequences[members[0][0]])
            places = sorted({self._flat.place_of(sequences[member]) for member, _ in members})
            if len(places) < self._places and len(sequences[members[0][0]]) >= _OFTEN:
                self.beside |= set(combinations(places, 2))
            for sequence, shift in members:
                self._group[sequences[sequence]] = number
                self._sequence[sequences[sequence]] = np.arange(len(sequences[sequence])) + shift

    def _new(self, rows: IntArray, other: int = 0) -> int:
        """The number of a new group, of the purpose that these rows have; `other` tells it from
        those of the same rank.
        """
        number, leader = len(self._groups), self._flat.place_of(rows)
        known = self._flat.groups[self._flat.group_of(rows)]
        key = fingerprint_of_pair(known.key, leader, other)
        self._groups.append(Group(GroupSource.ORDER, key, purpose=known.purpose))
        return number

    def kind_of(self, rows: IntArray) -> IntArray:
        """What some rows are for."""
        return self._flat.rows.kind[rows]

    def of_one_program(self, sequences: Sequence[IntArray]) -> BoolArray:
        """Which sequences are of one turn on ranks that are one rank or beside each other, shape
        (n, n).
        """
        turn_of = self._flat.group_of
        same = np.eye(len(sequences), dtype=np.bool_)
        for first, second in combinations(range(len(sequences)), 2):
            mine, theirs = sequences[first], sequences[second]
            pair = sorted(map(self._flat.place_of, (mine, theirs)))
            if turn_of(mine) == turn_of(theirs) and tuple(pair) in self.beside:
                same[first, second] = same[second, first] = True
        return same

    def add_messages(
        self, sequences: Sequence[IntArray], which: Sequence[int], messages: Sequence[MessagesOfTwo]
    ) -> None:
        """Messages, of the sequences `which`. Of the rest nobody knows who had the other end."""
        for two in messages:
            number = self._new(sequences[two.lower], self._flat.place_of(sequences[two.higher]) + 1)
            for sequence, ends in ((two.lower, two.lower_ends), (two.higher, two.higher_ends)):
                rows = sequences[sequence][ends]
                self._taken[rows] = True
                self._group[rows] = number
                self._sequence[rows] = np.arange(len(rows))
        for sequence in which:
            rows = sequences[sequence][~self._taken[sequences[sequence]]]
            if len(rows):
                self._group[rows] = self._new(rows, self._places + 1)

    def flat(self) -> Flat:
        rows = replace(self._flat.rows, group=self._group, sequence=self._sequence)
        return replace(self._flat, rows=rows, groups=tuple(self._groups))


def _without_messages(
    settled: _Settled, sequences: Sequence[IntArray], on_clock: Sequence[OnClock]
) -> tuple[list[IntArray], list[OnClock]]:
    """The sequences of exchanges that are none of messages; those are settled.

    Messages with one other rank each are known by their kind, else by how they meet others. Ranks
    beside each other run one program: of their sequences of one turn most decide.
    """
    kind, first = (
        settled.kind_of(np.concatenate(sequences)),
        sums_before(ints([*map(len, sequences)])),
    )
    known = parts.least(kind == COMM_KINDS.index("pp_p2p"), first)
    may = known | parts.most(kind == COMM_KINDS.index("sendrecv_unresolved"), first)
    exchanges = [*compress(sequences, may)]
    among = Exchanges.of([*compress(on_clock, may)])
    stage = among.stage_size()
    alone = ~none_of(len(exchanges)) if stage else ~among.are_whole()
    same = settled.of_one_program(exchanges)
    by_most = (same @ ints(alone)) * 2 > same.sum(axis=1)
    sends = known[may] | by_most
    which = np.flatnonzero(sends).tolist()
    settled.add_messages(exchanges, which, among.messages(which, settled.beside, stage))
    remains = ~may
    remains[may] = ~sends
    return [*compress(sequences, remains)], [*compress(on_clock, remains)]


def _on_clock(flat: Flat, rows: IntArray, fit: ClockFit) -> OnClock:
    start_ns, end_ns = flat.rows.start_ns[rows], flat.rows.end_ns[rows]
    return OnClock(flat.place_of(rows), fit.times_of(start_ns), fit.times_of(end_ns))


def _gathered(flat: Flat, sequences: Sequence[IntArray], clocks: Sequence[int]) -> list[Members]:
    """Groups of sequences, by number.

    Two ranks are together where their ends are, and not much farther apart than those of the rank
    that either fits best: ranks of other groups work in nearly the same rhythm.
    """
    fits: Fits = {}
    for (first, led), (second, own) in combinations(enumerate(sequences), 2):
        one_clock = clocks[flat.place_of(led)] == clocks[flat.place_of(own)]
        ends_ns = flat.rows.end_ns
        if (fitted := shift_between(ends_ns[own], ends_ns[led], one_clock=one_clock)) is not None:
            fits[first, second] = fitted
    best = best_of(fits, len(sequences))
    together = JoinedSequences(len(sequences))
    for (first, second), (residual_ns, by) in sorted(fits.items(), key=lambda fit: fit[1][0]):
        if residual_ns <= FARTHER * max(min(best[first], best[second]), FINEST_NS):
            together.join(first, second, by)
    return together.groups()


def shift_between(
    own_ns: IntArray, led_ns: IntArray, *, one_clock: bool
) -> tuple[float, int] | None:
    """Residual and shift at which the ends lie together, none if that does; None where they never
    do.
    """
    fits, least = [], max(2, -(-min(len(own_ns), len(led_ns)) // 2))
    for shift, mine, theirs in overlaps(own_ns, led_ns, least, one_clock=one_clock):
        own, led = own_ns[mine], led_ns[theirs]
        residual_ns = float(np.median(np.abs(led - own))) if one_clock else scatter_ns(own, led)
        if residual_ns <= TOGETHER.value:
            fits.append((residual_ns, shift))
            if residual_ns <= FINEST_NS and not shift:
                break
    best = min(fits, key=lambda fit: (max(fit[0], FINEST_NS), abs(fit[1])), default=None)
    if best and not fits[0][1] and fits[0][0] <= _CLEARLY * best[0]:  # none is the first
        return fits[0]
    return best
