"""A PyTorch profiler trace -> its header and its activities, part by part: memory holds no whole text.

msgspec decodes a part at a time into typed rows; they are columns before the next one is read. What it
refuses `kineto_json`, the reference, reads: the part alone where NaN or the like stands in it, the whole file
where anything else is unusual. So only the reference says what is a trace and what is wrong with a file.

A part ends between `}` and `, {`. Where that is inside of a text or of an event, the part is no list of whole
events for either reader: a cut that is read is a right one.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from traces.files.unpacked import Unpacked
from traces.formats import kineto_rows
from traces.formats import kineto_schema as schema
from traces.formats.kineto_json import BYTE_ORDER_MARK, GZIP_MAGIC, parsed, read_events
from traces.formats.kineto_rows import Row, Table
from traces.progress import Progress

_PART_BYTES: Final = 1 << 22  # some ten thousand events; a header must end in the first part
_ENDS_TRIED: Final = 8  # a list of objects may end inside of an event
_REST_PARTS: Final = 16  # that may stand after the events: far above what any profiler writes
_SPACE: Final = rb"[ \t\r\n]*"
_BEGIN: Final = re.compile(
    rb"\A(?:%b)?%b\[|\"traceEvents\"%b:%b\[" % (BYTE_ORDER_MARK, _SPACE, _SPACE, _SPACE)
)
_BETWEEN: Final = re.compile(rb"(.*\})%b,%b(?=\{)" % (_SPACE, _SPACE), re.DOTALL)
_END: Final = re.compile(rb"\}(?=%b\])" % _SPACE)
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)
_DECODER: Final = msgspec.json.Decoder(list[Row], float_hook=str)


@dataclass(frozen=True, slots=True)
class KinetoFile:
    """One trace: what stands beside its events, and its activities by the table names of the schema."""

    header: Mapping[str, object]
    tables: Mapping[str, Table]


def load(path: Path, progress: Progress) -> KinetoFile:
    """Read a trace, packed or not. Raises what `kineto_json.read_events` raises."""
    progress(f"reading {path.name}", None)
    parts = _Parts()
    header = _by_parts(path, parts, progress)
    if header is None or parts.are_empty:
        parts = _Parts()
        header, events = read_events(path)
        parts.add(kineto_rows.rows_of(events))
    return KinetoFile(header, parts.tables())


def _by_parts(path: Path, parts: _Parts, progress: Progress) -> Mapping[str, object] | None:
    """Fill `parts` and give the header; None where the file is not laid out as traces are."""
    size = path.stat().st_size
    with path.open("rb") as file, _unpacked(file, path) as source, suppress(EOFError, OSError, zlib.error):
        part = source.read(_PART_BYTES)
        if not (begin := _BEGIN.search(part)):
            return None
        before, part = part[: begin.end()], part[begin.end() :] + source.read(_PART_BYTES)
        while (between := _BETWEEN.match(part)) and parts.add(_rows(between[1])):
            progress(f"reading {path.name}", file.tell() / size)
            part = part[between.end() :] + source.read(_PART_BYTES)
        for end in islice(_END.finditer(part), _ENDS_TRIED):
            if parts.add(_rows(part[: end.end()])):
                rest = b"".join(islice(iter(lambda: source.read(_PART_BYTES), b""), _REST_PARTS))
                return None if source.read(1) else _header(before + b"0" + part[end.end() :] + rest)
    return None


def _unpacked(file: BufferedReader, path: Path) -> BufferedIOBase:
    return Unpacked(file, path) if file.peek(2).startswith(GZIP_MAGIC) else file


def _rows(part: bytes) -> list[Row] | None:
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
    return kineto_rows.rows_of(events) if isinstance(events, list) else None


def _header(without_events: bytes) -> Mapping[str, object] | None:
    """What stands beside the events, for which a 0 stands."""
    try:
        document = parsed(without_events.decode("utf-8-sig", "replace"))
    except _UNREADABLE:
        return None
    if isinstance(document, dict):
        return document if document.get("traceEvents") == [0] else None
    return {} if document == [0] else None


class _Parts:
    def __init__(self) -> None:
        self._tables: dict[str, list[Table]] = {}

    @property
    def are_empty(self) -> bool:
        """Whether there was no event that we know."""
        return not self._tables

    def add(self, rows: list[Row] | None) -> bool:
        """Add rows as columns; False where there are none to add."""
        by_table: dict[str, list[Row]] = {}
        for row in rows or ():
            if table := row.table:
                by_table.setdefault(table, []).append(row)
        for table, several in by_table.items():
            self._tables.setdefault(table, []).append(kineto_rows.table(several, table))
        return rows is not None

    def tables(self) -> dict[str, Table]:
        """Each table whole; empty where nothing was added."""
        found = {name: self._tables.pop(name, None) for name in schema.TABLES}
        return {
            name: kineto_rows.joined(several or [kineto_rows.table((), name)])
            for name, several in found.items()
        }
