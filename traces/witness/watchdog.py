"""What a training log says of a hang: lines of PyTorch's watchdog (ProcessGroupNCCL.cpp) -> `Hang`.

A line is of a rank that gave up waiting. Who did not arrive is known only where the group has all
ranks, their number is known, and all the others gave up as well. A rank that waits in several
collectives at once, or two that wait in other ones in the same place, show how they differ.
"""

from collections import defaultdict
from itertools import combinations
from typing import NamedTuple

from msgspec.structs import replace

from traces.limits import MOST_RANKS
from traces.missing import gap, of_known
from traces.names.process_groups import EVERYBODY, known_group, operation_named, settings_of
from traces.sections.hang import Hang, HangKind, RanksAt, WitnessSource
from traces.settings.settings import KnobView, Settings
from traces.texts import Texts
from traces.training_log.log import Message, TrainingLog

TIMEOUT = "collective-timeout"
"""The line's id in `known_lines.toml`."""
_WHO = gap(
    "the log names the ranks that waited, not the one that did not arrive",
    "give the dumps of PyTorch's Flight Recorder (TORCH_FR_BUFFER_SIZE=2000): --witness FILE",
)
_UNNUMBERED = gap(
    "the line has no sequence number", "give the dumps of the Flight Recorder: --witness FILE"
)


def hang_of_log(log: TrainingLog) -> Hang | None:
    """The collective that most ranks gave up in, of equals the first; None where no rank gave
    up.
    """
    lines = [line for line in log.messages if line.id == TIMEOUT and "operation" in line.said]
    if not lines:
        return None
    alike: dict[Texts, list[Message]] = {}
    for timeout in lines:
        alike.setdefault(_call_of(timeout), []).append(timeout)
    by_rank = _waits(lines)
    for mine, theirs in (waits[:2] for waits in by_rank.values() if len(waits) > 1):
        return _differing(HangKind.TIMEOUT, mine, theirs)
    if unlike := _unlike([waits[0] for waits in by_rank.values()]):
        return unlike
    largest = max(alike.values(), key=len)
    call = _call_of(largest[0])
    ranks = tuple(sorted({rank for line in largest if (rank := _rank(line)) is not None}))
    world = KnobView(log.settings or Settings()).count("world_size")
    gone = tuple(sorted({*range(world)} - {*ranks})) if world and world <= MOST_RANKS.value else ()
    hang = _hang(HangKind.TIMEOUT, call, ranks)
    if hang.group != EVERYBODY or not len(ranks) > len(gone) > 0:
        return hang
    return replace(hang, kind=HangKind.MISSING_RANK, ranks_missing=gone, group_size=world)


class _Wait(NamedTuple):
    """Where a rank waits; `elements` in and out."""

    rank: int
    call: tuple[str, str, str]
    elements: str


def _waits(lines: list[Message]) -> dict[int, list[_Wait]]:
    """Each place in which a rank waits once, of those that have a number."""
    by_rank = defaultdict[int, list[_Wait]](list)
    for line in lines:
        said, rank = line.said, _rank(line)
        if rank is not None and said.get("sequence"):
            elements = " to ".join(said[key] for key in ("numel_in", "numel_out") if key in said)
            wait = _Wait(rank, _call_of(line), elements)
            if wait not in by_rank[rank]:
                by_rank[rank].append(wait)
    return by_rank


def _unlike(waits: list[_Wait]) -> Hang | None:
    """Two ranks that wait in one place of the order for other operations or sizes."""
    for mine, theirs in combinations(waits, 2):
        if mine.call[1:] == theirs.call[1:] and mine[1:] != theirs[1:]:
            is_one = mine.call == theirs.call
            kind = HangKind.OTHER_SIZE if is_one else HangKind.OTHER_OPERATION
            return _differing(kind, mine, theirs)
    return None


def _differing(kind: HangKind, mine: _Wait, theirs: _Wait) -> Hang:
    operation, sequence, group = theirs.call
    known = known_group(group) or ""
    there = RanksAt((theirs.rank,), known, operation, int(sequence), False, theirs.elements)
    hang = _hang(kind, mine.call, (mine.rank,))
    return replace(hang, elements=mine.elements, elsewhere=(there,))


def _hang(kind: HangKind, call: tuple[str, str, str], ranks: tuple[int, ...]) -> Hang:
    operation, sequence, group = call
    return Hang(
        kind=kind,
        source=WitnessSource.LOG,
        group=known_group(group) or "",
        operation=operation,
        sequence=int(sequence) if sequence else _UNNUMBERED,
        ranks_missing=_WHO,
        ranks_entered=ranks,
        settings=settings_of(group),
    )


def _rank(line: Message) -> int | None:
    """Its rank in the run, where the line tells it, else in the group."""
    text = line.said.get("rank", line.said.get("in_group"))
    return of_known(int, text)


def _call_of(line: Message) -> tuple[str, str, str]:
    said = line.said
    return operation_named(said["operation"]), said.get("sequence", ""), said.get("group", "")
