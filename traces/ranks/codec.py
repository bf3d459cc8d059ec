"""Summaries as bytes and back: at most 64 kB each, and what was left out for that is in them.

Bytes are a mark, a version and a compressed message. Whatever is read is checked: a summary may come from
anywhere.
"""

from __future__ import annotations

import zlib
from dataclasses import fields, replace
from typing import Final

import msgspec
import numpy as np

from traces.columns import IntArray, distinct
from traces.errors import DamagedTrace, NotATrace
from traces.limits import Limit
from traces.names.kinds import COMM_KINDS
from traces.ranks.packed import packed, unpacked
from traces.ranks.summary import (
    UNKNOWN,
    Dropped,
    Fingerprint,
    Group,
    Identity,
    Instances,
    KernelTimes,
    Operation,
    RankSummary,
    StepParts,
)

MOST: Final = Limit(65_536, "bytes", "ours: 4,096 ranks are then at most 256 MB, and most are far smaller")
GOAL: Final = Limit(3_000, "bytes per step", "ours: a rank of ten steps is then 30 kB")
VERSION: Final = 1
SUFFIX: Final = ".rank"
"""How the name of a kept summary ends."""

_MARK: Final = b"moe-diag rank\x00"
_UNPACKED: Final = Limit(8_000_000, "bytes", "ours: over 60,000 collectives; more is no summary of ours")
_ROUNDINGS_NS: Final = (1, 16, 128, 1024)
"""To what times are rounded, finest first; a wait worth a word is many times the coarsest."""
_TIMES: Final = 1 << 61
"""Above any time: sums of two stay within 64 bits."""

_STEP_FIELDS: Final = tuple(field.name for field in fields(StepParts))
_FIELDS: Final = tuple(field.name for field in fields(Instances))
_KERNEL_FIELDS: Final = tuple(field.name for field in fields(KernelTimes))
_RISING: Final = (_FIELDS.index("sequence"), _FIELDS.index("step"), _FIELDS.index("start_ns"))
_START, _END = _FIELDS.index("start_ns"), _FIELDS.index("end_ns")
_FIRST_TIME: Final = _START


class _Wire(msgspec.Struct, array_like=True):
    identity: Identity
    fingerprint: Fingerprint
    groups: tuple[Group, ...]
    steps: bytes
    instances: bytes
    kernels: bytes
    dropped: Dropped


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
    wire = _Wire(
        summary.identity,
        summary.fingerprint,
        summary.groups,
        packed(of_steps, (0,)),
        packed(of_instances, _RISING),
        packed(_columns(summary.kernels), ()),
        replace(summary.dropped, resolution_ns=rounding_ns),
    )
    return _MARK + bytes([VERSION]) + zlib.compress(_ENCODER.encode(wire), 9)


def _columns(rows: StepParts | Instances | KernelTimes) -> IntArray:
    return np.stack([getattr(rows, field.name) for field in fields(rows)]).astype(np.int64)


def _summary_of(wire: _Wire) -> RankSummary:
    of_steps = unpacked(wire.steps, len(_STEP_FIELDS), (0,))
    of_steps[1] += of_steps[0]
    of_instances = unpacked(wire.instances, len(_FIELDS), _RISING)
    rounding_ns = wire.dropped.resolution_ns
    if not 0 < rounding_ns < 1 << 30:
        raise ValueError("no resolution")
    of_instances[_END] += of_instances[_START]
    if rounding_ns > 1:
        _check_within(of_instances, -_TIMES // rounding_ns, _TIMES // rounding_ns)
        times = of_instances[_FIRST_TIME:]
        times[:] = np.where(times == UNKNOWN, UNKNOWN, times * rounding_ns)
    summary = RankSummary(
        wire.identity,
        wire.fingerprint,
        StepParts(*of_steps),
        wire.groups,
        Instances(*of_instances),
        KernelTimes(*unpacked(wire.kernels, len(_KERNEL_FIELDS), ())),
        wire.dropped,
    )
    for table in (of_steps, of_instances):
        _check_within(table, -_TIMES, _TIMES)
    _check_instances(summary)
    return summary


def _check_within(table: IntArray, least: int, most: int) -> None:
    if table.size and (int(table.min()) < least or int(table.max()) > most):
        raise ValueError("no time is so large")


def _check_instances(summary: RankSummary) -> None:
    """Codes that index something, and times in order."""
    rows, steps = summary.instances, summary.steps
    limits = (
        (rows.group, 0, len(summary.groups)),
        (rows.operation, 0, len(Operation)),
        (rows.kind, UNKNOWN, len(COMM_KINDS)),
        (rows.step, UNKNOWN, len(steps)),
    )
    if any(len(codes) and not (least <= codes.min() and codes.max() < most) for codes, least, most in limits):
        raise ValueError("a code that stands for nothing")
    if (rows.end_ns < rows.start_ns).any() or (steps.end_ns < steps.start_ns).any():
        raise ValueError("an end before its start")


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
    return replace(summary, instances=left, dropped=dropped)
