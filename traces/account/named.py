"""What ranges, and frames of Python, say that host threads do."""

import numpy as np

from traces.arrays import IntArray
from traces.columns import NULL, Columns, HostSpans, Ranges
from traces.groups import passing
from traces.names.frames import cause_of_frame
from traces.names.ranges import HOST_RANGES, cause_of_range


def ranges_of_cause(columns: Columns, cause: str) -> Ranges:
    """The ranges whose text names a cause."""
    named = passing(lambda text: cause_of_range(text) == cause, columns.range_texts)
    return columns.ranges.take(named[columns.ranges.text])


def named_spans(columns: Columns, single: HostSpans) -> dict[str, HostSpans]:
    """By cause, the weakest first. A process that communicates in a `single` pause waits for what
    another one does for the first time.
    """
    named = {cause: _spans_of_cause(columns, cause) for cause in HOST_RANGES}
    calls = _times(named["host_comm"])
    for start_ns, end_ns, thread in _times(single).T.tolist():
        apart = (calls[1] <= start_ns) | (calls[0] >= end_ns) | (calls[2] != thread)
        calls = calls[:, apart]
    return named | {"host_comm": spans_of(*calls)}


def _spans_of_cause(columns: Columns, cause: str) -> HostSpans:
    """The ranges of a cause, and the frames of Python that name it."""
    times = [_times(ranges_of_cause(columns, cause))]
    if (frames := columns.frames) is not None:
        named = passing(lambda text: cause_of_frame(text) == cause, frames.names)
        times.append(_times(frames)[:, named[frames.name]])
    return spans_of(*np.concatenate(times, axis=1))


def spans_of(start_ns: IntArray, end_ns: IntArray, thread_gid: IntArray) -> HostSpans:
    """Spans without names."""
    return HostSpans(start_ns, end_ns, thread_gid, np.full(len(start_ns), NULL), ())


def _times(spans: HostSpans | Ranges) -> IntArray:
    return np.stack((spans.start_ns, spans.end_ns, spans.thread_gid))
