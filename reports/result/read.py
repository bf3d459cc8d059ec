"""Our own results read back, of whatever command: the one place that opens and checks them."""

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from heuristics.result.compared import Compared
from heuristics.result.compared_files import ComparedFiles
from heuristics.result.layouts import Layouts
from heuristics.result.result import Result
from heuristics.result.texts import AnyStruct
from heuristics.result.tool import SCHEMA_VERSION, OfKind
from reports.result.checks import check_compared, check_result
from reports.result.codec import Document, decode
from traces.errors import NotAResult, TraceNotFound
from traces.files.beneath import opened
from traces.files.plain_file import no_file
from traces.files.unpacked import Unpacked

_MAJOR: Final = "1"
"""Documents of version 1.x can be read: keys may be added to it, none may change."""
_MAKE: Final = "moe-diag analyze TRACE -f json -o result.json"


def is_result(path: Path) -> bool:
    """Whether a file begins as our own documents do; False where it cannot be read."""
    try:
        with opened(path) as file:
            begins = gzip.GzipFile(fileobj=file) if _packed(path) else file
            return b'"schema_version"' in begins.read(400)
    except (OSError, EOFError, zlib.error):
        return False


def read_document(path: Path) -> Document:
    """The document of a file, which `typed` is to check.

    Raises `TraceNotFound` for what cannot be read, `NotAResult` for what is no object of JSON.
    """
    if what := no_file(path):
        raise TraceNotFound(
            f"{path} is {what}. Name {'one result in it' if path.is_dir() else 'a file'}."
        )
    if not path.exists():
        raise TraceNotFound(f"{path} does not exist. Check the path.")
    try:
        with opened(path) as file:
            data = Unpacked(file, path).read() if _packed(path) else file.read()
        document = json.loads(data, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError, EOFError, zlib.error, gzip.BadGzipFile):
        raise NotAResult(f"{path} is no whole JSON. Make a result of a trace: {_MAKE}") from None
    except OSError as error:
        raise TraceNotFound(
            f"{path} cannot be read ({error.strerror}). Name an earlier result."
        ) from None
    if not isinstance(document, dict):
        raise NotAResult(f"{path}: it is no result of moe-diag. Make one of a trace: {_MAKE}")
    return document


def read_kept(path: Path) -> Result | OfKind:
    """A result of any kind in a file, as we may say it again.

    Raises what the others here do, the message with the file.
    """
    document = read_document(path)
    with of_file(path):
        return kept_as_ours(document)


@contextmanager
def of_file(path: Path) -> Iterator[None]:
    """What is no result of ours names its file."""
    try:
        yield
    except NotAResult as error:
        raise NotAResult(f"{path}: {error}") from None


def kept_as_ours(document: Mapping[str, Any]) -> Result | OfKind:
    """A document that anybody may have edited, checked, and in our words alone. Raises what `typed`
    does.
    """
    from reports.result.voice.kept import kept

    return kept(typed(document))


def read_result(path: Path) -> Result:
    """The result of one run in a file. Raises what the others here do, the message with the
    file.
    """
    document = read_kept(path)
    with of_file(path):
        return of_one_run(document)


def typed(document: Mapping[str, Any]) -> Result | OfKind:
    """A document of any kind, held against the contract alone: `kept` asks whose words it has.

    Keys that a later 1.x added are left out, so it is of our version.

    Raises `NotAResult` for what is none, or of a newer schema.
    """
    if "schema_version" not in document:
        raise NotAResult(f"it is no result of moe-diag. Make one of a trace: {_MAKE}")
    _check_version(document["schema_version"])
    kind = document.get("kind")
    if kind == "run":
        raise NotAResult(
            "it is a run put together by moe-diag merge, no diagnosis. Give its summaries to merge"
        )
    if kind == "brief":
        raise NotAResult(f"it is a short result of --brief. Keep the whole one: {_MAKE}")
    known = {**document, "schema_version": SCHEMA_VERSION}
    if kind == "files_comparison":
        return _decoded(known, ComparedFiles, "moe-diag compare")
    if kind == "layouts":
        return _decoded(known, Layouts, "moe-diag plan")
    if kind == "comparison" or isinstance(document.get("verdict"), str):
        return check_compared(_decoded(known, Compared, "moe-diag compare"))
    return check_result(_decoded(known, Result, "moe-diag analyze"))


def of_one_run(result: Result | OfKind) -> Result:
    """What is no comparison. Raises `NotAResult` for one."""
    if not isinstance(result, Result):
        raise NotAResult(
            "it is no diagnosis of one run but a comparison. Give one of the runs it compares"
        )
    return result


def _decoded(document: Document, kind: type[AnyStruct], command: str) -> AnyStruct:
    try:
        return decode(document, kind)
    except NotAResult as error:
        raise NotAResult(f"{error}. Make the result again: {command}") from None


def _packed(path: Path) -> bool:
    return path.name.endswith(".gz")


def _finite(text: str) -> float:
    """A number; raises ValueError for what JSON has no word for, such as NaN or 1e999."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number")
    return number


def _check_version(version: object) -> None:
    if isinstance(version, str) and version.partition(".")[0] == _MAJOR:
        return
    shown = "".join(char for char in str(version)[:12] if char in "0123456789.")
    raise NotAResult(
        f"its schema_version is {shown or 'no number'}; this moe-diag reads {_MAJOR}.x. "
        "Update moe-diag (pip install --upgrade moe-diag), or make the result again"
    )
