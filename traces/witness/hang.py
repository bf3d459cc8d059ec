"""Where a run hangs: the first collective that the ranks of a group did not all enter alike.

Ranks are compared group by group, by the sequence number that PyTorch gives a collective in its
group. Where the missing ranks wait in another group's collective that is not complete either, that
one comes first: it is followed until a rank waits nowhere, or the ranks wait for each other.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain, combinations
from typing import Final

from traces.frozen import frozen
from traces.missing import gap
from traces.names.process_groups import EVERYBODY, settings_of
from traces.sections.hang import Hang, HangKind, RanksAt, WitnessSource
from traces.witness.dump import Dump, Entered, GroupKey, GroupSaid

ByRank = Mapping[int, Entered]
"""What each rank entered."""
_SAME_SIZE: Final = frozenset({"ALLREDUCE", "ALLGATHER", "REDUCE_SCATTER", "BROADCAST", "REDUCE"})
"""Operations whose ranks must give the same; others may give each peer another size."""
_NO_DUMP: Final = gap(
    "ranks of this group have no dump", "give the dumps of all ranks: --witness FILE"
)


@frozen
class _Group:
    """A process group and what its ranks entered, by sequence number."""

    key: GroupKey
    said: GroupSaid
    members: tuple[int, ...]
    by_rank: Mapping[int, ByRank]
    last_entered: Mapping[int, int]

    @property
    def name(self) -> str:
        return _name(self.said, self.key)


@frozen
class _Stuck:
    """A collective that was not entered alike: `here` are the ranks that define it, with their
    entries.
    """

    group: _Group
    sequence: int
    kind: HangKind
    here: ByRank
    others: ByRank
    missing: tuple[int, ...]
    silent: tuple[int, ...]

    @property
    def certainty(self) -> int:
        """0 where a rank is known to be elsewhere, 1 where dumps are missing, 2 where all ranks are
        there.
        """
        if self.kind is HangKind.TRANSFER:
            return 2
        return int(not (self.missing or self.others))

    @property
    def since_ns(self) -> int:
        return min(entry.created_ns for entry in self.here.values())


def find_hang(dumps: Sequence[Dump]) -> Hang | None:
    """The hang that dumps of the Flight Recorder show; None where all ranks finished what they
    entered.

    Other dumps hold finished collectives alone.
    """
    by_rank = {dump.rank: dump for dump in dumps if dump.source is WitnessSource.FLIGHT_RECORDER}
    stuck = [*filter(None, map(partial(_first_stuck, present={*by_rank}), _groups(by_rank)))]
    if not stuck:
        return None
    first = min(stuck, key=lambda other: (other.certainty, other.since_ns, other.group.key))
    return _hang(*_root(first, stuck), by_rank)


def _name(about: GroupSaid, key: GroupKey) -> str:
    is_number = key[0].isascii() and key[0].isdigit() and len(key[0]) < 8
    number = key[0] if is_number else "without a known name"
    return about.description or f"process group {number}"


def _groups(by_rank: Mapping[int, Dump]) -> Iterator[_Group]:
    by_group = defaultdict[GroupKey, dict[int, dict[int, Entered]]](lambda: defaultdict(dict))
    about: dict[GroupKey, GroupSaid] = {}
    last = defaultdict[GroupKey, dict[int, int]](dict)
    for rank, dump in by_rank.items():
        for key, group_said in dump.groups.items():
            about.setdefault(key, group_said)
            if group_said.last_entered is not None:
                last[key][rank] = group_said.last_entered
        for entered in dump.entered:
            by_group[entered.group][rank][entered.sequence] = entered
    for key in sorted(about):
        present = by_rank if about[key].description == EVERYBODY else by_group[key]
        members = key[1] or tuple(sorted(present))
        if len(members) > 1:
            yield _Group(key, about[key], members, by_group[key], last[key])


def _first_stuck(group: _Group, present: Set[int]) -> _Stuck | None:
    """The first collective of a group that was not entered alike and holds somebody up."""
    here, silent = sorted(present & {*group.members}), tuple(sorted({*group.members} - present))
    for sequence in sorted({*chain.from_iterable(group.by_rank.values())}):
        entered, waiting = dict[int, Entered](), dict[int, Entered]()
        for rank, entries in group.by_rank.items():
            if rank in here and sequence in entries:
                entered[rank] = entry = entries[sequence]
                if not entry.finished:
                    waiting[rank] = entry
        missing = tuple(
            rank for rank in here if rank not in entered and not _is_past(group, rank, sequence)
        )
        # gloo fails where sizes differ, is then done with it, and no rank goes on in the group
        is_last = all(max(group.by_rank[rank]) == sequence for rank in entered)
        if not (is_last or _holds_up(group, sequence, entered)):
            continue
        if (kind := _difference(group, sequence, entered)) is not None:
            most, others = _majority(entered)
            return _Stuck(group, sequence, kind, most, others, missing, silent)
        if waiting and (missing or silent):
            return _Stuck(group, sequence, HangKind.MISSING_RANK, waiting, {}, missing, silent)
        if waiting and len(waiting) == len(entered):
            return _Stuck(group, sequence, HangKind.TRANSFER, waiting, {}, (), silent)
    return None


def _is_past(group: _Group, rank: int, sequence: int) -> bool:
    """Whether a rank entered it before what its dump still holds: the Flight Recorder keeps the
    last ones.
    """
    entries = group.by_rank.get(rank, {})
    return sequence < min(entries, default=0) or sequence <= group.last_entered.get(rank, -1)


def _holds_up(group: _Group, sequence: int, entered: ByRank) -> bool:
    """Whether a rank that entered it has not finished it, or what it entered after it."""
    return any(
        not entry.finished
        for rank in entered
        for at, entry in group.by_rank[rank].items()
        if at >= sequence
    )


def _difference(group: _Group, sequence: int, entered: ByRank) -> HangKind | None:
    operations = {entry.operation for entry in entered.values()}
    sizes = {entry.elements for entry in entered.values() if entry.elements}
    if len(operations) < 2 and (len(sizes) < 2 or not operations <= _SAME_SIZE):
        return None
    if _crossed(group, sequence, entered):
        return HangKind.OTHER_ORDER
    return HangKind.OTHER_OPERATION if len(operations) > 1 else HangKind.OTHER_SIZE


def _crossed(group: _Group, sequence: int, entered: ByRank) -> bool:
    """Whether each of two ranks calls later what the other calls now."""

    def later(rank: int) -> set[tuple[str, str]]:
        return {_call_of(entry) for at, entry in group.by_rank[rank].items() if at > sequence}

    for rank, other in combinations(entered, 2):
        mine, theirs = _call_of(entered[rank]), _call_of(entered[other])
        if mine != theirs and mine in later(other) and theirs in later(rank):
            return True
    return False


def _call_of(entry: Entered) -> tuple[str, str]:
    return entry.operation, entry.elements if entry.operation in _SAME_SIZE else ""


def _majority(entered: ByRank) -> tuple[ByRank, ByRank]:
    """What most ranks entered, of equals what the lowest rank did, and the others."""
    by_what = defaultdict[tuple[str, str], dict[int, Entered]](dict)
    for rank, entry in sorted(entered.items()):
        by_what[_call_of(entry)][rank] = entry
    most = max(by_what.values(), key=lambda ranks: (len(ranks), -min(ranks)))
    return most, {rank: entry for rank, entry in entered.items() if rank not in most}


def _root(first: _Stuck, stuck: Sequence[_Stuck]) -> tuple[_Stuck, tuple[_Stuck, ...]]:
    """What holds up the rest, and the circle that it is part of, if ranks wait for each other."""
    chain = [first]
    while chain[-1].kind is HangKind.MISSING_RANK:
        absent = {*chain[-1].missing}
        held = [
            other
            for other in stuck
            if other is not chain[-1] and absent & {*other.here, *other.others}
        ]
        if not held:
            break
        onward = min(held, key=lambda other: (other.certainty, other.since_ns))
        if onward.kind is HangKind.TRANSFER:
            break
        if onward in chain:
            return onward, tuple(chain[chain.index(onward) :])
        chain.append(onward)
    return chain[-1], ()


def _hang(root: _Stuck, circle: Sequence[_Stuck], by_rank: Mapping[int, Dump]) -> Hang:
    entry, group = next(iter(root.here.values())), root.group
    missing = tuple(sorted({*root.missing, *root.others}))
    elsewhere = [*_ranks_at(group.name, root.others)]
    for other in circle:
        if other is not root:
            elsewhere += _ranks_at(other.group.name, other.here)
    return Hang(
        kind=HangKind.OTHER_ORDER if circle else root.kind,
        source=WitnessSource.FLIGHT_RECORDER,
        group=group.name,
        operation=entry.operation,
        sequence=root.sequence,
        ranks_missing=missing or (_NO_DUMP if root.silent else ()),
        ranks_entered=tuple(sorted(root.here)),
        ranks_silent=root.silent,
        group_size=group.said.size or len(group.members),
        settings=settings_of(group.said.description),
        elements=entry.elements,
        elsewhere=tuple(elsewhere or _last_of(root.missing, by_rank)),
    )


def _ranks_at(group: str, entered: ByRank) -> Iterator[RanksAt]:
    """The ranks of a group, by its name, by the collective that they are in."""
    together = defaultdict(list)
    for rank, entry in sorted(entered.items()):
        together[entry.operation, entry.sequence, entry.elements, entry.finished].append(rank)
    for (operation, sequence, elements, finished), ranks in together.items():
        yield RanksAt(tuple(ranks), group, operation, sequence, finished, elements)


def _last_of(ranks: Sequence[int], by_rank: Mapping[int, Dump]) -> Iterator[RanksAt]:
    """The last collective that each of the missing ranks entered."""
    for rank in ranks:
        dump = by_rank[rank]
        if not dump.entered:
            continue
        last = max(dump.entered, key=lambda entry: (entry.created_ns, entry.sequence))
        yield from _ranks_at(_name(dump.groups[last.group], last.group), {rank: last})
