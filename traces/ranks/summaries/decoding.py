"""Summaries from their bytes, many at once: their tables are unpacked and checked as one.

Whatever is read is checked: a summary may come from anywhere.
"""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

import msgspec
import numpy as np

from traces.arrays import BoolArray, IntArray, Rows
from traces.errors import DamagedTrace, NotATrace
from traces.limits import MOST_RANKS, Limit
from traces.names.file_names import told_name
from traces.names.kernels import COMM_KINDS
from traces.patterns import compiled
from traces.ranks.rows import parts
from traces.ranks.summaries.codec import MARK, RISING, START, TABLES, TYPES, VERSION, Wire, is_summary
from traces.ranks.summaries.summary import (
    UNKNOWN,
    ExpertWork,
    Identity,
    Instances,
    KernelTimes,
    Messages,
    Operation,
    Peers,
    RankSummary,
    StepParts,
)

R = TypeVar("R", bound=Rows)
_UNPACKED: Final = Limit(8_000_000, "bytes", "ours: over 60,000 collectives; more is no summary of ours")
_CELLS: Final = int(_UNPACKED.value) // 8
"""Numbers of that many bytes, as which they are held however short they were packed."""
_MOST_LAYERS: Final = 1 << 20
_MOST: Final = 1 << 61
"""Above any time: sums of two stay within 64 bits."""
_BOUNDS: Final[Mapping[type[Rows], Mapping[str, tuple[int, int]]]] = {
    Instances: {"operation": (0, len(Operation)), "kind": (UNKNOWN, len(COMM_KINDS))},
    Messages: dict.fromkeys(Messages.__match_args__, (UNKNOWN, _MOST)),
    Peers: {
        "kind": (UNKNOWN, len(COMM_KINDS)),
        "sent_bytes": (0, _MOST),
        "received_bytes": (0, _MOST),
    },
    ExpertWork: {"layer": (0, _MOST_LAYERS), "work_ns": (0, _MOST)},
}
"""The least value of a column, and what is above all: codes that stand for something, amounts that can be."""
_DECODER: Final = msgspec.msgpack.Decoder(Wire)
_WORD: Final = compiled(r"[A-Za-z0-9_.+-]{0,60}")
"""A recorder and its version."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A summary whose tables, of shape (columns, rows), are as they were packed; `where` names its file."""

    where: str
    wire: Wire
    tables: tuple[IntArray, ...]


def decode(blob: bytes, where: str) -> RankSummary:
    """A summary from its bytes. Raises as `opened`."""
    (found,) = unpacked([opened(blob, where)])
    if isinstance(found, DamagedTrace):
        raise found
    return found


def opened(blob: bytes, where: str) -> Opened:
    """The message in these bytes.

    Raises `NotATrace` where it is none, or of a version that is unknown here, `DamagedTrace` where it is
    broken.
    """
    if not is_summary(blob):
        raise NotATrace(f"{where} is no summary of a rank. Make one: moe-diag analyze TRACE --summary FOLDER")
    body = len(MARK) + 1
    version = blob[len(MARK)] if len(blob) >= body else None
    if version != VERSION:
        raise NotATrace(f"{where} is a summary of version {version}; this moe-diag reads version {VERSION}")
    try:
        unpacker = zlib.decompressobj()
        message = unpacker.decompress(blob[body:], int(_UNPACKED.value))
        if not unpacker.eof or unpacker.unused_data:
            raise ValueError("not whole")
        wire = _DECODER.decode(message)
        wire.identity = _as_told(wire.identity)
        _check_numbers(wire)
        if not 0 < wire.dropped.resolution_ns < 1 << 30:
            raise ValueError("no resolution")
        lengths = iter(wire.lengths)
        tables = [
            table
            for block, kinds in zip((wire.narrow, wire.wide), TABLES, strict=True)
            for table in _tables(block, [next(lengths) for _ in kinds], kinds)
        ]
    except (zlib.error, msgspec.MsgspecError, ValueError, OverflowError):
        raise _damage(where) from None
    return Opened(where, wire, tuple(tables))


def _as_told(identity: Identity) -> Identity:
    """Who recorded it, by words that its reader may tell. Raises ValueError for a recorder that is none."""
    if not all(_WORD.fullmatch(one or "") for one in (identity.kind, identity.version)):
        raise ValueError("no recorder")
    file, mark, line = (identity.world_size_from or "").rpartition(":")
    said = f"{told_name(file)}:{line}" if mark and line.isdecimal() else told_name(line)
    given = None if identity.world_size_from is None else said
    return replace(identity, trace=told_name(identity.trace), world_size_from=given)


def _check_numbers(wire: Wire) -> None:
    """Raises ValueError for a rank or a size that no run has: as many are counted where they are missing."""
    numbers = [wire.identity.rank, wire.identity.world_size]
    numbers += [number for group in wire.groups for number in (group.size, group.own)]
    if any(number is not None and not 0 <= number <= MOST_RANKS.value for number in numbers):
        raise ValueError("no rank")


def _damage(where: str) -> DamagedTrace:
    return DamagedTrace(f"{where} is a damaged summary. Make it again with analyze --summary")


def _tables(block: bytes, lengths: Sequence[int], kinds: Sequence[type[Rows]]) -> list[IntArray]:
    columns = [len(kind.__match_args__) for kind in kinds]
    sizes = [few * length for few, length in zip(columns, lengths, strict=True)]
    if (
        sum(sizes) > _CELLS
        or min(lengths) < 0
        or not block
        or block[0] not in TYPES
        or len(block) != 1 + sum(sizes) * block[0]
    ):
        raise ValueError("not whole")
    numbers = np.frombuffer(block, dtype=TYPES[block[0]], offset=1)
    begin, tables = 0, []
    for few, size in zip(columns, sizes, strict=True):
        tables.append(numbers[begin : begin + size].reshape(few, -1) if size else _NO_ROWS[few])
        begin += size
    return tables


_NO_ROWS: Final = [np.empty((few, 0), dtype=np.int8) for few in range(len(Instances.__match_args__) + 1)]


class _Table(Generic[R]):
    """The tables of one kind of all summaries, as one: those of summary i are the columns `first[i]` on."""

    def __init__(self, kind: type[R], tables: Sequence[IntArray]) -> None:
        self._kind, self.names = kind, kind.__match_args__
        self.first = parts.borders(np.array([table.shape[1] for table in tables]))
        self._first = self.first.tolist()
        self.values = np.concatenate(tables, axis=1, dtype=np.int64)
        some = self.lengths > 0
        begin = self.first[:-1][some]
        for row in RISING.get(kind, ()) if len(begin) else ():
            values = np.cumsum(self.values[row])
            before = values[begin] - self.values[row][begin]
            self.values[row] = values - np.repeat(before, self.lengths[some])
        self.bounds = _BOUNDS.get(kind, {})
        self._none = None if len(begin) else kind.none()

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.first)

    def of(self, index: int) -> R:
        """The table of one summary."""
        if self._none is not None:
            return self._none
        return self._kind.stretch(self.values, *self._first[index : index + 2])

    def outside(self, name: str, least: int, above: int | IntArray) -> IntArray:
        """The summaries in which a column has values outside; `above` all is one number, or one of each."""
        column = self.values[self.names.index(name)]
        if isinstance(above, int):
            if column.min(initial=least) >= least and column.max(initial=least) < above:
                return self.first[:0]
        else:
            above = parts.spread(above, self.first)
        return self.having((column < least) | (column >= above))

    def having(self, rows: BoolArray) -> IntArray:
        """The summaries of these rows."""
        return np.searchsorted(self.first, np.flatnonzero(rows), side="right") - 1


def unpacked(several: Sequence[Opened]) -> list[RankSummary | DamagedTrace]:
    """The summaries, in order; an error in place of one whose numbers cannot be.

    Tables of ranks that follow each other lie side by side, as they are put together later.
    """
    if not several:
        return []
    order = sorted(range(len(several)), key=lambda place: _rank(several[place]))
    found = dict(zip(order, _unpacked([several[place] for place in order]), strict=True))
    return [found[place] for place in range(len(several))]


def _rank(one: Opened) -> float:
    return math.inf if one.wire.identity.rank is None else one.wire.identity.rank


def _unpacked(several: Sequence[Opened]) -> list[RankSummary | DamagedTrace]:
    wires, kinds = [one.wire for one in several], [kind for each in TABLES for kind in each]
    tables: dict[type[Rows], _Table[Any]] = {
        kind: _Table(kind, [one.tables[at] for one in several]) for at, kind in enumerate(kinds)
    }
    steps, instances = tables[StepParts], tables[Instances]
    steps.values[1] += steps.values[0]
    instances.values[START + 1] += instances.values[START]
    rounding_ns = np.array([wire.dropped.resolution_ns for wire in wires])
    sound = _sound(tables, np.array([len(wire.groups) for wire in wires]), rounding_ns)
    if rounding_ns.max() > 1:
        times = instances.values[START:]
        np.multiply(times, parts.spread(rounding_ns, instances.first), out=times, where=times != UNKNOWN)
    return [
        RankSummary(
            wire.identity,
            wire.fingerprint,
            steps.of(index),
            wire.groups,
            instances.of(index),
            tables[KernelTimes].of(index),
            wire.first_step,
            wire.dropped,
            tables[Messages].of(index),
            tables[Peers].of(index),
            tables[ExpertWork].of(index),
        )
        if good
        else _damage(one.where)
        for index, (one, wire, good) in enumerate(zip(several, wires, sound, strict=True))
    ]


def _sound(tables: Mapping[type[Rows], _Table[Any]], groups: IntArray, rounding_ns: IntArray) -> list[bool]:
    """Of each summary whether no number is too large, no end before its start, each code stands for
    something, and what is beside the collectives is of them.
    """
    steps, instances, messages = tables[StepParts], tables[Instances], tables[Messages]
    wrong = [
        table.outside(name, *bounds) for table in tables.values() for name, bounds in table.bounds.items()
    ]
    wrong += [
        instances.outside("group", 0, groups),
        instances.outside("step", UNKNOWN, steps.lengths),
        tables[ExpertWork].outside("step", 0, steps.lengths),
        np.flatnonzero((messages.lengths > 0) & (messages.lengths != instances.lengths)),
    ]
    for table, start, most in ((steps, 0, rounding_ns * 0 + _MOST), (instances, START, _MOST // rounding_ns)):
        values, least = table.values, int(most.min())
        if values.min(initial=0) < -least or values.max(initial=0) > least:
            limit = parts.spread(most, table.first)
            wrong += [table.having((column < -limit) | (column > limit)) for column in values]
        ends_early: BoolArray = values[start + 1] < values[start]
        wrong.append(table.having(ends_early))
    sound = np.ones(len(groups), dtype=np.bool_)
    sound[np.concatenate(wrong)] = False
    return sound.tolist()
