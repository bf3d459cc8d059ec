"""A stand-in for nsys and for its reports: small enough to fail in every way nsys was seen to fail."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from traces.errors import MoeDiagError
from traces.formats.export_cache import exported
from traces.progress import Progress, silent

START_NS = 1_700_000_000_123_456_789

_SCRIPT = """#!/bin/sh
here={here}
if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version {version}"; exit 0; fi
if [ "$2" = --help ]; then cat "$here/help" 2>/dev/null; exit 0; fi
echo "$@" >>"$here/calls"
for word in "$@"; do case $word in --output=*) out=${{word#--output=}} ;; esac; done
if [ "$2" = --type=info ]; then cat "$here/info.json" >"$out"; exit 0; fi
echo "what nsys prints belongs to nobody's screen"
{export}
"""

EXPORTS_WELL = 'cat "$here/good.sqlite" >"$out"'


@dataclass(frozen=True)
class FakeNsys:
    """A shell script that answers as nsys does and writes down what it was asked."""

    folder: Path

    @property
    def path(self) -> str:
        return str(self.folder / "nsys")

    @property
    def exports(self) -> int:
        calls = self.folder / "calls"
        return calls.read_text().split().count("--type=sqlite") if calls.exists() else 0

    def asked_for(self, option: str) -> bool:
        """Whether an export was asked for with this option."""
        return option in (self.folder / "calls").read_text().split()

    def write(self, export: str = EXPORTS_WELL, version: str = "2022.4.2.1-df9881f") -> None:
        script = Path(self.path)
        script.write_text(_SCRIPT.format(here=f"'{self.folder}'", version=version, export=export))
        script.chmod(0o755)

    def tell_start(self, start_ns: int) -> None:
        info = {"SessionStartTime": {"Nanoseconds since epoch": str(start_ns)}}
        (self.folder / "info.json").write_text(json.dumps(info))


def fake_nsys(folder: Path, export: str = EXPORTS_WELL, version: str = "2022.4.2.1-df9881f") -> FakeNsys:
    folder.mkdir()
    nsys = FakeNsys(folder)
    nsys.write(export, version)
    nsys.tell_start(START_NS)
    write_export(folder / "good.sqlite", START_NS)
    write_export(folder / "without_metadata.sqlite", None)
    return nsys


def write_export(path: Path, start_ns: int | None) -> None:
    """A database with the tables the cache looks at; without a start, one as a failed export leaves it."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        if start_ns is not None:
            database.execute("CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT)")
            database.execute("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)")
            database.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", (start_ns,))


def write_report(path: Path, collector: str = "2022.4.2.1-df9881f") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    body = b"NVIDIA Tegra Profiler Report 1.\n" + bytes(5000) + collector.encode() + bytes(300)
    path.write_bytes(body + b"U3w[END]")
    return path


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder with its SHA-256; empty where there is no folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@dataclass(frozen=True)
class Desk:
    """A report, an nsys and a cache folder, each in a folder of its own."""

    report: Path
    nsys: FakeNsys
    cache: Path

    def export(self, progress: Progress = silent) -> Path:
        return exported(self.report, nsys=self.nsys.path, cache_dir=self.cache, progress=progress)

    def refusal(self) -> MoeDiagError:
        """The error of an export that must fail: one line with the path as typed, and nothing left behind."""
        before = contents(self.report.parent)
        with pytest.raises(MoeDiagError) as caught:
            self.export()
        assert "\n" not in str(caught.value)
        assert str(self.report) in str(caught.value)
        assert contents(self.report.parent) == before
        assert not self.cache.is_dir() or not list(self.cache.iterdir())
        return caught.value


def desk(folder: Path, collector: str = "2022.4.2.1-df9881f", export: str = EXPORTS_WELL) -> Desk:
    report = write_report(folder / "runs" / "run.nsys-rep", collector)
    return Desk(report, fake_nsys(folder / "nsys folder", export), folder / "cache")
