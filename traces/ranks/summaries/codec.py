"""Summaries as bytes: at most 64 kB each, and what was left out for that is in them.

Bytes are a mark, a version and a compressed message. Tables of whole numbers are packed as
differences, column by column, for zlib. How they are read: `decoding.py`.
"""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np

from traces.arrays import IntArray, Rows, codes_of, distinct, ints
from traces.limits import Limit
from traces.ranks.summaries.first_steps import without_steps
from traces.ranks.summaries.summary import (
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
    Peers,
    RankSummary,
    StepParts,
)

MOST: Final = Limit(
    65_536, "bytes", "ours: 4,096 ranks are then at most 256 MB, and most are far smaller"
)
GOAL: Final = Limit(3_000, "bytes per step", "ours: a rank of ten steps is then 30 kB")
VERSION: Final = 6
SUFFIX: Final = ".rank"
"""How the name of a kept summary ends."""

MARK: Final = b"moe-diag rank\x00"
_STEPS: Final = 1_024
"""Steps of which a summary tells: they take some 25 kB."""
_ROUNDINGS_NS: Final = (1, 16, 128, 1024)
"""To what times are rounded, finest first; a wait worth a word is many times the coarsest."""

NARROW: Final[Mapping[str, type[Rows]]] = {
    "steps": StepParts,
    "instances": Instances,
    "messages": Messages,
    "experts": ExpertWork,
}
WIDE: Final[Mapping[str, type[Rows]]] = {"kernels": KernelTimes, "peers": Peers}
"""Tables with fingerprints, which fill 64 bits."""
_PLACE: Final = codes_of(Instances.__match_args__)
START: Final = _PLACE["start_ns"]
"""The first of the columns of times; that of ends is the next."""
RISING: Final[Mapping[type[Rows], tuple[int, ...]]] = {
    StepParts: (0,),
    Instances: (_PLACE["sequence"], _PLACE["step"], START),
}
"""Columns of which the differences are kept."""
TYPES: Final = {1: "<i1", 2: "<i2", 4: "<i4", 8: "<i8"}
"""By how many bytes a number takes."""


class Wire(msgspec.Struct, array_like=True):
    """What is compressed. `lengths` are those of the tables in `narrow`, and then of those in
    `wide`.
    """

    identity: Identity
    fingerprint: Fingerprint
    groups: tuple[Group, ...]
    first_step: FirstStep
    dropped: Dropped
    lengths: tuple[int, int, int, int, int, int]
    narrow: bytes
    wide: bytes


_ENCODER: Final = msgspec.msgpack.Encoder()


def is_summary(head: bytes) -> bool:
    """Whether a file that begins so is a summary of a rank."""
    return head.startswith(MARK)


def encode(summary: RankSummary) -> bytes:
    """The summary as bytes, of its last steps, rounded, then without the middle of these, as far as
    its size asks for.
    """
    before = max(0, len(summary.steps) - _STEPS)  # as many would fill it alone
    if before:
        dropped = replace(summary.dropped, steps=summary.dropped.steps + before)
        experts = summary.experts.take(summary.experts.step >= before)
        summary = without_steps(replace(summary, dropped=dropped, experts=experts), before)
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


def _bytes_of(summary: RankSummary, rounding_ns: int) -> bytes:
    rounding_ns = max(rounding_ns, summary.dropped.resolution_ns)
    narrow, wide = _stacked(summary, NARROW), _stacked(summary, WIDE)
    times = narrow["instances"][START:]
    times[:] = np.where(times == UNKNOWN, UNKNOWN, times // rounding_ns)
    narrow["instances"][START + 1] -= narrow["instances"][START]
    narrow["steps"][1] -= narrow["steps"][0]
    wire = Wire(
        summary.identity,
        summary.fingerprint,
        summary.groups,
        summary.first_step,
        replace(summary.dropped, resolution_ns=rounding_ns),
        tuple(table.shape[1] for table in (*narrow.values(), *wide.values())),
        _packed(narrow, NARROW),
        _packed(wide, WIDE),
    )
    return MARK + bytes([VERSION]) + zlib.compress(_ENCODER.encode(wire), 9)


def _stacked(summary: RankSummary, kinds: Mapping[str, type[Rows]]) -> dict[str, IntArray]:
    """Tables by name, of shape (columns, n each)."""
    tables = {}
    for name, kind in kinds.items():
        rows = getattr(summary, name)
        columns = [getattr(rows, column) for column in kind.__match_args__]
        tables[name] = ints(np.stack(columns))
    return tables


def _packed(tables: Mapping[str, IntArray], kinds: Mapping[str, type[Rows]]) -> bytes:
    """All numbers of one width."""
    for name, kind in kinds.items():
        for row in RISING.get(kind, ()):
            tables[name][row, 1:] = np.diff(tables[name][row])
    flat = np.concatenate([table.ravel() for table in tables.values()])
    bits = max(int(flat.max(initial=0)), ~int(flat.min(initial=0))).bit_length() + 1
    width = next(size for size in TYPES if bits <= 8 * size)
    return bytes([width]) + flat.astype(TYPES[width]).tobytes()


def _without_middle(summary: RankSummary) -> RankSummary:
    """Half of the collectives: those nearest to both ends stay, whole steps where there are
    steps.
    """
    rows = summary.instances
    keep = len(rows) // 4
    places = np.concatenate((np.arange(keep), np.arange(len(rows) - keep, len(rows))))
    # whole steps, unless one alone is too much
    if len(distinct(rows.step[places])) > 2:
        places = places[~np.isin(rows.step[places], rows.step[[keep - 1, len(rows) - keep]])]
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
