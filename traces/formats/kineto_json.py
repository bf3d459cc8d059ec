"""Bytes of a PyTorch profiler trace -> its header and its events, by the standard library: the reference.

Times are microseconds with decimals, too long for a double, so JSON's fractions are kept as texts. The
profiler's JSON is not always JSON: unescaped control characters, NaN, bare nan or N/A and stray backslashes
occur and are read over.
"""

import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from traces.errors import DamagedTrace, NotATrace
from traces.files.unpacked import Unpacked
from traces.formats import kineto_schema as schema
from traces.formats.kineto_rows import Row
from traces.limits import Limit
from traces.spelling import megabytes

GZIP_MAGIC: Final = b"\x1f\x8b"
Event = dict[str, Any]

WHOLE: Final = Limit(
    256 << 20,
    "bytes",
    "ours: as objects they take 10 to 20 times that; what is laid out as usual has no limit",
)
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_STRING_OR_WORD: Final = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:nan(?:\(\w*\))?|inf(?:inity)?|N/A)\b', re.IGNORECASE | re.DOTALL
)
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_RECORD: Final = "Record one: torch.profiler.profile(...), then prof.export_chrome_trace('run.json.gz')"


def looks_like_json(head: bytes) -> bool:
    """Whether a file that begins so is an object or a list of JSON."""
    return head.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")


def read_events(path: Path) -> tuple[Mapping[str, object], list[Event]]:
    """What stands beside the events of a trace, packed or not, and its events, of which we know some.

    Raises `NotATrace` for another content and `DamagedTrace` where the file breaks off or cannot be parsed.
    """
    document = _parsed(path, _content(path).decode("utf-8-sig", "replace"))
    header: dict[str, object] = document if isinstance(document, dict) else {}
    events = header.pop("traceEvents", None) if isinstance(document, dict) else document
    known = [event for event in events if table_of(event)] if isinstance(events, list) else []
    if not known and not (isinstance(events, list) and any(key in header for key in schema.HEADER_KEYS)):
        raise NotATrace(f"{path} is JSON, but no trace of the PyTorch profiler. {_RECORD}")
    return header, known


def table_of(event: object) -> str | None:
    """Name of a complete event's category, if we know it, or of memory events; None for all else."""
    if not isinstance(event, dict):
        return None
    return Row(ph=event.get("ph"), cat=event.get("cat"), name=event.get("name")).table


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        if not file.peek(2).startswith(GZIP_MAGIC):
            _check_size(path, path.stat().st_size)
            return file.read()
        content = _unpacked(path, file)
    _check_size(path, len(content))
    if not looks_like_json(content[:100]):
        raise NotATrace(
            f"{path} is packed by gzip, but holds no JSON of the PyTorch profiler. "
            "If it holds another kind of trace, unpack it first: gunzip -k FILE"
        )
    return content


def _check_size(path: Path, size: int) -> None:
    if size > WHOLE.value:
        raise DamagedTrace(
            f"{path} breaks off, or has a layout that the profiler does not write, which is read only "
            f"up to {megabytes(WHOLE.value)} MB. "
            "Let its writer finish and copy it again, or export the trace again."
        )


def _unpacked(path: Path, file: BinaryIO) -> bytes:
    try:
        return Unpacked(file, path).whole(int(WHOLE.value))
    except EOFError:
        raise DamagedTrace(f"{path} is truncated: its gzip data breaks off. Copy it again.") from None
    except (OSError, zlib.error):
        raise DamagedTrace(f"{path} is damaged: its gzip data cannot be unpacked. Copy it again.") from None


def _parsed(path: Path, text: str) -> object:
    try:
        return parsed(text)
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos} of {len(text)}" if isinstance(error, json.JSONDecodeError) else ""
        raise DamagedTrace(
            f"{path} breaks off or is damaged: no JSON{where}. "
            "Let its writer finish and copy it again, or export the trace again."
        ) from None


def parsed(text: str) -> object:
    """The profiler's JSON, however spoiled. Raises ValueError or RecursionError where it is none."""
    try:
        return _loads(text)
    except (ValueError, RecursionError):
        return _loads(_STRING_OR_WORD.sub(_mended, text))


def _loads(text: str) -> object:
    found = json.loads(text, strict=False, parse_float=str, parse_constant=lambda _: None)
    if _HALF.search(text):  # half of a pair is no character, and cannot be written again
        whole = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
        found = json.loads(whole, strict=False)
    return found


def _mended(match: re.Match[str]) -> str:
    """A string with only JSON's escapes; a bare word that is no number as null."""
    found = match[0]
    if not found.startswith('"'):
        return "null"
    return _ESCAPE.sub(lambda escape: escape[0] if escape[1] else r"\\", found) if "\\" in found else found
