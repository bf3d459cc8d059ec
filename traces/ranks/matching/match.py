"""Collectives of many ranks as instances: the same group, the same number in it, and who took part.

Where a group is known only by the order of its collectives (`GroupSource.ORDER`),
`communicators.py` first finds which ranks are in it and where their orders begin.

Some recordings began a few collectives later than others of a communicator. Where ranks have other
numbers of them, theirs move by the shift at which their ends lie together. Numbers that were
recorded stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from traces.arrays import (
    BoolArray,
    IntArray,
    Lasting,
    count_from_0,
    distinct,
    ints,
    order_of,
    reach,
    sums_before,
)
from traces.frozen import frozen
from traces.groups import begins
from traces.ranks.clocks.clock_fit import ClockFit
from traces.ranks.clocks.rendezvous import joined_clocks, of_one_program, sequences_of
from traces.ranks.matching.communicators import MOST, Flat, flat_of, settled_order, shift_between
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import (
    ENDS_TOGETHER,
    Group,
    GroupSource,
    Operation,
    RecordedCollectives,
    Summaries,
    clocks_of,
    of_source,
    recorded_of,
)


def counted_from_one_start(flat: Flat) -> Flat:
    """The rows, with the numbers of collectives in a communicator or a process group counted from
    one of them on all ranks.
    """
    numbered, unnumbered = map(
        flat.of_source, (GroupSource.COMMUNICATOR, GroupSource.PROCESS_GROUP)
    )
    named = np.flatnonzero(numbered | unnumbered)
    places = count_from_0(flat.place)
    part = flat.rows.group[named] * places + flat.place[named]
    ordered = np.sort(part)
    first = parts.begins_of(ordered)
    of_part, count = ordered[first[:-1]], np.diff(first)
    uneven = _uneven(of_part // places, count)
    if not uneven.any() and not unnumbered.any():
        return flat
    rows_of = np.split(named[order_of(part)], first[1:-1])
    sequence = flat.rows.sequence.copy()
    # windows that differ lose as many, too
    looked_at = of_part if len(of_part) <= _LOOKED_AT else of_part[uneven]
    for group in distinct(looked_at // places).tolist():
        mine = np.flatnonzero(of_part // places == group)
        numbers, how_many = np.unique(count[mine], return_counts=True)
        usual = int(numbers[::-1][how_many[::-1].argmax()])  # of equals the longest
        leader = mine[count[mine] == usual][0]
        led = flat.rows.end_ns[rows_of[leader]]
        for other_part in mine[mine != leader].tolist():
            rows = rows_of[other_part]
            fit_of_part = shift_between(flat.rows.end_ns[rows], led, one_clock=False)
            if fit_of_part is not None:
                sequence[rows] += fit_of_part[1]
    return replace(flat, rows=replace(flat.rows, sequence=sequence))


_LOOKED_AT: Final = 2_048
"""Sequences of which all are looked at where some are longer; of more, those of groups that are
uneven."""


def _uneven(group: IntArray, count: IntArray) -> BoolArray:
    """Which counts are of groups whose ranks have different ones; groups stand together."""
    first = parts.begins_of(group)
    return parts.spread(parts.varies(count, first), first)


SIZES_AGREE = (*ENDS_TOGETHER, Operation.BROADCAST, Operation.REDUCE)
"""Operations to which every rank gives the same size; in an exchange each gives its own."""


@frozen
class Matched(Lasting):
    """Instances that at least two of the ranks recorded, n of them, and their participations, p of
    them.

    Participations of instance i are the rows [first[i], first[i + 1]) of the arrays of shape (p,),
    in order of place; `instance` is i, `place` that of the summary, `at` where it stands in
    `recorded`. Times are as recorded. Instances are in order of group and sequence; `group`,
    `sequence` and `operation` are of shape (n,).
    """

    first: IntArray
    instance: IntArray
    place: IntArray
    at: IntArray
    start_ns: IntArray
    end_ns: IntArray
    step: IntArray
    kind: IntArray
    group: IntArray
    sequence: IntArray
    operation: IntArray
    groups: tuple[Group, ...]
    recorded: RecordedCollectives
    disagreeing: IntArray
    """Of each summary, how many of its collectives did something else than the others of the
    instance."""
    agreed: bool = True
    """Whether what was put together by order alone can be told from what only looks alike."""
    clocks: Mapping[int, ClockFit] | None = None
    """Where it was put together by clocks that leave no doubt, these."""

    def __len__(self) -> int:
        return len(self.first) - 1

    def take(self, instances: BoolArray) -> Matched:
        rows, first = parts.spread(instances, self.first), sums_before(self.sizes[instances])
        return replace(
            self,
            first=first,
            instance=parts.numbers(first),
            place=self.place[rows],
            at=self.at[rows],
            start_ns=self.start_ns[rows],
            end_ns=self.end_ns[rows],
            step=self.step[rows],
            kind=self.kind[rows],
            group=self.group[instances],
            sequence=self.sequence[instances],
            operation=self.operation[instances],
        )

    @property
    def ranks(self) -> int:
        """Those of all summaries, whether they took part in any or not."""
        return len(self.disagreeing)

    @property
    def kinds(self) -> IntArray:
        """Of each instance, shape (n,), the kind that its first participation has."""
        return self.kind[self.first[:-1]]

    @property
    def exposed_ns(self) -> IntArray:
        """As recorded, shape (p,), and gathered when it is asked; and so are the next ones."""
        return self.recorded.rows.exposed_ns[self.at]

    @property
    def compute_ns(self) -> IntArray:
        return self.recorded.rows.compute_ns[self.at]

    @property
    def grouped_ns(self) -> IntArray:
        return self.recorded.rows.grouped_ns[self.at]

    @property
    def by_order(self) -> BoolArray:
        """Which instances are of groups known by the order of their collectives only, shape
        (n,).
        """
        return of_source(GroupSource.ORDER, self.groups)[self.group]

    @property
    def purposes(self) -> IntArray:
        """Of each instance what its group is for, shape (n,), as in `Group`."""
        return ints([group.purpose for group in self.groups])[self.group]

    @property
    def sizes(self) -> IntArray:
        """How many took part in each instance, shape (n,)."""
        return np.diff(self.first)

    def members(self) -> tuple[IntArray, IntArray]:
        """The places in each group, one group after the other, and where those of each begin."""
        group, place = np.divmod(
            distinct(self.group[self.instance] * self.ranks + self.place), self.ranks
        )
        return place, parts.begins_of(group)

    @property
    def ends_together(self) -> BoolArray:
        """Which instances end on all their ranks at once, shape (n,)."""
        return np.isin(self.operation, ENDS_TOGETHER)


def match(summaries: Summaries, fits: Mapping[int, ClockFit] | None = None) -> Matched:
    """Match the collectives of the summaries. `fits`: their clocks, where these are known
    already.
    """
    count = len(summaries)
    recorded = recorded_of(summaries)
    flat = counted_from_one_start(flat_of(summaries, recorded))
    flat = settled_order(flat, [summary.identity.clock for summary in summaries], fits)
    rows = _in_order(flat)
    first = parts.begins_of(flat.rows.group[rows], flat.rows.sequence[rows])
    # what most of its instance do: the operation, and the size where sizes must agree
    operation, size = flat.rows.operation[rows], flat.rows.size_bytes[rows]
    agrees = operation == parts.spread(parts.median(operation, first), first)
    is_told = np.isin(operation, SIZES_AGREE) & (size >= 0)
    agrees &= ~is_told | (size == parts.spread(parts.median(size, first, is_told), first))
    disagreeing = np.bincount(flat.place[rows[~agrees]], minlength=count)
    taking_part = parts.total(ints(agrees), first)
    several = taking_part > 1
    rows, first = rows[agrees & parts.spread(several, first)], sums_before(taking_part[several])
    leaders = rows[first[:-1]]
    return Matched(
        first=first,
        instance=parts.numbers(first),
        place=flat.place[rows],
        at=rows,
        start_ns=flat.rows.start_ns[rows],
        end_ns=flat.rows.end_ns[rows],
        step=flat.rows.step[rows],
        kind=flat.rows.kind[rows],
        group=flat.rows.group[leaders],
        sequence=flat.rows.sequence[leaders],
        operation=flat.rows.operation[leaders],
        groups=flat.groups,
        recorded=recorded,
        disagreeing=disagreeing,
    )


def together(matched: Matched, which: BoolArray) -> IntArray:
    """A number for each place, the same for all that took part in these instances with each
    other.
    """
    number = np.arange(matched.ranks)
    for chosen in (which & begins(matched.group), which):  # one of each group holds most together
        rows = np.flatnonzero(chosen[matched.instance])
        first = parts.begins_of(matched.instance[rows])
        number = parts.joined(matched.place[rows], first, matched.ranks)
        if not number.any():
            break
    return number


def by_joints(summaries: Summaries) -> tuple[dict[int, ClockFit] | None, bool]:
    """Clocks of ranks that are known by the order of their collectives alone, None where these
    leave doubt; and whether the ranks are of one program, in which the turn of a stream stands for
    its group.
    """
    if not 1 < len(summaries) <= MOST.value:
        return None, True
    ranks = []
    for summary in summaries:
        rows = summary.instances
        if not len(rows):
            return None, True
        ranks.append(sequences_of(rows.end_ns, rows.operation, rows.group, len(summary.steps)))
    return joined_clocks(ranks, *clocks_of(summaries)), of_one_program(ranks)


def _in_order(flat: Flat) -> IntArray:
    """Rows by group, sequence and place; a rank takes part in an instance once."""
    sequence, group = flat.rows.sequence, flat.rows.group
    least, most = reach(sequence)
    span = most - least + 1
    if (count := (len(flat.groups) + 1) * span) < 1 << 62:
        order = parts.order_of(group * span + (sequence - least), count)
    else:
        order = np.lexsort((sequence, group))
    return order[begins(group[order], sequence[order], flat.place[order])]
