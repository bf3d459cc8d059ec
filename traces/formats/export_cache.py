"""A report -> its SQLite export, made by the user's nsys and kept in a folder of ours.

An export holds what the report holds: environment, command line, paths. So the folder and the files
are the user's alone, and their names say nothing.
"""

import hashlib
import json
import os
import shlex
import sqlite3
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Final

from traces.errors import (
    DamagedTrace,
    ExportFailed,
    MoeDiagError,
    NsysUnavailable,
    TraceNotFound,
    reason_of,
)
from traces.files.beneath import opened
from traces.files.cache_folder import not_writable
from traces.files.folder import Folder, is_own_file
from traces.files.scratch import cache_opened, only_run, scratch_folder
from traces.formats.nsys_schema import EXPORT_TABLES, SESSION_START
from traces.formats.nsys_tool import Ended, Nsys, find_nsys, run_export, session_start_ns
from traces.frozen import frozen
from traces.patterns import compiled, literal, numbers_in
from traces.progress import Progress

_REPORT: Final = b"NVIDIA Tegra Profiler Report"
_END: Final = b"U3w[END]"
_STREAM: Final = _END + b"NVIDIA Nsight Systems Stream"
_HEAD_BYTES: Final = 100
_TAIL_BYTES: Final = 4096
_EXPORT: Final = "export.sqlite"
_RECORD: Final = "record.json"
_MOST_OF_RECORD: Final = 1 << 16
_VERSION_IN_TAIL: Final = compiled(r"(?:^|[^\d])(20\d\d)\.(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_VERSION_IN_HEAD: Final = compiled(
    literal(_REPORT.decode()) + r" (20\d\d)@(\d{1,6})@(\d{1,6})@(\d{1,6})"
)


def is_report(head: bytes) -> bool:
    """Whether a file with these first bytes is an `.nsys-rep` or `.qdrep`; the extension does not
    matter.
    """
    return head.startswith(_REPORT)


def is_stream(head: bytes) -> bool:
    """Whether a file with these first bytes is a `.qdstrm`: a recording not yet made into a
    report.
    """
    return head.startswith(_STREAM)


def collector_version(path: Path) -> str | None:
    """The nsys that recorded a report, like `2022.4.2.1`, by both its ends; None where it does not
    say.

    Raises `TraceNotFound` where it cannot be read, and `DamagedTrace` where its end is missing.
    """
    try:
        with opened(path) as file:
            head = file.read(_HEAD_BYTES)
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except OSError as error:
        raise TraceNotFound(
            f"{path} cannot be read ({reason_of(error)}). Check the path and its permissions."
        ) from None
    if not tail.endswith(_END):
        raise DamagedTrace(
            f"{path} is truncated: the end of the report is missing. "
            "Wait until it is written, or copy it again from where it was recorded."
        )
    matches = [*_VERSION_IN_TAIL.finditer(tail.decode("latin-1"))]
    version = matches[-1] if matches else _VERSION_IN_HEAD.match(head.decode("latin-1"))
    if version:
        return ".".join(version.groups())
    return None


_NEWER: Final = compiled(r"missing required fields|Version number is invalid")
_DAMAGED: Final = compiled(r"(?i)LZ4|protobuf|Section Table Reference|Cannot read from stream")
_DISK_FULL: Final = compiled(r"(?i)disk is full|No space left")
_NO_MEMORY: Final = compiled(r"(?i)bad_alloc|out of memory|Cannot allocate memory")
_PATH: Final = compiled(r"'[^']*/[^']*'|\"[^\"]*/[^\"]*\"|\S*/\S*")
_MOST_WORDS: Final = 160


def by_hand(report: Path) -> str:
    """The line that exports the report on a machine with nsys, and the one to type here
    afterwards.
    """
    export = shlex.quote(report.with_suffix(".sqlite").name)
    return (
        f"nsys export --type sqlite --output {export} {shlex.quote(report.name)} "
        f"(where nsys is), then: moe-diag analyze {export}"
    )


def check_export(
    report: Path, collector: tuple[int, ...], nsys: Nsys, ended: Ended, output: Path
) -> None:
    """Return where `output` is a whole export of the report.

    `collector`: version that recorded it, () where unknown. Raises `DamagedTrace` where nsys could
    not decode the report, else `ExportFailed`.
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
    unreadable = suppress(sqlite3.Error, UnicodeDecodeError)
    # nothing beside it is looked at
    with unreadable, closing(_connect(export, "&immutable=1")) as database:
        row = database.execute(f"SELECT utcEpochNs FROM {SESSION_START}").fetchone()
        if row and isinstance(row[0], int):
            return row[0]
    return None


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
            f"Use a machine with more, or: {by_hand(report)}"
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
    lines = [*filter(None, map(str.strip, words.splitlines()))]
    line = next(
        (line for line in lines if line.startswith("Exportation error:")), lines[0] if lines else ""
    )
    line = _PATH.sub("…", line.removeprefix("Exportation error:").strip())
    shown = "".join(filter(str.isprintable, line))
    return shown[:_MOST_WORDS].rstrip(". ") or "it gives no reason"


def _fault(export: Path) -> str | None:
    tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
    with suppress(sqlite3.Error, UnicodeDecodeError), closing(_connect(export)) as database:
        if frozenset(EXPORT_TABLES).isdisjoint(chain.from_iterable(database.execute(tables))):
            return "its export lacks the metadata table"
        if database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
            return None
    return "its export is no whole SQLite file"


def _connect(export: Path, how: str = "") -> sqlite3.Connection:
    return sqlite3.connect(f"{export.absolute().as_uri()}?mode=ro{how}", uri=True)


def exported(report: Path, *, nsys: str | None, cache_dir: Path, progress: Progress) -> Path:
    """The SQLite export of a report: from the cache where it is surely this one, else exported now.

    `nsys`: the program or its folder, None to look for one. Nothing is written outside `cache_dir`.
    Raises what `collector_version` raises; `NsysUnavailable` where nsys is absent or too old,
    `OutputNotWritable` where `cache_dir` is, `DamagedTrace` and `ExportFailed` where nsys fails.
    """
    version = collector_version(report)
    collector = numbers_in(version or "")
    tool = _able_nsys(report, collector, nsys)
    source = _source(report, tool)
    key = hashlib.sha256(os.fsencode(report.resolve())).hexdigest()[:32]
    doing = f"waiting for another run, which exports {report.name}"
    with cache_opened(cache_dir) as cache, scratch_folder(cache) as scratch:
        kept = _Kept(cache, key)
        if _is_fresh(kept, source, tool, report, scratch):
            return kept.export
        with only_run(cache, key, lambda: progress(doing, None)):
            if _is_fresh(kept, source, tool, report, scratch):  # the other run made it
                return kept.export
            output = scratch.path / _EXPORT
            ended = run_export(tool, report, output, progress)
            progress(f"checking the export of {report.name}", None)
            check_export(report, collector, tool, ended, output)
            if _source(report, tool) != source:
                raise DamagedTrace(
                    f"{report} changed while it was exported. Wait until it is written, then try "
                    f"again."
                )
            _keep(kept, source, scratch)
    return kept.export


@frozen
class _Kept:
    """An entry of the cache: an export, and what it was made from in a file of the same name."""

    cache: Folder
    key: str

    @property
    def export(self) -> Path:
        return self.cache.path / self.export_name

    @property
    def export_name(self) -> str:
        return f"{self.key}.sqlite"

    @property
    def record_name(self) -> str:
        return f"{self.key}.json"


def _able_nsys(report: Path, collector: tuple[int, ...], explicit: str | None) -> Nsys:
    """An nsys that may open the report. A newer patch of one quarter is tried: nsys says if it
    cannot.
    """
    try:
        nsys = find_nsys(explicit)
    except NsysUnavailable as error:
        raise NsysUnavailable(f"{report} needs nsys: {error} Or: {by_hand(report)}") from None
    if collector[:2] > nsys.version[:2]:
        recorded = ".".join(map(str, collector[:3]))
        raise NsysUnavailable(
            f"{report} was recorded by nsys {recorded}, and nsys {nsys.release} here is too old to "
            f"read it. Give nsys {recorded} or newer with --nsys PATH, or: {by_hand(report)}"
        )
    return nsys


def _record(source: dict[str, object], export: Path) -> dict[str, object]:
    return {**source, **_stamp("export", export), "session_start_ns": start_of_export_ns(export)}


def _is_fresh(
    kept: _Kept, source: dict[str, object], nsys: Nsys, report: Path, scratch: Folder
) -> bool:
    """Whether the kept export is of this very report by this very nsys; any doubt is a no."""
    try:
        if not is_own_file(kept.cache.found(kept.export_name)):
            return False
        expected = _record(source, kept.export)
        is_ours = json.loads(kept.cache.read_own(kept.record_name, _MOST_OF_RECORD)) == expected
    except (OSError, ValueError):
        return False
    start_ns = expected["session_start_ns"]
    return (
        is_ours
        and start_ns is not None
        and start_ns == session_start_ns(nsys, report, scratch.path)
    )


def _keep(kept: _Kept, source: dict[str, object], scratch: Folder) -> None:
    """Move an export in, then its record; killed in between, the old record does not fit the new
    export.
    """
    try:
        output = scratch.path / _EXPORT
        output.chmod(0o600)
        scratch.write_new(_RECORD, json.dumps(_record(source, output), indent=1).encode(), 0o600)
        scratch.move(_EXPORT, kept.cache, kept.export_name)
        scratch.move(_RECORD, kept.cache, kept.record_name)
    except OSError as error:
        raise not_writable(kept.cache.path, error) from None


def _source(report: Path, nsys: Nsys) -> dict[str, object]:
    try:
        return {**_stamp("report", report), "nsys": nsys.text}
    except OSError:
        raise DamagedTrace(f"{report} went away while it was read. Check the path.") from None


def _stamp(name: str, path: Path) -> dict[str, object]:
    status = path.stat()
    return {f"{name}_size_bytes": status.st_size, f"{name}_mtime_ns": status.st_mtime_ns}
