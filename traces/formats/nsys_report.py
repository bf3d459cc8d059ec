"""An nsys report before nsys is started: is it one, is it whole, and which nsys recorded it.

Layout as found in reports of 2020.3 to 2026.1: a text line at the start, the eight bytes `U3w[END]` at the
end, and shortly before them the version that recorded it (from 2023.4 on in the first line, too).
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from traces.errors import DamagedTrace, NotATrace, TraceNotFound

_REPORT: Final = b"NVIDIA Tegra Profiler Report"
_END: Final = b"U3w[END]"
_STREAM: Final = _END + b"NVIDIA Nsight Systems Stream"
_HEAD_BYTES: Final = 100
_TAIL_BYTES: Final = 4096
_VERSION_IN_TAIL: Final = re.compile(rb"(?<!\d)(20\d\d)\.(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_VERSION_IN_HEAD: Final = re.compile(re.escape(_REPORT) + rb" (20\d\d)@(\d{1,6})@(\d{1,6})@(\d{1,6})")


@dataclass(frozen=True, slots=True)
class ReportHeader:
    """`collector_version`: the nsys that recorded it, like `2022.4.2.1`; None where it does not say."""

    collector_version: str | None


def is_report(head: bytes) -> bool:
    """Whether a file with these first bytes is an `.nsys-rep` or `.qdrep`; the extension does not matter."""
    return head.startswith(_REPORT)


def is_stream(head: bytes) -> bool:
    """Whether a file with these first bytes is a `.qdstrm`: a recording not yet made into a report."""
    return head.startswith(_STREAM)


def read_header(path: Path) -> ReportHeader:
    """Read both ends of a report, a few KB however long it is.

    Raises `TraceNotFound` where it cannot be read, `NotATrace` where it is no report, and `DamagedTrace`
    where it is empty or its end is missing.
    """
    head, tail = _ends(path)
    if not head:
        raise DamagedTrace(f"{path} is empty. Copy it again from where it was recorded.")
    if is_stream(head):
        raise NotATrace(
            f"{path} is a raw stream (.qdstrm), not yet a report. "
            "Import it where it was recorded: QdstrmImporter -i run.qdstrm -o run.nsys-rep"
        )
    if not is_report(head):
        raise NotATrace(f"{path} is no nsys report. Give an .nsys-rep, a .qdrep or an SQLite export of one.")
    if not tail.endswith(_END):
        raise DamagedTrace(
            f"{path} is truncated: the end of the report is missing. "
            "Wait until it is written, or copy it again from where it was recorded."
        )
    versions = _VERSION_IN_TAIL.findall(tail)
    first = _VERSION_IN_HEAD.match(head)
    parts = versions[-1] if versions else first.groups() if first else None
    return ReportHeader(b".".join(parts).decode("ascii") if parts else None)


def _ends(path: Path) -> tuple[bytes, bytes]:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            size_bytes = file.seek(0, os.SEEK_END)
            file.seek(max(0, size_bytes - _TAIL_BYTES))
            return head, file.read(_TAIL_BYTES)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise TraceNotFound(
            f"{path} cannot be read ({reason}). Check the path and its permissions."
        ) from None
