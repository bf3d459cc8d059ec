"""Bytes of a PyTorch profiler trace -> its header and its activities; numbers stay exact.

Times are microseconds with decimals, too long for a double, so JSON's fractions are kept as texts. The
profiler's JSON is not always JSON: unescaped control characters, NaN, bare nan or N/A and stray backslashes
occur and are read over.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from traces.errors import DamagedTrace, NotATrace
from traces.formats import kineto_schema as schema
from traces.progress import Progress

GZIP_MAGIC: Final = b"\x1f\x8b"
Event = dict[str, Any]

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_STRING_OR_WORD: Final = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:nan(?:\(\w*\))?|inf(?:inity)?|N/A)\b', re.IGNORECASE | re.DOTALL
)
_ESCAPE: Final = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_RECORD: Final = "Record one: torch.profiler.profile(...), then prof.export_chrome_trace('run.json.gz')"


@dataclass(frozen=True, slots=True)
class KinetoFile:
    """One trace: what stands beside its events, and its activities by the table names of the schema."""

    header: Mapping[str, object]
    tables: Mapping[str, list[Event]]


def looks_like_json(head: bytes) -> bool:
    """Whether a file that begins so is an object or a list of JSON."""
    return head.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")


def load(path: Path, progress: Progress) -> KinetoFile:
    """Read a trace, packed or not.

    Raises `NotATrace` for another content and `DamagedTrace` where the file breaks off or cannot be parsed.
    """
    progress(f"reading {path.name}", None)
    document = _parsed(path, _content(path).decode("utf-8-sig", "replace"))
    header: Mapping[str, object] = document if isinstance(document, dict) else {}
    events = header.get("traceEvents") if isinstance(document, dict) else document
    tables = _by_table(events) if isinstance(events, list) else {}
    if not tables and not (isinstance(events, list) and any(key in header for key in schema.HEADER_KEYS)):
        raise NotATrace(f"{path} is JSON, but no trace of the PyTorch profiler. {_RECORD}")
    return KinetoFile(header, tables)


def _by_table(events: list[object]) -> dict[str, list[Event]]:
    """Complete events ("ph": "X") of categories that we know and memory events, in the order of the file."""
    tables: dict[str, list[Event]] = {}
    for event in events:
        if isinstance(event, dict) and (table := _table_of(event)):
            tables.setdefault(table, []).append(event)
    return tables


def _table_of(event: Event) -> str | None:
    if event.get("ph") == "X":
        category = event.get("cat")
        return schema.TABLE_OF.get(category) if isinstance(category, str) else None
    is_memory = event.get("ph") == "i" and event.get("name") == schema.MEMORY_EVENT
    return schema.MEMORY if is_memory else None


def _content(path: Path) -> bytes:
    raw = path.read_bytes()
    if not raw.startswith(GZIP_MAGIC):
        return raw
    try:
        content = gzip.decompress(raw)
    except EOFError:
        raise DamagedTrace(f"{path} is truncated: its gzip data breaks off. Copy it again.") from None
    except (OSError, zlib.error):
        raise DamagedTrace(f"{path} is damaged: its gzip data cannot be unpacked. Copy it again.") from None
    if not looks_like_json(content[:100]):
        raise NotATrace(
            f"{path} is packed by gzip, but holds no JSON of the PyTorch profiler. "
            "If it holds another kind of trace, unpack it first: gunzip -k FILE"
        )
    return content


def _parsed(path: Path, text: str) -> object:
    try:
        return _loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return _loads(_STRING_OR_WORD.sub(_mended, text))
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos} of {len(text)}" if isinstance(error, json.JSONDecodeError) else ""
        raise DamagedTrace(
            f"{path} breaks off or is damaged: no JSON{where}. "
            "Let its writer finish and copy it again, or export the trace again."
        ) from None


def _loads(text: str) -> object:
    return json.loads(text, strict=False, parse_float=str, parse_constant=lambda _: None)


def _mended(match: re.Match[str]) -> str:
    """A string with only JSON's escapes; a bare word that is no number as null."""
    found = match[0]
    if not found.startswith('"'):
        return "null"
    return _ESCAPE.sub(lambda escape: escape[0] if escape[1] else r"\\", found) if "\\" in found else found
