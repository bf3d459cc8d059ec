"""Judge what nsys left: a usable export, or an error in our words.

Exit codes of nsys are 0 and 1 only, and it leaves partial databases with either, so the file decides. The
texts were collected from 2022.4.2 given damaged, truncated and newer reports, and a full disk.
"""

import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from traces.errors import DamagedTrace, ExportFailed, MoeDiagError
from traces.formats.nsys_process import Ended
from traces.formats.nsys_schema import EXPORT_TABLES
from traces.formats.nsys_tool import Nsys

_NEWER: Final = re.compile(r"missing required fields|Version number is invalid")
_DAMAGED: Final = re.compile(r"LZ4|protobuf|Section Table Reference|Cannot read from stream", re.IGNORECASE)
_DISK_FULL: Final = re.compile(r"disk is full|No space left", re.IGNORECASE)
_NO_MEMORY: Final = re.compile(r"bad_alloc|out of memory|Cannot allocate memory", re.IGNORECASE)
_PATH: Final = re.compile(r"'[^']*/[^']*'|\"[^\"]*/[^\"]*\"|\S*/\S*")
_START_TABLE: Final = "TARGET_INFO_SESSION_START_TIME"
_MOST_WORDS: Final = 160


def by_hand(report: Path) -> str:
    """The line that exports the report on a machine with nsys, and the one to type here afterwards."""
    export = shlex.quote(report.with_suffix(".sqlite").name)
    return (
        f"nsys export --type sqlite --output {export} {shlex.quote(report.name)} "
        f"(where nsys is), then: moe-diag analyze {export}"
    )


def check_export(report: Path, collector: tuple[int, ...], nsys: Nsys, ended: Ended, output: Path) -> None:
    """Return where `output` is a whole export of the report.

    `collector`: version that recorded it, () where unknown. Raises `DamagedTrace` where nsys could not decode
    the report, else `ExportFailed`.
    """
    if ended.code != 0:
        raise _failure(report, collector, nsys, ended)
    fault = _fault(output) if output.is_file() else "left no export"
    if fault and _DISK_FULL.search(ended.words):  # 2022.4.2 ends with 0 all the same
        raise _no_room(report, nsys)
    if fault:
        raise ExportFailed(
            f"nsys {nsys.release} ended without an error on {report}, but {fault}. "
            f"Try a newer nsys with --nsys PATH, or: {by_hand(report)}"
        )


def start_of_export_ns(export: Path) -> int | None:
    """Start of the recording in UNIX ns as an export tells it; None where it does not."""
    try:
        with closing(_connect(export)) as database:
            row = database.execute(f"SELECT utcEpochNs FROM {_START_TABLE}").fetchone()
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    return row[0] if row and isinstance(row[0], int) else None


def _failure(report: Path, collector: tuple[int, ...], nsys: Nsys, ended: Ended) -> MoeDiagError:
    newer = not collector or collector[:3] > nsys.version[:3]
    if newer and _NEWER.search(ended.words):
        return ExportFailed(
            f"{report} was recorded by an nsys newer than {nsys.release}, which cannot read it. "
            f"Give a newer one with --nsys PATH, or: {by_hand(report)}"
        )
    if _NEWER.search(ended.words) or _DAMAGED.search(ended.words):
        return DamagedTrace(
            f"{report} is damaged: nsys {nsys.release} cannot decode it. "
            "Copy it again from where it was recorded, or record again."
        )
    if _DISK_FULL.search(ended.words):
        return _no_room(report, nsys)
    if _NO_MEMORY.search(ended.words):
        return ExportFailed(
            f"nsys {nsys.release} ran out of memory on {report}. "
            f"Give more with --max-memory, or: {by_hand(report)}"
        )
    words = f"signal {-ended.code} killed it" if ended.code < 0 else _first_error(ended.words)
    return ExportFailed(
        f"nsys {nsys.release} could not export {report}: {words}. To see why: {by_hand(report)}"
    )


def _no_room(report: Path, nsys: Nsys) -> ExportFailed:
    return ExportFailed(
        f"the disk of the cache folder is full: nsys {nsys.release} could not export {report}. "
        "Make room, or give another with --cache-dir DIR."
    )


def _first_error(words: str) -> str:
    """The first line that says what went wrong, without paths and control characters."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    line = next((line for line in lines if line.startswith("Exportation error:")), lines[0] if lines else "")
    line = _PATH.sub("…", line.removeprefix("Exportation error:").strip())
    shown = "".join(character for character in line if character.isprintable())
    return shown[:_MOST_WORDS].rstrip(". ") or "it gives no reason"


def _fault(export: Path) -> str | None:
    """What is wrong with an export, None where nothing is."""
    try:
        with closing(_connect(export)) as database:
            tables = {
                row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            if tables.isdisjoint(EXPORT_TABLES):
                return "its export lacks the metadata table"
            verdict = database.execute("PRAGMA quick_check(1)").fetchone()
    except (sqlite3.Error, UnicodeDecodeError):
        return "its export is no whole SQLite file"
    return None if verdict == ("ok",) else "its export is no whole SQLite file"


def _connect(export: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{export.absolute().as_uri()}?mode=ro", uri=True)
