"""Summaries as bytes and back: at most 64 kB each, and what was left out for that is in them.

Bytes are a mark, a version and a compressed message. Whatever is read is checked: a summary may come from
anywhere. Tables of whole numbers are packed as differences, then bytes of one weight together, for zlib.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import msgspec
import numpy as np

from traces.columns import IntArray, distinct
from traces.errors import DamagedTrace, NotATrace
from traces.limits import Limit
from traces.names.kernels import COMM_KINDS
from traces.ranks.summary import (
    UNKNOWN,
    Dropped,
    ExpertWork,
    Fingerprint,
    Group,
    Identity,
    Instances,
    KernelTimes,
    Messages,
    Operation,
    Peers,
    RankSummary,
    StepParts,
    Table,
)

_WIDEST: Final = 8
_ONE: Final = np.uint64(1)


@dataclass(frozen=True, slots=True)
class Shape:
    """How many rows a table has; of those in `rising` the differences are kept."""

    rows: int
    rising: tuple[int, ...] = ()


def packed(tables: Sequence[IntArray], shapes: Sequence[Shape]) -> bytes:
    """Tables of shape (rows, n each), all numbers of one width."""
    flat = np.concatenate(
        [_falling(table, shape).ravel() for table, shape in zip(tables, shapes, strict=True)]
    )
    folded = (flat << 1 ^ flat >> 63).astype(np.uint64)  # small where near zero, whatever the sign
    most = int(folded.max(initial=0))
    width = max(1, (most.bit_length() + 7) // 8)
    planes = folded.view(np.uint8).reshape(-1, _WIDEST)[:, :width].T
    return bytes([width]) + np.ascontiguousarray(planes).tobytes()


def unpacked(blob: bytes, lengths: Sequence[int], shapes: Sequence[Shape]) -> list[IntArray]:
    """The tables again, shape (rows, length) each. Raises ValueError where the bytes are no such tables."""
    count = sum(shape.rows * length for shape, length in zip(shapes, lengths, strict=True))
    if min(lengths) < 0 or not blob or not 1 <= blob[0] <= _WIDEST or len(blob) != 1 + count * blob[0]:
        raise ValueError("not whole")
    planes = np.frombuffer(blob, dtype=np.uint8, offset=1).reshape(blob[0], count)
    folded = np.zeros(count, dtype=np.uint64)
    weights = folded.view(np.uint8).reshape(count, _WIDEST).T
    for weight, plane in enumerate(planes):
        weights[weight] = plane
    sign = folded & _ONE
    folded >>= _ONE
    folded ^= np.negative(sign, out=sign)
    flat: IntArray = folded.view(np.int64)
    tables, at = [], 0
    for shape, length in zip(shapes, lengths, strict=True):
        table = flat[at : at + shape.rows * length].reshape(shape.rows, length)
        for row in shape.rising:
            np.add.accumulate(table[row], out=table[row])
        tables.append(table)
        at += table.size
    return tables


def _falling(table: IntArray, shape: Shape) -> IntArray:
    table = table.astype(np.int64)
    for row in shape.rising:
        table[row, 1:] = np.diff(table[row])
    return table


MOST: Final = Limit(65_536, "bytes", "ours: 4,096 ranks are then at most 256 MB, and most are far smaller")
GOAL: Final = Limit(3_000, "bytes per step", "ours: a rank of ten steps is then 30 kB")
VERSION: Final = 3
SUFFIX: Final = ".rank"
"""How the name of a kept summary ends."""

_MARK: Final = b"moe-diag rank\x00"
_UNPACKED: Final = Limit(8_000_000, "bytes", "ours: over 60,000 collectives; more is no summary of ours")
_ROUNDINGS_NS: Final = (1, 16, 128, 1024)
"""To what times are rounded, finest first; a wait worth a word is many times the coarsest."""
_MOST_LAYERS: Final = 1 << 20
_TIMES: Final = 1 << 61
"""Above any time: sums of two stay within 64 bits."""

_NARROW: Final = (StepParts, Instances, Messages, ExpertWork)
_WIDE: Final = (KernelTimes, Peers)
"""Tables with fingerprints, which fill 64 bits."""
_COLUMNS: Final = {kind: tuple(field.name for field in fields(kind)) for kind in (*_NARROW, *_WIDE)}
_FIELDS: Final = _COLUMNS[Instances]
_RISING: Final[Mapping[type[Table], tuple[int, ...]]] = {
    StepParts: (0,),
    Instances: tuple(_FIELDS.index(name) for name in ("sequence", "step", "start_ns")),
}
_SHAPES: Final = {kind: Shape(len(names), _RISING.get(kind, ())) for kind, names in _COLUMNS.items()}
_SHAPES_NARROW: Final = tuple(_SHAPES[kind] for kind in _NARROW)
_SHAPES_WIDE: Final = tuple(_SHAPES[kind] for kind in _WIDE)
_START, _END = _FIELDS.index("start_ns"), _FIELDS.index("end_ns")
_FIRST_TIME: Final = _START
_GROUP, _OPERATION, _KIND, _STEP = map(_FIELDS.index, ("group", "operation", "kind", "step"))


class _Wire(msgspec.Struct, array_like=True):
    """`lengths` are those of the tables in `narrow`, and then of those in `wide`."""

    identity: Identity
    fingerprint: Fingerprint
    groups: tuple[Group, ...]
    dropped: Dropped
    lengths: tuple[int, int, int, int, int, int]
    narrow: bytes
    wide: bytes


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Wire)


def is_summary(head: bytes) -> bool:
    """Whether a file that begins so is a summary of a rank."""
    return head.startswith(_MARK)


def encode(summary: RankSummary) -> bytes:
    """The summary as bytes, rounded, then without the middle of its steps, as far as its size asks for."""
    goal = min(MOST.value, GOAL.value * max(1, len(summary.steps)))
    blob = b""
    for rounding_ns in _ROUNDINGS_NS:
        blob = _bytes_of(summary, rounding_ns)
        if len(blob) <= goal:
            return blob
    while len(blob) > MOST.value:
        summary = _without_middle(summary)
        blob = _bytes_of(summary, _ROUNDINGS_NS[-1])
    return blob


def decode(blob: bytes, where: str) -> RankSummary:
    """A summary from its bytes; `where` names the file in errors.

    Raises `NotATrace` where it is none, or of a version that is unknown here, `DamagedTrace` where it is
    broken.
    """
    if not is_summary(blob):
        raise NotATrace(f"{where} is no summary of a rank. Make one: moe-diag analyze TRACE --summary FOLDER")
    body = len(_MARK) + 1
    version = blob[len(_MARK)] if len(blob) >= body else None
    if version != VERSION:
        raise NotATrace(f"{where} is a summary of version {version}; this moe-diag reads version {VERSION}")
    try:
        unpacker = zlib.decompressobj()
        message = unpacker.decompress(blob[body:], int(_UNPACKED.value))
        if not unpacker.eof or unpacker.unused_data:
            raise ValueError("not whole")
        return _summary_of(_DECODER.decode(message))
    except (zlib.error, msgspec.MsgspecError, ValueError, OverflowError):
        raise DamagedTrace(f"{where} is a damaged summary. Make it again with analyze --summary") from None


def _bytes_of(summary: RankSummary, rounding_ns: int) -> bytes:
    rounding_ns = max(rounding_ns, summary.dropped.resolution_ns)
    of_instances = _columns(summary.instances)
    times = of_instances[_FIRST_TIME:]
    times[:] = np.where(times == UNKNOWN, UNKNOWN, times // rounding_ns)
    of_instances[_END] -= of_instances[_START]
    of_steps = _columns(summary.steps)
    of_steps[1] -= of_steps[0]
    narrow = [of_steps, of_instances, _columns(summary.messages), _columns(summary.experts)]
    wide = [_columns(summary.kernels), _columns(summary.peers)]
    wire = _Wire(
        summary.identity,
        summary.fingerprint,
        summary.groups,
        replace(summary.dropped, resolution_ns=rounding_ns),
        tuple(table.shape[1] for table in (*narrow, *wide)),
        packed(narrow, _SHAPES_NARROW),
        packed(wide, _SHAPES_WIDE),
    )
    return _MARK + bytes([VERSION]) + zlib.compress(_ENCODER.encode(wire), 9)


def _columns(rows: Table) -> IntArray:
    return np.stack([getattr(rows, name) for name in _COLUMNS[type(rows)]]).astype(np.int64)


def _summary_of(wire: _Wire) -> RankSummary:
    rounding_ns = wire.dropped.resolution_ns
    if not 0 < rounding_ns < 1 << 30:
        raise ValueError("no resolution")
    narrow = len(_NARROW)
    of_steps, of_instances, messages, experts = unpacked(wire.narrow, wire.lengths[:narrow], _SHAPES_NARROW)
    kernels, peers = unpacked(wire.wide, wire.lengths[narrow:], _SHAPES_WIDE)
    of_steps[1] += of_steps[0]
    of_instances[_END] += of_instances[_START]
    _check(of_steps, 0, 1, ())
    codes = (
        (_GROUP, 0, len(wire.groups)),
        (_OPERATION, 0, len(Operation)),
        (_KIND, UNKNOWN, len(COMM_KINDS)),
        (_STEP, UNKNOWN, of_steps.shape[1]),
    )
    _check(of_instances, _START, rounding_ns, codes)
    if rounding_ns > 1:
        times = of_instances[_FIRST_TIME:]
        np.multiply(times, rounding_ns, out=times, where=times != UNKNOWN)
    summary = RankSummary(
        wire.identity,
        wire.fingerprint,
        StepParts(*of_steps),
        wire.groups,
        Instances(*of_instances),
        KernelTimes(*kernels),
        wire.dropped,
        Messages(*messages),
        Peers(*peers),
        ExpertWork(*experts),
    )
    _check_amounts(summary)
    return summary


def _check(table: IntArray, start: int, rounding_ns: int, codes: Sequence[tuple[int, int, int]]) -> None:
    """No number is too large, row `start`, of starts, is nowhere above the next one, of ends, and each code,
    (row, least, number of what it may stand for), stands for something.
    """
    if not table.size:
        return
    least, most = table.min(axis=1).tolist(), table.max(axis=1).tolist()
    if not -_TIMES <= min(least) * rounding_ns <= max(most) * rounding_ns <= _TIMES:
        raise ValueError("no time is so large")
    if (table[start + 1] < table[start]).any():
        raise ValueError("an end before its start")
    if any(least[row] < low or most[row] >= count for row, low, count in codes):
        raise ValueError("a code that stands for nothing")


def _check_amounts(summary: RankSummary) -> None:
    """What is beside the collectives is of them, and no amount is too large."""
    messages, peers, experts = summary.messages, summary.peers, summary.experts
    if len(messages) not in (0, len(summary.instances)):
        raise ValueError("messages of other collectives")
    if not (len(messages) or len(peers) or len(experts)):
        return
    limits = (
        (peers.kind, UNKNOWN, len(COMM_KINDS)),
        (experts.step, 0, len(summary.steps)),
        (experts.layer, 0, _MOST_LAYERS),
        (experts.work_ns, 0, _TIMES),
        *((amounts, 0, _TIMES) for amounts in (peers.sent_bytes, peers.received_bytes)),
        *((getattr(messages, name), UNKNOWN, _TIMES) for name in _COLUMNS[Messages]),
    )
    if any(len(some) and not (least <= some.min() and some.max() < most) for some, least, most in limits):
        raise ValueError("an amount that cannot be")


def _without_middle(summary: RankSummary) -> RankSummary:
    """Half of the collectives: those nearest to both ends stay, whole steps where there are steps."""
    rows = summary.instances
    keep = len(rows) // 4
    places = np.concatenate((np.arange(keep), np.arange(len(rows) - keep, len(rows))))
    if len(distinct_steps := distinct(rows.step[places])) > 2:  # whole steps, unless one alone is too much
        cut = {int(rows.step[keep - 1]), int(rows.step[len(rows) - keep])}
        whole = ~np.isin(rows.step[places], sorted(cut))
        places = places[whole] if whole.any() and len(distinct_steps) > len(cut) else places
    left = rows.take(places)
    gone = len(np.setdiff1d(rows.step, left.step))
    dropped = replace(
        summary.dropped,
        instances=summary.dropped.instances + len(rows) - len(left),
        steps=summary.dropped.steps + gone,
    )
    return replace(
        summary,
        instances=left,
        messages=summary.messages.take(places),
        experts=summary.experts.take(np.flatnonzero(np.isin(summary.experts.step, left.step))),
        dropped=dropped,
    )
