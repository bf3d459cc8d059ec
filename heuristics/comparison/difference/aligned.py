"""What one side does by some kernels and the other by others: steps aligned by order of launch.

Work is matched by its place among other work, not by its name alone: kernels that another
precision, library or fusing put in place of others stand beside those. Every activity of both steps
is in one group, or in what is the same on both sides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from typing import Final

from msgspec.structs import astuple

from heuristics.comparison.difference.alignment import Block, Scores, align
from heuristics.comparison.difference.kernels import NO_PURPOSE
from heuristics.comparison.difference.places import (
    ALIKE,
    Name,
    Place,
    Places,
    Side,
    kinds_of,
    name_of,
    named_places,
    places_of,
    scores_of,
    spelled,
)
from heuristics.comparison.difference.subject import only_one, same_count
from heuristics.result.compared import Exchange, ExchangeChange, Exchanges, ExchangeSum, Worked
from heuristics.words import lacking
from traces.limits import Limit
from traces.missing import Missing, known
from traces.names.kernels import GRAPH_REPLAY
from traces.sections.rank import Rank
from traces.sections.section import copied
from traces.sections.tables import Kind, Phase
from traces.sections.tables import Sequence as Recorded

ROWS: Final = Limit(
    60, "rows", "ours: 15 kB, and more than anybody reads; the largest differences are kept"
)
REPLACED: Final = Limit(
    12,
    "kernels a side",
    "ours: attention without fusing is 5 to 9; a layer or a microbatch more is no replacement",
)
_REPLAY: Final = f"compute.{GRAPH_REPLAY}"
Step = tuple[Rank, Recorded]
Parts = dict[tuple[int, Name], "_Group"]
"""Work of one name on one side, 0 or 1."""


class _Group:
    """Work of either side that stands in the same places."""

    def __init__(self) -> None:
        self.base, self.new = self.sides = Side(), Side()
        self.phases: set[Phase | None] = set()

    @property
    def phase(self) -> Phase | None:
        """The one that is known of them; None where several are."""
        return only_one(self.phases)

    @property
    def works_ns(self) -> dict[str, Fraction]:
        """Work of both sides by key."""
        works = defaultdict[str, Fraction](Fraction)
        for side in self.sides:
            for (_, key), work_ns in side.works_ns.items():
                works[key] += work_ns
        return works

    def swapped(self) -> _Group:
        self.base, self.new = self.sides = self.new, self.base
        return self

    def place(self, side: int, kind: Kind, place: Place) -> None:
        """Add a place of a side."""
        self.phases.add(kind.phase)
        self.sides[side].add(name_of(kind), place.count, place.work_ns)

    def add(self, other: _Group) -> None:
        self.phases |= other.phases
        for mine, theirs in zip(self.sides, other.sides, strict=True):
            for name, count in theirs.counts.items():
                mine.add(name, count, theirs.works_ns[name])


def _bucket(kind: Kind) -> str:
    """Communication for different purposes does not stand for each other either."""
    if _has_purpose(kind.key):
        return kind.key
    return kind.key.partition(".")[0]


def _has_purpose(key: str) -> bool:
    return key.startswith("comm.") and key not in NO_PURPOSE


def exchanges(base: Rank, new: Rank) -> Exchanges | Missing:
    """What stands for what in the steps of both, merged over layers, the largest difference
    first.
    """
    mine, theirs = base.sequence, new.sequence
    if not mine or not theirs:
        return lacking("comparison.no-sequence")
    if (known(mine.step) is None) != (known(theirs.step) is None):
        return lacking("comparison.step-against-window", cure="comparison.no-steps-cure")
    if _has_replays(mine) != _has_replays(theirs):
        return lacking("comparison.replays-against-kernels")
    return _summed(_groups((base, mine), (new, theirs)))


def _has_replays(sequence: Recorded) -> bool:
    return any(kind.key == _REPLAY for kind in sequence.kinds)


def _groups(base: Step, new: Step) -> list[_Group]:
    """All groups, each key once. Swapped sides give the same groups, as one order of both is
    aligned.
    """
    sides = sorted((base, new), key=_signature)
    groups = list(_merged(_Sides(*sides)))
    if sides[0] is base:
        return groups
    return list(map(_Group.swapped, groups))


def _signature(step: Step) -> tuple[object, ...]:
    _, side = step
    kinds = list(map(_written, side.kinds))
    return [kinds[of] for of in side.of], side.run_length, side.work_ns, astuple(side.loops)


def _written(kind: Kind) -> tuple[str, str, str]:
    return kind.key, kind.name or "", kind.phase or ""


class _Sides:
    """Both sequences as places, and the blocks in which they stand against each other; `unplaced`:
    blocks of what is in no place; `directed`: names of which both know each purpose.
    """

    def __init__(self, base_step: Step, new_step: Step) -> None:
        (base_rank, base), (new_rank, new) = base_step, new_step
        mine, theirs = places_of(base, new)
        self.base = named_places(base_rank, base, mine)
        self.new = named_places(new_rank, new, theirs)
        self.scores: Scores = scores_of(base.kinds, new.kinds)
        self.blocks = list(align(kinds_of(mine), kinds_of(theirs), self.scores))
        keys = defaultdict[str, set[str]](set)
        for kind in (*base.kinds, *new.kinds):
            keys[kind.name or ""].add(kind.key)
        self.directed = {name for name, of in keys.items() if all(map(_has_purpose, of))}
        nothing = range(0)
        rest, their_rest = range(len(mine), len(self.base)), range(len(theirs), len(self.new))
        self.unplaced: tuple[Block, ...] = (rest, nothing), (nothing, their_rest)

    def worth(self, block: Block) -> int:
        """What a block is worth as a pair; 0 where it is none."""
        if len(block[0]) != 1 or len(block[1]) != 1:
            return 0
        ((_, base),), ((_, new),) = self.of(block)
        return int(self.scores[base.kind][new.kind])

    def of(self, block: Block) -> tuple[Places, Places]:
        """The places of both sides in a block."""
        rows, columns = block
        return self.base[rows.start : rows.stop], self.new[columns.start : columns.stop]


def _merged(sides: _Sides) -> Iterator[_Group]:
    """Groups by what they hold: kernels that stand for each other; one kernel that both have, or
    only one.

    A kernel that runs as often on both sides stands for itself wherever it is; so does one that a
    side would have alone, though it runs on the other.
    """
    base, new = map(_counts, (sides.base, sides.new))
    own = {name for name in base.keys() & new.keys() if same_count(base[name], new[name])}
    while True:
        groups = _grouped(sides, own)
        alone = (group for group in groups if not (group.base and group.new))
        names = set(chain.from_iterable(group.base.names | group.new.names for group in alone))
        split = (names & base.keys() & new.keys()) - own
        if not split:
            return _by_purpose(groups)
        own |= split


def _counts(places: Places) -> dict[str, float]:
    counts = defaultdict[str, float](float)
    for kind, place in places:
        counts[spelled(name_of(kind)[0])] += place.count
    return counts


def _grouped(sides: _Sides, own: set[str]) -> Collection[_Group]:
    """All work by group. `own`: names that stand for themselves."""
    merged = defaultdict[object, _Group](_Group)
    for block in (*_stretches(sides), *sides.unplaced):
        for parts in _by_bucket(sides.of(block)):
            free = (part for (_, (name, _)), part in parts.items() if spelled(name) not in own)
            whole = _merged_group(free)
            names = frozenset(whole.base.names), frozenset(whole.new.names)
            few = all(0 < len(one) <= REPLACED.value for one in names)
            is_replaced = few and names[0] != names[1]
            if is_replaced:
                merged[names, whole.phase].add(whole)
            for (_, (name, key)), part in parts.items():
                if not is_replaced or spelled(name) in own:
                    merged[spelled(name), key if name in sides.directed else ""].add(part)
    return merged.values()


def _by_bucket(both_sides: tuple[Places, Places]) -> Iterator[Parts]:
    """Compute against compute, copies against copies: none is done in place of another."""
    by_bucket = defaultdict[str, Parts](lambda: defaultdict(_Group))
    for side, places in enumerate(both_sides):
        for kind, place in places:
            by_bucket[_bucket(kind)][side, name_of(kind)].place(side, kind, place)
    for bucket in sorted(by_bucket):
        yield by_bucket[bucket]


def _by_purpose(groups: Iterable[_Group]) -> Iterator[_Group]:
    """Communication for one purpose that each side has alone, wherever in its step, is one group.

    Another dispatcher or bucket size moves it to another place, and its kind says what it is for.
    """
    alone = defaultdict[str, list[_Group]](list)
    for group in groups:
        key = _key(group)
        if _has_purpose(key) and not (group.base and group.new):
            alone[key].append(group)
        else:
            yield group
    for alone_groups in alone.values():
        whole = _merged_group(alone_groups)
        if whole.base and whole.new:
            yield whole
        else:
            yield from alone_groups


def _merged_group(groups: Iterable[_Group]) -> _Group:
    whole = _Group()
    for group in groups:
        whole.add(group)
    return whole


def _stretches(sides: _Sides) -> Iterator[Block]:
    """The blocks; neighbours that belong together are one, where work of one side alone is among
    them.

    So kernels that replace several are held against all of them, not each against the one it was
    paired with.
    """
    kept = list[Block]()
    for block in sides.blocks:
        if kept and not _belong(sides, kept[-1], block):
            yield from _joined(kept)
            kept = []
        kept.append(block)
    yield from _joined(kept)


def _joined(blocks: Sequence[Block]) -> Iterator[Block]:
    if all(block[0] and block[1] for block in blocks):
        yield from blocks
    else:
        first, last = blocks[0], blocks[-1]
        yield range(first[0].start, last[0].stop), range(first[1].start, last[1].stop)


def _belong(sides: _Sides, block: Block, following: Block) -> bool:
    """Whether neighbours may be one piece of work: neither is the same kernel on both sides, nor
    already several against several, and they share a class.
    """
    loose = _is_loose(sides, block) and _is_loose(sides, following)
    return loose and not _classes(sides, block).isdisjoint(_classes(sides, following))


def _is_loose(sides: _Sides, block: Block) -> bool:
    return not (block[0] and block[1]) or 0 < sides.worth(block) < ALIKE


def _classes(sides: _Sides, block: Block) -> set[str]:
    return {kind.key for kind, _ in chain(*sides.of(block))}


def _summed(groups: Sequence[_Group]) -> Exchanges:
    """Rows of the document, the largest difference first; rounded so that each side adds up."""
    same, differing = _Group(), list[_Group]()
    for group in groups:
        if _is_same(group):
            same.add(group)
        else:
            differing.append(group)
    differing.sort(key=_size)
    shown, left_out = differing[: ROWS.whole], differing[ROWS.whole :]
    whole = [*shown, _merged_group(left_out), same]
    base_ns = _rounded(part.base.work_ns for part in whole)
    new_ns = _rounded(part.new.work_ns for part in whole)
    rows = tuple(map(_row, shown, base_ns, new_ns))
    left_out_sum, same_sum = map(_sum, whole[-2:], base_ns[-2:], new_ns[-2:])
    return Exchanges(rows, same_sum, len(left_out), left_out_sum)


def _rounded(works_ns: Iterable[Fraction]) -> list[int]:
    """As integers that add up to their rounded sum, none below zero."""
    rounded, sum_ns = list[int](), Fraction(0)
    for work_ns in works_ns:
        rounded.append(round(sum_ns + work_ns) - round(sum_ns))
        sum_ns += work_ns
    return rounded


def _is_same(group: _Group) -> bool:
    """Whether it is one kernel, as often on both sides, whatever either takes its purpose for."""
    names = group.base.names | group.new.names
    return len(names) == 1 and same_count(group.base.count, group.new.count)


def _size(group: _Group) -> tuple[object, ...]:
    delta_ns = group.new.work_ns - group.base.work_ns
    return (
        -abs(delta_ns),
        *sorted((sorted(group.base.counts), sorted(group.new.counts))),
        group.phase or "",
    )


def _sum(group: _Group, base_ns: int, new_ns: int) -> ExchangeSum:
    return ExchangeSum(group.base.count, group.new.count, base_ns, new_ns)


def _row(group: _Group, base_ns: int, new_ns: int) -> Exchange:
    return copied(
        Exchange,
        _sum(group, base_ns, new_ns),
        group,
        change=_change(group),
        key=_key(group),
        base=_worked(group.base, base_ns),
        new=_worked(group.new, new_ns),
        delta_ns=new_ns - base_ns,
    )


def _change(group: _Group) -> ExchangeChange:
    if not group.new:
        return "gone"
    if not group.base:
        return "new"
    if group.base.names != group.new.names:
        return "exchanged"
    if group.new.count > group.base.count:
        return "more"
    return "fewer"


def _key(group: _Group) -> str:
    """The key that most of the work of both sides has."""
    works_ns = group.works_ns
    return min(works_ns, key=lambda key: (-works_ns[key], key))


def _worked(side: Side, work_ns: int) -> tuple[Worked, ...]:
    """Kernels of one side, those with the most work first; rounded so that they add up to its
    work.
    """
    ordered = sorted(side.counts, key=lambda name: (-side.works_ns[name], name))
    works_ns = _rounded(side.works_ns[name] for name in ordered)
    if works_ns:
        works_ns[0] += work_ns - sum(works_ns)
    return tuple(
        Worked(*name, float(side.counts[name]), each_ns)
        for name, each_ns in zip(ordered, works_ns, strict=True)
    )
