"""What was recorded of the launching threads, by kind: of each kind the spans that may be named."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from traces.account.pieces import Tiling
from traces.addresses.nested import innermost
from traces.arrays import NOWHERE, PLACE, IntArray, codes_of, ints, none_of
from traces.columns import HostSpans, Ranges
from traces.frozen import frozen
from traces.intervals import Spans
from traces.names.frames import Frame, FrameKind, public_frame, public_os_call, public_span
from traces.names.ranges import family, public_call
from traces.texts import Texts
from traces.timeline import RankTimeline

LEVELS: Final = (
    FrameKind.MODULE,
    FrameKind.RANGE,
    FrameKind.FUNCTION,
    FrameKind.OPERATOR,
    FrameKind.NATIVE,
    FrameKind.OS_CALL,
)
"""Kinds of frames, in the order in which they usually enclose each other."""
NO_FRAME: Final = -1


@frozen
class Level(HostSpans):
    """Spans of one kind that may be named, shape (n,); `name` indexes `names`."""

    def text(self, name: int) -> str:
        """What is written of a name; empty where there is none."""
        if name == NO_FRAME:
            return ""
        return self.names[name]

    def on_thread(self, thread: int) -> Tiling:
        """Which name is the innermost at every instant of a thread, `NO_FRAME` where none is."""
        mine = self.thread_gid == thread
        return innermost(self.start_ns[mine], self.end_ns[mine], self.name[mine])


def levels(rank: RankTimeline, windows: Spans) -> dict[FrameKind, Level]:
    """What the launching threads were in, by kind, within the windows and at their launches."""
    columns, rows = rank.columns, rank.activities
    ranges, frames = columns.ranges, columns.frames
    launched = rows.launch_ns[(rows.call >= 0) & (rows.end_ns > windows.start_ns[0])]
    since_ns = min(int(windows.start_ns[0]), int(launched.min(initial=windows.start_ns[0])))
    within_ns, threads = (since_ns, int(windows.end_ns[-1])), rows.launching_threads
    by_kind = dict.fromkeys(LEVELS, Level(NOWHERE, NOWHERE, NOWHERE, NOWHERE, ()))
    sources: list[tuple[HostSpans | Ranges, IntArray, Texts, Callable[[str], Frame | None]]] = [
        (ranges, ranges.text, columns.range_texts, public_span),
        (columns.os_calls, columns.os_calls.name, columns.os_calls.names, public_os_call),
    ]
    if frames is not None:
        sources.append((frames, frames.name, frames.names, public_frame))
    for spans, code, texts, public in sources:
        mine = (spans.start_ns < within_ns[1]) & (spans.end_ns > within_ns[0]) & (code >= 0)
        # spans of a kind are of one source
        for kind, at, name, names in _by_kind(
            np.flatnonzero(mine & np.isin(spans.thread_gid, threads)), code, texts, public
        ):
            start_ns, end_ns = spans.start_ns[at], spans.end_ns[at]
            by_kind[kind] = Level(start_ns, end_ns, spans.thread_gid[at], name, names)
    return by_kind


def calls_of(rank: RankTimeline) -> Level:
    """Calls of CUDA or HIP on all threads, by the names that may be shown."""
    calls, texts = rank.columns.calls, rank.columns.call_names
    public = [public_call(text) for text in texts]
    names = tuple(dict.fromkeys(filter(None, public)))
    number = codes_of(names)
    of_text = ints([number.get(name or "", NO_FRAME) for name in public] + [NO_FRAME])
    return Level(calls.start_ns, calls.end_ns, calls.thread_gid, of_text[calls.name], names)


def _by_kind(
    places: IntArray, code: IntArray, texts: Texts, public: Callable[[str], Frame | None]
) -> Iterator[tuple[FrameKind, IntArray, IntArray, Texts]]:
    """By kind: places of spans, and the number and texts of their names, or a number for a name
    that may be private.
    """
    withheld: dict[str, str] = {}
    used = none_of(len(texts))
    used[code[places]] = True
    by_kind: dict[FrameKind, dict[int, str]] = {}
    for at in np.flatnonzero(used).tolist():
        if (frame := public(texts[at])) is not None:
            stand_in = f"range {len(withheld) + 1} (name withheld)"
            name = frame.name or withheld.setdefault(family(texts[at]), stand_in)
            by_kind.setdefault(frame.kind, {})[at] = name
    for kind, frames in by_kind.items():
        number: dict[str, int] = {}
        of_text = np.full(len(texts), NO_FRAME, dtype=PLACE)
        for at, text in frames.items():
            of_text[at] = number.setdefault(text, len(number))
        mine = places[of_text[code[places]] >= 0]
        yield kind, mine, of_text[code[mine]], tuple(number)
