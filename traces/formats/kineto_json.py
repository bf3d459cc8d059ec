"""Bytes of a PyTorch profiler trace -> its header and its activities; memory holds no whole text.

msgspec decodes a part at a time into typed rows; they are columns before the next one is read. A
part with NaN or the like in it, which msgspec refuses, is mended and read by the standard library.

A part ends between `}` and `, {`. Where that is inside of a text or of an event, the part is no
list of whole events: a cut that is read is a right one. What is laid out otherwise than profilers
do is refused.

Times are microseconds with decimals, too long for a double, so JSON's fractions are kept as texts.
The profiler's JSON is not always JSON: unescaped control characters, NaN, bare nan or N/A and stray
backslashes occur and are read over.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from traces.errors import DamagedTrace, NotATrace
from traces.files.beneath import opened
from traces.files.unpacked import Unpacked
from traces.formats import kineto_rows
from traces.formats import kineto_schema as schema
from traces.formats.kineto_rows import EventRow
from traces.formats.tables import Table
from traces.patterns import Match, compiled, of_bytes
from traces.progress import Progress

Event = dict[str, Any]
GZIP_MAGIC: Final = b"\x1f\x8b"
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_PART_BYTES: Final = 1 << 22  # some ten thousand events; a header must end in the first part
_ENDS_TRIED: Final = 8  # a list of objects may end inside of an event
_REST_PARTS: Final = 16  # that may stand after the events: far above what any profiler writes
_SPACE: Final = rb"[ \t\r\n]*"
_BEGIN: Final = of_bytes(
    rb"\A(?:%b)?%b\[|\"traceEvents\"%b:%b\[" % (BYTE_ORDER_MARK, _SPACE, _SPACE, _SPACE)
)
_BETWEEN: Final = of_bytes(rb"(?s)\A(.*\})%b,%b(?=\{)" % (_SPACE, _SPACE))
_END: Final = of_bytes(rb"(?:\}|\A)(?=%b\])" % _SPACE)
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)
_DECODER: Final = msgspec.json.Decoder(list[EventRow], float_hook=str)


_RECORD: Final = (
    "Record one: torch.profiler.profile(...), then prof.export_chrome_trace('run.json.gz')"
)
_AGAIN: Final = "Let its writer finish and copy it again, or export the trace again."

_BEGINS: Final = compiled(r"\s*(\{\s*([\"}]|$)|\[\s*([{\[\]]|$))")
"""What no log and no TOML begins with."""
_Parts = dict[str, list[Table]]
"""By table, in the order of the file."""


def looks_like_json(head: bytes) -> bool:
    """Whether a file that begins so is an object or a list of JSON."""
    begins = head.removeprefix(BYTE_ORDER_MARK).decode("latin-1")
    return _BEGINS.match(begins) is not None


def load(path: Path, progress: Progress) -> tuple[Mapping[str, object], dict[str, Table]]:
    """What stands beside the events of a trace, packed or not, and its activities by the schema's
    tables.

    Raises `NotATrace` for another content and `DamagedTrace` where the file breaks off or cannot be
    read.
    """
    progress(f"reading {path.name}", None)
    parts = _Parts()
    with opened(path) as file:
        source = Unpacked(file, path) if file.peek(2).startswith(GZIP_MAGIC) else file
        size = os.fstat(file.fileno()).st_size
        try:
            header = _by_parts(
                path, source, parts, lambda: progress(f"reading {path.name}", file.tell() / size)
            )
        except EOFError:
            raise DamagedTrace(
                f"{path} is truncated: its gzip data breaks off. Copy it again."
            ) from None
        except (gzip.BadGzipFile, zlib.error):
            raise DamagedTrace(
                f"{path} is damaged: its gzip data cannot be unpacked. Copy it again."
            ) from None
    if not parts and header.keys().isdisjoint(schema.HEADER_KEYS):
        raise NotATrace(f"{path} is JSON, but no trace of the PyTorch profiler. {_RECORD}")
    return header, _tables(parts)


def _by_parts(
    path: Path, source: BufferedIOBase, parts: _Parts, tick: Callable[[], None]
) -> Mapping[str, object]:
    """Fill `parts` and give the header."""
    part = source.read(_PART_BYTES)
    if not looks_like_json(part[:100]):
        raise NotATrace(
            f"{path} is packed by gzip, but holds no JSON of the PyTorch profiler. "
            "If it holds another kind of trace, unpack it first: gunzip -k FILE"
        )
    if not (begin := _BEGIN.search(part)):
        raise NotATrace(
            f"{path} is no trace of the PyTorch profiler, or breaks off before its events: "
            f"no traceEvents in its first {_PART_BYTES >> 20} MB. {_RECORD}"
        )
    before, part = part[: begin.end()], part[begin.end() :] + source.read(_PART_BYTES)
    read_bytes = len(before)
    while (between := _BETWEEN.match(part)) and _added(parts, _rows(between[1])):
        tick()
        read_bytes += between.end()
        part = part[between.end() :] + source.read(_PART_BYTES)
    for end in islice(_END.finditer(part), _ENDS_TRIED):
        if _added(parts, _rows(part[: end.end()])):
            tail = b"".join(islice(iter(lambda: source.read(_PART_BYTES), b""), _REST_PARTS))
            header = None if source.read(1) else _header(before + b"0" + part[end.end() :] + tail)
            if header is not None:
                return header
            read_bytes += end.end()
            break
    if not parts and b"traceEvents" not in before:
        raise NotATrace(f"{path} is JSON, but no trace of the PyTorch profiler. {_RECORD}")
    raise DamagedTrace(
        f"{path} breaks off, is damaged, or has a layout that the profiler does not write: "
        f"from byte {read_bytes} on it cannot be read. {_AGAIN}"
    )


def _rows(part: bytes) -> list[EventRow] | None:
    """Rows of whole events with a comma between them; None where the part is anything else."""
    text = b"[%b]" % part
    try:
        return _DECODER.decode(text)
    except _UNREADABLE:
        pass
    try:
        events = parsed(text.decode("utf-8", "replace"))
    except _UNREADABLE:
        return None
    if isinstance(events, list):
        return kineto_rows.rows_of(events)
    return None


def _header(without_events: bytes) -> Mapping[str, object] | None:
    """What stands beside the events, for which a 0 stands."""
    try:
        document = parsed(without_events.decode("utf-8-sig", "replace"))
    except _UNREADABLE:
        return None
    if document == [0]:
        return {}
    if isinstance(document, dict) and document.get("traceEvents") == [0]:
        return document
    return None


def _added(parts: _Parts, rows: list[EventRow] | None) -> bool:
    by_table = defaultdict[str, list[EventRow]](list)
    for row in rows or ():
        if table := row.table:
            by_table[table].append(row)
    for table, several in by_table.items():
        parts.setdefault(table, []).append(kineto_rows.table(several, table))
    return rows is not None


def _tables(parts: _Parts) -> dict[str, Table]:
    """Each table whole; empty where nothing was added."""
    return {
        name: kineto_rows.joined(parts.pop(name, []) or [kineto_rows.table((), name)])
        for name in schema.TABLES
    }


_STRING_OR_WORD: Final = compiled(
    r'(?is)"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:nan(?:\(\w*\))?|inf(?:inity)?|N/A)\b'
)
_HALF: Final = compiled(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = compiled(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')


def parsed(text: str) -> object:
    """The profiler's JSON, however spoiled. Raises ValueError or RecursionError where it is
    none.
    """
    try:
        return _loads(text)
    except (ValueError, RecursionError):
        return _loads(_STRING_OR_WORD.sub(_mended, text))


def _loads(text: str) -> object:
    document = json.loads(text, strict=False, parse_float=str, parse_constant=lambda _: None)
    if _HALF.search(text):  # half of a pair is no character, and cannot be written again
        whole = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
        document = json.loads(whole, strict=False)
    return document


def _mended(match: Match) -> str:
    """A string with only JSON's escapes; a bare word that is no number as null."""
    text = match[0]
    if not text.startswith('"'):
        return "null"
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda escape: escape[0] if escape[1] else r"\\", text)
