"""Steps as they ran: every activity by stream, its launch, the host, and why no compute ran.

Of launching threads there are the CUDA calls and NVTX ranges, nested as recorded.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from traces.account.pieces import REASONS, AbsentPieces
from traces.arrays import IntArray, distinct, listed, order_of, row_by_row
from traces.columns import NULL, Calls, Columns, Ranges
from traces.frozen import frozen
from traces.groups import in_order, passing, places_of_each
from traces.intervals import spans
from traces.limits import Limit
from traces.measure.kernel_table import PREFIX, shortened
from traces.measure.ledger import KEY_BASE, Cut, cut_at, keys_named
from traces.missing import Missing, gap, or_gap
from traces.names.frames import public_frame
from traces.names.ranges import public_call, public_range
from traces.sections.tables import HostLane, HostRows, Lane, ReasonLane, Timeline
from traces.steps.found import Step, Steps
from traces.steps.sample import STEPS
from traces.texts import Texts
from traces.timeline import Activities, RankTimeline

Stretch = tuple[int, int]
"""From when until when, in ns."""


class NumberedTexts:
    """Texts that columns point to, in the order in which they were first met."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}

    def listed(self) -> Texts:
        return tuple(self._place)

    def places(
        self,
        codes: IntArray,
        text_of: Callable[[int], str | None],
        order: Callable[[int], Any] = int,
    ) -> IntArray:
        """The place of each code's text, new ones in `order` (of the alphabet, not of the export);
        -1 for no code (below 0) or no text.
        """
        known = distinct(codes[codes >= 0])
        place = np.full(len(known) + 1, -1)  # the last is for no text
        for at in sorted(range(len(known)), key=lambda index: order(int(known[index]))):
            text = text_of(int(known[at]))
            if text is not None:
                place[at] = self._place.setdefault(text, len(self._place))
        return place[np.where(codes >= 0, np.searchsorted(known, codes), -1)]


def longest(length_ns: IntArray, most: int) -> IntArray:
    """Places of the longest, shape (most,) at most, in order of place; of equal ones the first."""
    return np.sort(order_of(-length_ns)[:most])


MOST: Final = Limit(
    12_000,
    "rows of a kind",
    "ours: a report of one file under 2 MB, and more than one screen can show apart",
)
_THREAD_BITS: Final = 0xFFFFFF


@frozen
class HostKind:
    """One kind of rows, where their texts stand and what of a text may be shown."""

    name: HostRows
    rows: Calls | Ranges
    text: IntArray
    texts: Texts
    public: Callable[[str], str | None]


def host_lanes(
    rank: RankTimeline,
    kinds: Sequence[HostKind],
    within_ns: Stretch,
    names: NumberedTexts,
    most: int | None,
) -> tuple[tuple[HostLane, ...], int]:
    """The launching threads within a stretch, `most` rows of each kind where given; names go into
    `names`.

    Lanes by thread, in the order of kinds, outer before inner; and how many shorter rows are not
    among them.
    """
    threads = rank.activities.launching_threads
    shown, left_out = list[tuple[HostKind, IntArray]](), 0
    for kind in kinds:
        kept, others = _rows(kind, threads, within_ns, most)
        shown.append((kind, kept))
        left_out += others
    lanes: list[HostLane] = []
    for thread, (kind, kept) in product(threads.tolist(), shown):
        lanes += _host_lanes(kind, thread, kept, within_ns, names)
    return tuple(lanes), left_out


def host_kinds(columns: Columns) -> tuple[HostKind, ...]:
    """What a host lane can be of: functions, ranges, calls."""
    return (
        *_functions(columns),
        HostKind("ranges", columns.ranges, columns.ranges.text, columns.range_texts, public_range),
        HostKind("calls", columns.calls, columns.calls.name, columns.call_names, public_call),
    )


def _functions(columns: Columns) -> Iterator[HostKind]:
    """The functions that may be named, where stacks were recorded; plumbing is none of them."""
    if (frames := columns.frames) is None:
        return
    mine = passing(public_frame, frames.names)[frames.name]
    rows = Ranges(
        frames.start_ns[mine], frames.end_ns[mine], frames.thread_gid[mine], frames.name[mine]
    )

    def public(text: str) -> str | None:
        frame = public_frame(text)
        if frame:
            return frame.name
        return None

    yield HostKind("functions", rows, rows.text, frames.names, public)


def _rows(
    kind: HostKind, threads: IntArray, within_ns: Stretch, most: int | None
) -> tuple[IntArray, int]:
    """Places of the longest rows within the stretch, in order, outer ones first; and how many
    others.
    """
    rows = kind.rows
    timed = (rows.start_ns != NULL) & (rows.start_ns < within_ns[1]) & (rows.end_ns > within_ns[0])
    mine = np.flatnonzero(timed & np.isin(rows.thread_gid, threads))
    mine = in_order(mine, rows.start_ns, -rows.end_ns)
    limit = MOST.whole if most is None else most
    kept = mine[longest(rows.length_ns[mine], limit)]
    return kept, len(mine) - len(kept)


def _host_lanes(
    kind: HostKind, thread: int, places: IntArray, within_ns: Stretch, names: NumberedTexts
) -> Iterator[HostLane]:
    rows, (first_ns, last_ns) = kind.rows, within_ns
    mine = places[rows.thread_gid[places] == thread]
    start_ns = np.maximum(rows.start_ns[mine], first_ns)
    end_ns = np.minimum(rows.end_ns[mine], last_ns)
    depth = _depths(start_ns, end_ns)
    name = names.places(
        kind.text[mine], lambda code: kind.public(kind.texts[code]), kind.texts.__getitem__
    )
    for level in distinct(depth).tolist():
        on = depth == level
        yield HostLane(
            thread=thread & _THREAD_BITS,
            kind=kind.name,
            depth=level,
            at_ns=listed(start_ns[on] - first_ns),
            length_ns=listed((end_ns - start_ns)[on]),
            name=listed(name[on]),
        )


def _depths(start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """The first level that is free when a row starts, which for nested rows is how deep each
    lies.
    """
    free_ns = list[int]()
    depth = np.empty(len(start_ns), dtype=np.int64)
    for place, (start, end) in enumerate(row_by_row(start_ns, end_ns)):
        level = next((level for level, at_ns in enumerate(free_ns) if at_ns <= start), len(free_ns))
        free_ns[level : level + 1] = [end]
        depth[place] = level
    return depth


OTHER_ROWS: Final = Limit(
    5_000,
    "rows of each kind",
    "ours: half a megabyte, shared by all other steps; the longest are kept",
)


def measure_timelines(
    rank: RankTimeline, steps: Steps, absent: AbsentPieces | Missing
) -> tuple[Timeline, tuple[Timeline, ...]]:
    """One step in full and others in brief, in order of time.

    In full: the step whose length is nearest to the median; where there are no steps, the window.
    Its `end_ns` is earlier than that of the step where it has more activities than can be shown.
    Other steps have their longest rows, and neither `keys` nor `names`: their columns point to
    those of the first.
    """
    drawn = _Drawn(rank, absent, host_kinds(rank.columns), NumberedTexts(), NumberedTexts())
    chosen = typical_step(steps)
    shown = drawn.in_full(chosen.index if chosen else None, *stretch_of(steps, chosen))
    others = _others(steps, chosen)
    most = OTHER_ROWS.whole // max(1, len(others))
    brief = tuple(drawn.in_brief(step, most) for step in others)
    return replace(shown, keys=drawn.keys.listed(), names=drawn.names.listed()), brief


_NO_STEPS: Final = gap(
    "there are no steps: it shows the window", "give --steps, --nvtx, or record step ranges"
)
KEY_NAMES: Final = keys_named(PREFIX)


def typical_step(steps: Steps) -> Step | None:
    """The used step whose length is nearest to the median; None without steps."""
    median_ns = steps.median_ns
    if median_ns is None:
        return None
    return min(steps.used, key=lambda step: (abs(step.length_ns - median_ns), step.index))


def stretch_of(steps: Steps, step: Step | None) -> Stretch:
    """Where a step begins and ends; without one, from the first window's begin to the last one's
    end.
    """
    if step is None:
        return int(steps.windows.start_ns[0]), int(steps.windows.end_ns[-1])
    return step.within_ns


def _others(steps: Steps, chosen: Step | None) -> list[Step]:
    """The other used steps; of too many the slow ones, and of the rest some that lie evenly
    apart.
    """
    unchosen, most = [step for step in steps.used if step is not chosen], STEPS.whole
    slow = [step for step in unchosen if step.index in steps.slow][:most]
    usual = [step for step in unchosen if step not in slow]
    count = min(most, len(unchosen)) - len(slow)
    even = np.linspace(0, len(usual) - 1, count).astype(np.int64).tolist()
    return sorted([*slow, *(usual[place] for place in even)], key=lambda step: step.index)


@frozen
class _Drawn:
    """What the timelines of a rank are drawn from, and the texts that they share."""

    rank: RankTimeline
    absent: AbsentPieces | Missing
    kinds: tuple[HostKind, ...]
    keys: NumberedTexts
    names: NumberedTexts

    def in_full(self, index: int | None, start_ns: int, end_ns: int) -> Timeline:
        """Every activity, up to the instant where they become too many."""
        rows, mine = self._within(start_ns, end_ns)
        left_out = max(0, len(mine) - MOST.whole)
        if left_out:
            end_ns = int(rows.start_ns[mine[MOST.whole]])
            mine = mine[: MOST.whole]
        return self._timeline(index, (start_ns, end_ns), mine, left_out, None)

    def in_brief(self, step: Step, most: int) -> Timeline:
        rows, mine = self._within(*step.within_ns)
        kept = mine[longest(rows.length_ns[mine], most)]
        return self._timeline(step.index, step.within_ns, kept, len(mine) - len(kept), most)

    def _within(self, start_ns: int, end_ns: int) -> tuple[Activities, IntArray]:
        rows = self.rank.activities
        return rows, np.flatnonzero((rows.start_ns < end_ns) & (rows.end_ns > start_ns))

    def _timeline(
        self,
        index: int | None,
        within_ns: Stretch,
        mine: IntArray,
        left_out: int,
        most: int | None,
    ) -> Timeline:
        absent = self.absent
        reasons = absent if isinstance(absent, Missing) else _reasons(absent, within_ns, most)
        lanes = self._lanes(mine, within_ns)
        host, host_left_out = host_lanes(self.rank, self.kinds, within_ns, self.names, most)
        return Timeline(
            step=or_gap(index, _NO_STEPS),
            start_ns=within_ns[0],
            end_ns=within_ns[1],
            keys=(),
            names=(),
            lanes=lanes,
            reasons=reasons,
            left_out=left_out,
            host=host,
            host_left_out=host_left_out,
        )

    def _lanes(self, mine: IntArray, within_ns: Stretch) -> tuple[Lane, ...]:
        rows, start_ns = self.rank.activities, within_ns[0]
        cut = _cut(rows.start_ns[mine], rows.end_ns[mine], within_ns)
        mine = mine[cut.of]
        key = self.keys.places(rows.key[mine] + KEY_BASE[rows.bucket[mine]], KEY_NAMES.__getitem__)
        texts = self.rank.columns.kernel_names
        name = self.names.places(
            rows.name[mine], lambda code: shortened(texts[code]), texts.__getitem__
        )
        unlaunched = gap(
            "the launch of some activities was not recorded", self.rank.cure("launches")
        )
        lanes = []
        for stream, on in places_of_each(rows.stream_id[mine]):
            launch_ns = rows.launch_ns[mine][on].tolist()
            lanes.append(
                Lane(
                    stream=stream,
                    at_ns=listed(cut.start_ns[on] - start_ns),
                    length_ns=listed(cut.length_ns[on]),
                    key=listed(key[on]),
                    name=listed(name[on]),
                    launch_ns=tuple(
                        unlaunched if at_ns == NULL else at_ns - start_ns for at_ns in launch_ns
                    ),
                )
            )
        return tuple(lanes)


def _cut(start_ns: IntArray, end_ns: IntArray, within_ns: Stretch) -> Cut:
    return cut_at(start_ns, end_ns, spans(within_ns))


def _reasons(absent: AbsentPieces, within_ns: Stretch, most: int | None) -> ReasonLane:
    cut = _cut(absent.start_ns, absent.end_ns, within_ns)
    length_ns = cut.length_ns
    order = order_of(cut.start_ns)
    kept = order if most is None else order[longest(length_ns[order], most)]
    seen = NumberedTexts()
    reason = seen.places(absent.reason[cut.of][kept], REASONS.__getitem__)
    return ReasonLane(
        at_ns=listed(cut.start_ns[kept] - within_ns[0]),
        length_ns=listed(length_ns[kept]),
        reason=listed(reason),
        reasons=seen.listed(),
        left_out=len(order) - len(kept),
    )
