"""A result in a file, of whatever command: which kind it is, and whether it keeps the contract."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from pathlib import Path
from typing import Any, Final

from diagnoser.results import Kind
from heuristics.result.result import SCHEMA_VERSION, Result
from reports.contract import broken
from reports.result.codec import Document, decode
from traces.errors import NotAResult, TraceNotFound, UsageError
from traces.results.read import KNOWN_MAJOR, result_of

_MAKE: Final = "moe-diag analyze TRACE -f json -o result.json"


def saved_result(path: Path, redact: bool = True) -> tuple[Kind, Document]:
    """The kind of an earlier result and its document, key by key as it stands in the file.

    Raises `TraceNotFound` for what cannot be read, `NotAResult` for what is no result of ours or of a newer
    schema, `UsageError` for one that is not redacted where `redact` asks for it.
    """
    document = _read(path)
    try:
        kind = _checked(document)
    except NotAResult as error:
        raise NotAResult(f"{path}: {error}") from None
    if redact and not document["redacted"]:
        raise UsageError(
            f"{path} was made with --no-redact and holds paths. Give --no-redact to show them, or make the "
            "result again without it."
        )
    return kind, document


def _read(path: Path) -> Any:
    if path.is_dir():
        raise TraceNotFound(f"{path} is a folder. Name one result in it.")
    if not path.exists():
        raise TraceNotFound(f"{path} does not exist. Check the path.")
    if not path.is_file():
        raise TraceNotFound(f"{path} is a pipe or a device. Name a file.")
    try:
        data = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
        return json.loads(data, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError, EOFError, zlib.error, gzip.BadGzipFile):
        raise NotAResult(f"{path} is no whole JSON. Make a result of a trace: {_MAKE}") from None
    except OSError as error:
        raise TraceNotFound(f"{path} cannot be read ({error.strerror}). Name an earlier result.") from None


def _finite(text: str) -> float:
    """A number; raises ValueError for what JSON has no word for, such as NaN or 1e999."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number")
    return number


def _checked(document: Any) -> Kind:
    """Which kind it is. Raises `NotAResult`, its message without the file."""
    if not isinstance(document, dict) or "schema_version" not in document:
        raise NotAResult(f"it is no result of moe-diag. Make one of a trace: {_MAKE}")
    _check_version(document["schema_version"])
    kind = _kind(document)
    known = {**document, "schema_version": SCHEMA_VERSION}
    if kind == "comparison":
        if wrong := broken(known, "comparison_schema.json"):
            raise NotAResult(f"{wrong}. Make the result again: moe-diag compare")
        return kind
    try:
        decode(known, Result)
    except NotAResult as error:
        raise NotAResult(f"{error}. Make the result again: moe-diag analyze") from None
    result_of(document)  # what no type says, such as rows that add up
    return kind


def _check_version(version: object) -> None:
    major = version.partition(".")[0] if isinstance(version, str) else ""
    if major == str(KNOWN_MAJOR):
        return
    shown = "".join(one for one in str(version)[:12] if one in "0123456789.")
    raise NotAResult(
        f"its schema_version is {shown or 'no number'}; this moe-diag reads {KNOWN_MAJOR}.x. "
        "Update moe-diag (pip install --upgrade moe-diag), or make the result again"
    )


def _kind(document: Document) -> Kind:
    if document.get("kind") == "comparison" or isinstance(document.get("verdict"), str):
        return "comparison"
    return "configuration" if "about" in document and not document.get("traces") else "analysis"
