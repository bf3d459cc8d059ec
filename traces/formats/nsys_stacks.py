"""Stacks of an export: samples of the CPU and of Python, and those taken at calls -> spans of
functions.

Of each stack only the innermost frame of Python and of a native library that may be named is kept.
NVIDIA's user guides give no table for the samples of `--python-sampling`: they are read where they
stand with those of the CPU, a frame of Python as one whose module is a file of it.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, starmap
from typing import Final

import numpy as np

from traces.arrays import IntArray, ints
from traces.columns import NULL, HostSpans, Ranges
from traces.formats import nsys_schema as schema
from traces.formats.nsys_columns import named, read_present
from traces.formats.sqlite_tables import SqliteTables
from traces.groups import begins
from traces.names.frames import FrameKind, public_frame
from traces.texts import Texts

_SOURCES: Final = (
    # stacks, what they were taken at, and the column there that joins them
    (schema.SAMPLE_STACKS, schema.SAMPLES, "id"),
    (schema.CALL_STACKS, schema.CALLS, "callchainId"),
    (schema.OS_STACKS, schema.OS_CALLS, "callchainId"),
)
_KINDS: Final = (FrameKind.FUNCTION, FrameKind.NATIVE)


def read_frames(tables: SqliteTables) -> HostSpans | None:
    """Functions by thread; None where no stack was recorded."""
    names = dict[str, int]()
    parts = []
    for part, texts in chain.from_iterable(starmap(partial(_spans, tables), _SOURCES)):
        known = ints([names.setdefault(text, len(names)) for text in texts])
        parts.append(replace(part, text=known[part.text]))
    if not parts:
        return None
    spans = Ranges.joined(*parts)
    return HostSpans(spans.start_ns, spans.end_ns, spans.thread_gid, spans.text, tuple(names))


def _spans(
    tables: SqliteTables, stacks: str, taken_at: str, joined_by: str
) -> Iterator[tuple[Ranges, Texts]]:
    """Spans of one source, a table of them with its texts for each of `_KINDS`."""
    if not tables.columns_of(stacks) >= {"id", "symbol", "module", "stackDepth"}:
        return
    wanted = ("start", "globalTid", *dict.fromkeys((joined_by, "end")))
    at = read_present(tables, taken_at, (), wanted)
    at = at.only((at["start"] != NULL) & (at["globalTid"] != NULL) & (at[joined_by] != NULL))
    start, thread, chain = at.columns(("start", "globalTid", joined_by))
    if taken_at == schema.SAMPLES:
        start, end = _nearest(start, thread)
    else:
        end = np.maximum(at["end"], start)
    chain_id, kind, code, names = _frames(tables, stacks)
    for place in range(len(_KINDS)):
        mine = kind == place
        ids, codes = chain_id[mine], code[mine]
        if not len(ids):
            continue
        nearest = np.minimum(np.searchsorted(ids, chain), len(ids) - 1)
        hit = ids[nearest] == chain
        yield Ranges(start[hit], end[hit], thread[hit], codes[nearest[hit]]), names


def _frames(tables: SqliteTables, stacks: str) -> tuple[IntArray, IntArray, IntArray, Texts]:
    """Of each stack, in order of id, its innermost frame of each kind: stack, kind, text, and all
    texts.
    """
    column = read_present(
        tables, stacks, (), ("id", "symbol", "module", "stackDepth", "unresolved")
    )
    symbol, symbols = named(tables, [column["symbol"]])
    module, modules = named(tables, [column["module"]])
    pair = ints(symbol) * (len(modules) + 1) + module + 1
    distinct, of = np.unique(
        np.where((symbol < 0) | (column["unresolved"] > 0), -1, pair), return_inverse=True
    )
    texts = []
    kinds = []
    for code in distinct.tolist():
        at, file = divmod(code, len(modules) + 1)
        text = "" if code < 0 or not file else _spelled(symbols[at], modules[file - 1])
        frame = public_frame(text) if text else None
        texts.append(text)
        kinds.append(_KINDS.index(frame.kind) if frame is not None and frame.kind in _KINDS else -1)
    kind = ints(kinds)[of]
    kept = np.flatnonzero((kind >= 0) & (column["id"] != NULL) & (column["stackDepth"] != NULL))
    kept = kept[np.lexsort((column["stackDepth"][kept], kind[kept], column["id"][kept]))]
    kept = kept[begins(column["id"][kept], kind[kept])]
    return column["id"][kept], kind[kept], of[kept], tuple(texts)


def _spelled(symbol: str, module: str) -> str:
    """A frame as the PyTorch profiler spells it, a native one by its library."""
    if module.endswith(".py"):
        return f"{module}(0): {symbol}"
    return f"{module}: {symbol}"


def _nearest(time_ns: IntArray, thread: IntArray) -> tuple[IntArray, IntArray]:
    """What each sample stands for: the time that is nearest to it, no further away than the usual
    period.
    """
    order = np.lexsort((time_ns, thread))
    at = time_ns[order]
    gap = np.diff(at)
    same = ~begins(thread[order])[1:]
    period = int(np.median(gap[same])) if same.any() else 0
    half = np.where(same, np.minimum(gap // 2, period), period)
    start, end = at.copy(), at.copy()
    start[1:] = at[1:] - np.where(same, np.minimum(gap - gap // 2, period), period)
    end[:-1] = at[:-1] + half
    if len(at):
        start[0], end[-1] = at[0] - period, at[-1] + period
    starts, ends = np.empty_like(start), np.empty_like(end)
    starts[order], ends[order] = start, end
    return starts, ends
