"""Summaries as bytes and back: at most 64 kB each, and what was left out for that is in them.

Bytes are a mark, a version and a compressed message. Whatever is read is checked: a summary may come from
anywhere. Tables of whole numbers are packed as differences, column by column, for zlib.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np

from traces.arrays import IntArray, Rows, distinct
from traces.errors import DamagedTrace, NotATrace
from traces.limits import Limit
from traces.names.kernels import COMM_KINDS
from traces.ranks.summary import (
    UNKNOWN,
    Dropped,
    ExpertWork,
    Fingerprint,
    FirstStep,
    Group,
    Identity,
    Instances,
    KernelTimes,
    Messages,
    Operation,
    Peers,
    RankSummary,
    StepParts,
)

MOST: Final = Limit(65_536, "bytes", "ours: 4,096 ranks are then at most 256 MB, and most are far smaller")
GOAL: Final = Limit(3_000, "bytes per step", "ours: a rank of ten steps is then 30 kB")
VERSION: Final = 5
SUFFIX: Final = ".rank"
"""How the name of a kept summary ends."""

_MARK: Final = b"moe-diag rank\x00"
_UNPACKED: Final = Limit(8_000_000, "bytes", "ours: over 60,000 collectives; more is no summary of ours")
_ROUNDINGS_NS: Final = (1, 16, 128, 1024)
"""To what times are rounded, finest first; a wait worth a word is many times the coarsest."""
_MOST_LAYERS: Final = 1 << 20
_TIMES: Final = 1 << 61
"""Above any time: sums of two stay within 64 bits."""

_NARROW: Final[Mapping[str, type[Rows]]] = {
    "steps": StepParts,
    "instances": Instances,
    "messages": Messages,
    "experts": ExpertWork,
}
_WIDE: Final[Mapping[str, type[Rows]]] = {"kernels": KernelTimes, "peers": Peers}
"""Tables with fingerprints, which fill 64 bits."""
_PLACE: Final = {name: place for place, name in enumerate(Instances.__match_args__)}
_START, _END = _PLACE["start_ns"], _PLACE["end_ns"]
_RISING: Final[Mapping[type[Rows], tuple[int, ...]]] = {
    StepParts: (0,),
    Instances: (_PLACE["sequence"], _PLACE["step"], _START),
}
"""Columns of which the differences are kept."""
_TYPES: Final = {1: "<i1", 2: "<i2", 4: "<i4", 8: "<i8"}
"""By how many bytes a number takes."""


class _Wire(msgspec.Struct, array_like=True):
    """`lengths` are those of the tables in `narrow`, and then of those in `wide`."""

    identity: Identity
    fingerprint: Fingerprint
    groups: tuple[Group, ...]
    first_step: FirstStep
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
    narrow, wide = (
        {
            name: np.stack(
                [getattr(getattr(summary, name), column) for column in kind.__match_args__]
            ).astype(np.int64)
            for name, kind in kinds.items()
        }
        for kinds in (_NARROW, _WIDE)
    )
    times = narrow["instances"][_START:]
    times[:] = np.where(times == UNKNOWN, UNKNOWN, times // rounding_ns)
    narrow["instances"][_END] -= narrow["instances"][_START]
    narrow["steps"][1] -= narrow["steps"][0]
    wire = _Wire(
        summary.identity,
        summary.fingerprint,
        summary.groups,
        summary.first_step,
        replace(summary.dropped, resolution_ns=rounding_ns),
        tuple(table.shape[1] for table in (*narrow.values(), *wide.values())),
        _packed(narrow, _NARROW),
        _packed(wide, _WIDE),
    )
    return _MARK + bytes([VERSION]) + zlib.compress(_ENCODER.encode(wire), 9)


def _packed(tables: Mapping[str, IntArray], kinds: Mapping[str, type[Rows]]) -> bytes:
    """Tables of shape (columns, n each), all numbers of one width."""
    for name, kind in kinds.items():
        for row in _RISING.get(kind, ()):
            tables[name][row, 1:] = np.diff(tables[name][row])
    flat = np.concatenate([table.ravel() for table in tables.values()])
    bits = max(int(flat.max(initial=0)), ~int(flat.min(initial=0))).bit_length() + 1
    width = next(one for one in _TYPES if bits <= 8 * one)
    return bytes([width]) + flat.astype(_TYPES[width]).tobytes()


def _unpacked(blob: bytes, lengths: Sequence[int], kinds: Mapping[str, type[Rows]]) -> dict[str, IntArray]:
    columns = [len(kind.__match_args__) for kind in kinds.values()]
    sizes = [few * length for few, length in zip(columns, lengths, strict=True)]
    if min(lengths) < 0 or not blob or blob[0] not in _TYPES or len(blob) != 1 + sum(sizes) * blob[0]:
        raise ValueError("not whole")
    numbers = np.frombuffer(blob, dtype=_TYPES[blob[0]], offset=1).astype(np.int64)
    begin, tables = 0, {}
    for name, few, length, size in zip(kinds, columns, lengths, sizes, strict=True):
        tables[name] = numbers[begin : begin + size].reshape(few, length)
        begin += size
    for name, kind in kinds.items():
        for row in _RISING.get(kind, ()):
            np.add.accumulate(tables[name][row], out=tables[name][row])
    return tables


def _summary_of(wire: _Wire) -> RankSummary:
    rounding_ns = wire.dropped.resolution_ns
    if not 0 < rounding_ns < 1 << 30:
        raise ValueError("no resolution")
    tables = _unpacked(wire.narrow, wire.lengths[: len(_NARROW)], _NARROW)
    tables |= _unpacked(wire.wide, wire.lengths[len(_NARROW) :], _WIDE)
    steps, instances = tables["steps"], tables["instances"]
    steps[1] += steps[0]
    instances[_END] += instances[_START]
    _check(steps, 0, 1, ())
    codes = (
        ("group", 0, len(wire.groups)),
        ("operation", 0, len(Operation)),
        ("kind", UNKNOWN, len(COMM_KINDS)),
        ("step", UNKNOWN, steps.shape[1]),
    )
    _check(instances, _START, rounding_ns, codes)
    if rounding_ns > 1:
        times = instances[_START:]
        np.multiply(times, rounding_ns, out=times, where=times != UNKNOWN)
    summary = RankSummary(
        wire.identity,
        wire.fingerprint,
        StepParts(*steps),
        wire.groups,
        Instances(*instances),
        KernelTimes(*tables["kernels"]),
        wire.first_step,
        wire.dropped,
        Messages(*tables["messages"]),
        Peers(*tables["peers"]),
        ExpertWork(*tables["experts"]),
    )
    _check_amounts(summary)
    return summary


def _check(table: IntArray, start: int, rounding_ns: int, codes: Sequence[tuple[str, int, int]]) -> None:
    """No number is too large, row `start`, of starts, is nowhere above the next one, of ends, and each code,
    (column, least, number of what it may stand for), stands for something.
    """
    if not table.size:
        return
    least, most = table.min(axis=1).tolist(), table.max(axis=1).tolist()
    if not -_TIMES <= min(least) * rounding_ns <= max(most) * rounding_ns <= _TIMES:
        raise ValueError("no time is so large")
    if (table[start + 1] < table[start]).any():
        raise ValueError("an end before its start")
    if any(least[_PLACE[name]] < low or most[_PLACE[name]] >= count for name, low, count in codes):
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
        *((getattr(messages, name), UNKNOWN, _TIMES) for name in Messages.__match_args__),
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
        messages=summary.messages.take(places) if len(summary.messages) else summary.messages,
        experts=summary.experts.take(np.flatnonzero(np.isin(summary.experts.step, left.step))),
        dropped=dropped,
    )
