"""One step as it ran: every activity by stream, and why no compute ran, for those who want to see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.account.absent import REASONS, AbsentPieces
from traces.columns import IntArray, distinct
from traces.intervals import spans
from traces.limits import Limit
from traces.measure.kernel_table import PREFIX, shortened
from traces.measure.ledger_steps import Borders, cut_at
from traces.missing import Missing
from traces.steps.found import Steps
from traces.timeline import KEYS, Bucket, RankTimeline

MOST: Final = Limit(
    12_000, "activities", "ours: a report of one file under 2 MB, and more than one screen can show apart"
)


@dataclass(frozen=True, slots=True)
class Lane:
    """What ran on one stream, in order; all tuples of one length.

    `at_ns` is the start, from the beginning of the timeline. `key` and `name` index those of the timeline;
    `name` is -1 for copies and for kernels without one.
    """

    stream: int
    at_ns: tuple[int, ...]
    length_ns: tuple[int, ...]
    key: tuple[int, ...]
    name: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReasonLane:
    """Stretches without compute, in order; `at_ns` as in `Lane`, `reason` indexes `reasons`."""

    at_ns: tuple[int, ...]
    length_ns: tuple[int, ...]
    reason: tuple[int, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepTimeline:
    """The step whose length is nearest to the median; where there are no steps, the window.

    `step` is its index as recorded, None for a window. `end_ns` is earlier than that of the step where it
    has more activities than can be shown: then `left_out` counts those that begin later. `reasons` is None
    where time without compute is not explained.
    """

    step: int | None
    start_ns: int
    end_ns: int
    keys: tuple[str, ...]
    names: tuple[str, ...]
    lanes: tuple[Lane, ...]
    reasons: ReasonLane | None
    left_out: int


def measure_timeline(rank: RankTimeline, steps: Steps, absent: AbsentPieces | Missing) -> StepTimeline:
    """The timeline of one rank."""
    index, start_ns, end_ns = _chosen(steps)
    rows = rank.activities
    mine = np.flatnonzero((rows.start_ns < end_ns) & (rows.end_ns > start_ns))
    left_out = max(0, len(mine) - int(MOST.value))
    if left_out:
        end_ns = int(rows.start_ns[mine[int(MOST.value)]])
        mine = mine[: int(MOST.value)]
    cut = cut_at(rows.start_ns[mine], rows.end_ns[mine], _border(start_ns, end_ns))
    mine = mine[cut.of]
    keys, key = _indexed(rows.key[mine] + _KEY_BASE[rows.bucket[mine]])
    names, name = _named(rows.name[mine], rank.columns.kernel_names)
    lanes = []
    for stream in distinct(rows.stream_id[mine]).tolist():
        on = rows.stream_id[mine] == stream
        columns = (cut.start_ns[on] - start_ns, (cut.end_ns - cut.start_ns)[on], key[on], name[on])
        lanes.append(Lane(stream, *(tuple(column.tolist()) for column in columns)))
    return StepTimeline(
        step=index,
        start_ns=start_ns,
        end_ns=end_ns,
        keys=tuple(_KEY_NAMES[code] for code in keys),
        names=names,
        lanes=tuple(lanes),
        reasons=None if isinstance(absent, Missing) else _reasons(absent, start_ns, end_ns),
        left_out=left_out,
    )


_KEY_NAMES: Final = tuple(f"{PREFIX[bucket]}.{key}" for bucket in Bucket for key in KEYS[bucket])
_KEY_BASE: Final = np.cumsum([0, *(len(KEYS[bucket]) for bucket in Bucket)])


def _chosen(steps: Steps) -> tuple[int | None, int, int]:
    median_ns = steps.median_ns
    if median_ns is None:
        pairs = steps.windows.pairs()
        return None, pairs[0][0], pairs[-1][1]
    step = min(steps.used, key=lambda one: (abs(one.length_ns - median_ns), one.index))
    return step.index, step.start_ns, step.end_ns


def _border(start_ns: int, end_ns: int) -> Borders:
    one = spans((start_ns, end_ns))
    return Borders(one.start_ns, one.end_ns)


def _indexed(codes: IntArray) -> tuple[list[int], IntArray]:
    """The distinct codes, and the place of each among them; codes below 0 stay -1."""
    known = distinct(codes[codes >= 0])
    return known.tolist(), np.where(codes >= 0, np.searchsorted(known, codes), -1)


def _named(codes: IntArray, texts: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Names in the order of the alphabet, not of the export, and the place of each code among them."""
    known, place = _indexed(codes)
    order = sorted(range(len(known)), key=lambda one: texts[known[one]])
    rank = np.full(len(known) + 1, -1, dtype=np.int64)  # the last is for no name
    rank[order] = np.arange(len(known))
    return tuple(shortened(texts[known[one]]) for one in order), rank[place]


def _reasons(absent: AbsentPieces, start_ns: int, end_ns: int) -> ReasonLane:
    cut = cut_at(absent.start_ns, absent.end_ns, _border(start_ns, end_ns))
    order = np.argsort(cut.start_ns, kind="stable")
    seen, reason = _indexed(absent.reason[cut.of][order])
    return ReasonLane(
        at_ns=tuple((cut.start_ns[order] - start_ns).tolist()),
        length_ns=tuple((cut.end_ns - cut.start_ns)[order].tolist()),
        reason=tuple(reason.tolist()),
        reasons=tuple(REASONS[code] for code in seen),
    )
