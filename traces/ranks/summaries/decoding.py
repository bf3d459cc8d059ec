"""A summary from its bytes. Whatever is read is checked: it may come from anywhere."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np

from traces.arrays import IntArray, Rows, ints
from traces.errors import DamagedTrace, NotATrace
from traces.limits import MOST_RANKS, Limit
from traces.names.file_names import told_name
from traces.names.kernels import COMM_KINDS
from traces.patterns import compiled
from traces.ranks.summaries.codec import (
    MARK,
    NARROW,
    RISING,
    START,
    TYPES,
    VERSION,
    WIDE,
    Wire,
    is_summary,
)
from traces.ranks.summaries.summary import (
    UNKNOWN,
    ExpertWork,
    Identity,
    Instances,
    Messages,
    Operation,
    Peers,
    RankSummary,
    StepParts,
)
from traces.sections.section import copied

_UNPACKED: Final = Limit(
    8_000_000, "bytes", "ours: over 60,000 collectives; more is no summary of ours"
)
_CELLS: Final = _UNPACKED.whole // 8
"""Numbers of that many bytes, as which they are held however short they were packed."""
_MOST_LAYERS: Final = 1 << 20
_MOST: Final = 1 << 61
"""Above any time: sums of two stay within 64 bits."""
Bounds = Mapping[type[Rows], Mapping[str, tuple[int, int]]]
_BOUNDS: Final[Bounds] = {
    Instances: {"operation": (0, len(Operation)), "kind": (UNKNOWN, len(COMM_KINDS))},
    Messages: dict.fromkeys(Messages.__match_args__, (UNKNOWN, _MOST)),
    Peers: {
        "kind": (UNKNOWN, len(COMM_KINDS)),
        "sent_bytes": (0, _MOST),
        "received_bytes": (0, _MOST),
    },
    ExpertWork: {"layer": (0, _MOST_LAYERS), "work_ns": (0, _MOST)},
}
"""The least value of a column, and what is above all: codes that stand for something, amounts that
can be."""
_DECODER: Final = msgspec.msgpack.Decoder(Wire)
_WORD: Final = compiled(r"[A-Za-z0-9_.+-]{0,60}")
"""A recorder and its version."""


def decode(blob: bytes, where: str) -> RankSummary:
    """The summary in these bytes.

    Raises `NotATrace` where it is none, or of a version that is unknown here, `DamagedTrace` where
    it is broken.
    """
    if not is_summary(blob):
        raise NotATrace(
            f"{where} is no summary of a rank. Make one: moe-diag analyze TRACE --summary FOLDER"
        )
    body = len(MARK) + 1
    version = blob[len(MARK)] if len(blob) >= body else None
    if version != VERSION:
        raise NotATrace(
            f"{where} is a summary of version {version}; this moe-diag reads version {VERSION}"
        )
    try:
        unpacker = zlib.decompressobj()
        message = unpacker.decompress(blob[body:], _UNPACKED.whole)
        if not unpacker.eof or unpacker.unused_data:
            raise ValueError("not whole")
        return _summary(_DECODER.decode(message))
    except (zlib.error, msgspec.MsgspecError, ValueError, OverflowError):
        raise DamagedTrace(
            f"{where} is a damaged summary. Make it again with analyze --summary"
        ) from None


def _summary(wire: Wire) -> RankSummary:
    """Raises ValueError for a number that cannot be."""
    identity, rounding_ns = _as_told(wire.identity), wire.dropped.resolution_ns
    numbers = [identity.rank, identity.world_size]
    for group in wire.groups:
        numbers += group.size, group.own
    for number in numbers:
        if number is not None and not 0 <= number <= MOST_RANKS.value:
            raise ValueError("no rank")  # as many are counted where they are missing
    if not 0 < rounding_ns < 1 << 30:
        raise ValueError("no resolution")
    tables = dict(_tables(wire))
    steps, instances = tables[StepParts], tables[Instances]
    for table, start, most in ((steps, 0, _MOST), (instances, START, _MOST // rounding_ns)):
        table[start + 1] += table[start]
        late = table[start + 1] < table[start]
        if table.min(initial=0) < -most or table.max(initial=0) > most or late.any():
            raise ValueError("no time")
    of_this: Bounds = {
        Instances: {"group": (0, len(wire.groups)), "step": (UNKNOWN, steps.shape[1])},
        ExpertWork: {"step": (0, steps.shape[1])},
    }
    for kind, columns in (*_BOUNDS.items(), *of_this.items()):
        for name, (least, above) in columns.items():
            column = tables[kind][kind.__match_args__.index(name)]
            if ((column < least) | (column >= above)).any():
                raise ValueError(f"no {name}")
    if tables[Messages].shape[1] not in (0, instances.shape[1]):
        raise ValueError("messages of other collectives")
    times = instances[START:]
    np.multiply(times, rounding_ns, out=times, where=times != UNKNOWN)
    rows = {name: kind(*tables[kind]) for name, kind in {**NARROW, **WIDE}.items()}
    return copied(RankSummary, wire, **rows, identity=identity)


def _as_told(identity: Identity) -> Identity:
    """Who recorded it, by words that its reader may tell. Raises ValueError for a recorder that is
    none.
    """
    if not (_WORD.fullmatch(identity.kind) and _WORD.fullmatch(identity.version or "")):
        raise ValueError("no recorder")
    source = None
    if identity.world_size_from is not None:
        file, mark, line = identity.world_size_from.rpartition(":")
        source = told_name(line)
        if mark and line.isdecimal():
            source = f"{told_name(file)}:{line}"
    return replace(identity, trace=told_name(identity.trace), world_size_from=source)


def _tables(wire: Wire) -> Iterator[tuple[type[Rows], IntArray]]:
    """Each table, of shape (columns, rows). Raises ValueError where that is not what is there."""
    lengths = iter(wire.lengths)
    for block, kinds in ((wire.narrow, NARROW.values()), (wire.wide, WIDE.values())):
        shapes, cells = [], 0
        for kind in kinds:
            count, rows = len(kind.__match_args__), next(lengths)
            if rows < 0:
                raise ValueError("not whole")
            shapes.append((count, rows))
            cells += count * rows
        width = block[0] if block else 0
        if cells > _CELLS or width not in TYPES or len(block) != 1 + cells * width:
            raise ValueError("not whole")
        numbers = ints(np.frombuffer(block[1:], dtype=TYPES[width]))
        for kind, (count, rows) in zip(kinds, shapes, strict=True):
            table, numbers = numbers[: count * rows].reshape(count, rows), numbers[count * rows :]
            for row in RISING.get(kind, ()):
                np.cumsum(table[row], out=table[row])
            yield kind, table
