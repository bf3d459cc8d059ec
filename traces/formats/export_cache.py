"""A report -> its SQLite export, made by the user's nsys and kept in a folder of ours.

An export holds what the report holds: environment, command line, paths. So the folder and the files are the
user's alone, and their names say nothing.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from traces.errors import DamagedTrace, NsysUnavailable
from traces.files.cache_folder import not_writable, only_run, scratch_folder
from traces.formats.export_check import by_hand, check_export, start_of_export_ns
from traces.formats.nsys_report import read_header
from traces.formats.nsys_run import run_export, session_start_ns
from traces.formats.nsys_tool import Nsys, find_nsys
from traces.progress import Progress


@dataclass(frozen=True, slots=True)
class _Entry:
    """The two files of one report in the cache: its export, and what the export was made from."""

    export: Path
    record: Path


def exported(report: Path, *, nsys: str | None, cache_dir: Path, progress: Progress) -> Path:
    """The SQLite export of a report: from the cache where it is surely this one, else exported now.

    `nsys`: the program or its folder, None to look for one. Nothing is written outside `cache_dir`. Raises
    what `read_header` raises; `NsysUnavailable` where nsys is absent or too old, `OutputNotWritable` where
    `cache_dir` is, `DamagedTrace` and `ExportFailed` where nsys fails.
    """
    collector = _numbers(read_header(report).collector_version)
    tool = _able(report, collector, nsys)
    source = _source(report, tool)
    key = hashlib.sha256(os.fsencode(report.resolve())).hexdigest()[:32]
    entry = _Entry(cache_dir / f"{key}.sqlite", cache_dir / f"{key}.json")
    with scratch_folder(cache_dir) as scratch:
        if _is_fresh(entry, source, tool, report, scratch):
            return entry.export
        doing = f"waiting for another run, which exports {report.name}"
        with only_run(cache_dir, key, lambda: progress(doing, None)):
            if _is_fresh(entry, source, tool, report, scratch):  # the other run made it
                return entry.export
            output = scratch / "export.sqlite"
            ended = run_export(tool, report, output, progress)
            progress(f"checking the export of {report.name}", None)
            check_export(report, collector, tool, ended, output)
            if _source(report, tool) != source:
                raise DamagedTrace(
                    f"{report} changed while it was exported. Wait until it is written, then try again."
                )
            _keep(entry, source, output, scratch)
    return entry.export


def _able(report: Path, collector: tuple[int, ...], explicit: str | None) -> Nsys:
    """An nsys that may open the report. A newer patch of one quarter is tried: nsys says if it cannot."""
    try:
        nsys = find_nsys(explicit)
    except NsysUnavailable as error:
        raise NsysUnavailable(f"{report} needs nsys: {error} Or: {by_hand(report)}") from None
    if collector[:2] > nsys.version[:2]:
        recorded = ".".join(map(str, collector[:3]))
        raise NsysUnavailable(
            f"{report} was recorded by nsys {recorded}, and nsys {nsys.release} here is too old to read it. "
            f"Give nsys {recorded} or newer with --nsys PATH, or: {by_hand(report)}"
        )
    return nsys


def _is_fresh(entry: _Entry, source: dict[str, object], nsys: Nsys, report: Path, scratch: Path) -> bool:
    """Whether the kept export is of this very report by this very nsys; any doubt is a no."""
    try:
        kept = json.loads(entry.record.read_text(encoding="utf-8"))
        start_ns = start_of_export_ns(entry.export)
        expected = {**source, **_stamp("export", entry.export), "session_start_ns": start_ns}
    except (OSError, ValueError):
        return False
    return kept == expected and start_ns is not None and start_ns == session_start_ns(nsys, report, scratch)


def _keep(entry: _Entry, source: dict[str, object], output: Path, scratch: Path) -> None:
    """Move an export in, then its record; killed in between, the old record does not fit the new export."""
    try:
        output.chmod(0o600)
        record = {**source, **_stamp("export", output), "session_start_ns": start_of_export_ns(output)}
        written = scratch / "record.json"
        written.write_text(json.dumps(record, indent=1), encoding="utf-8")
        written.chmod(0o600)
        output.replace(entry.export)
        written.replace(entry.record)
    except OSError as error:
        raise not_writable(entry.export.parent, error) from None


def _source(report: Path, nsys: Nsys) -> dict[str, object]:
    try:
        return {**_stamp("report", report), "nsys": nsys.text}
    except OSError:
        raise DamagedTrace(f"{report} went away while it was read. Check the path.") from None


def _stamp(name: str, path: Path) -> dict[str, object]:
    found = path.stat()
    return {f"{name}_size_bytes": found.st_size, f"{name}_mtime_ns": found.st_mtime_ns}


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(map(int, version.split("."))) if version else ()
