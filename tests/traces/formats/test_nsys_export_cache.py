"""When a kept export is used again, and what stands in the cache folder."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.hostile.killed import left_by_a_killed_run
from tests.recordings.nsys import START_NS, Desk, contents, desk
from traces.files.aside import aside
from traces.files.folder import open_folder


@pytest.fixture
def kept(tmp_path: Path) -> Desk:
    """A report that was exported once."""
    here = desk(tmp_path)
    here.export()
    assert here.nsys.exports == 1
    return here


def test_a_kept_export_is_used_again(kept: Desk) -> None:
    first = contents(kept.cache)
    assert kept.export().is_file()
    assert kept.nsys.exports == 1
    assert contents(kept.cache) == first


def test_a_report_written_anew_is_exported_again(kept: Desk) -> None:
    os.utime(kept.report, ns=(0, 1))
    kept.export()
    assert kept.nsys.exports == 2


@pytest.mark.parametrize(
    "info", ['{"SessionStartTime": {"Nanoseconds since epoch": "5"}}', "{}", "[1]", "no JSON"]
)
def test_another_or_no_session_start_exports_again(kept: Desk, info: str) -> None:
    (kept.nsys.folder / "info.json").write_text(info)
    kept.export()
    assert kept.nsys.exports == 2


@pytest.mark.parametrize("record", ["", "[]", "{", '{"report_size_bytes": 1}'])
def test_a_record_that_cannot_be_trusted_exports_again(kept: Desk, record: str) -> None:
    kept.export().with_suffix(".json").write_text(record)
    kept.export()
    assert kept.nsys.exports == 2


def test_what_a_killed_run_left_goes_with_the_next_one_whatever_the_clock_says(kept: Desk) -> None:
    left = left_by_a_killed_run(kept.cache)
    with open_folder(kept.cache) as cache, aside(cache) as alive:
        (kept.cache / ".moe-diag-key.lock").touch()
        in_a_year = time.time() + 365 * 24 * 3600
        os.utime(left / "export.sqlite", (in_a_year, in_a_year))
        kept.export()
        assert not left.exists()
        assert alive.path.exists()
    assert len(list(kept.cache.iterdir())) == 2


def test_what_a_killed_run_of_another_machine_left_goes_after_a_day(
    kept: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days in (2, -2):  # from now: a clock that was set back
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr("traces.files.aside._machine", lambda: "00000000")
            left = left_by_a_killed_run(kept.cache)
        kept.export()
        assert left.is_dir()
        then = time.time() - days * 24 * 3600
        for path in (left, *left.iterdir()):
            os.utime(path, (then, then))
        kept.export()
        assert not left.exists()


def test_without_locks_what_is_young_stays(kept: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr("traces.files.aside.fcntl.flock", no_locks)
    os.utime(kept.report, ns=(0, 1))
    with open_folder(kept.cache) as cache, aside(cache) as alive:
        kept.export()
        assert alive.path.exists()
    assert kept.nsys.exports == 2
    assert len(list(kept.cache.iterdir())) == 2


def test_runs_at_once_on_one_report_export_it_once(tmp_path: Path) -> None:
    here = desk(tmp_path, export='sleep 0.3; cat "$here/good.sqlite" >"$out"')
    told: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        exports = set(pool.map(lambda _: here.export(lambda doing, *_: told.append(doing)), range(4)))
    assert here.nsys.exports == 1
    assert any(doing.startswith("waiting for another run") for doing in told)
    assert {path.name for path in here.cache.iterdir()} == {
        path.name for e in exports for path in (e, record(e))
    }


def test_the_cache_is_the_users_alone_and_names_no_folder(kept: Desk) -> None:
    export = kept.export()
    assert stat.S_IMODE(kept.cache.stat().st_mode) == 0o700
    assert stat.S_IMODE(export.stat().st_mode) == stat.S_IMODE(record(export).stat().st_mode) == 0o600
    assert all(part not in path for path in contents(kept.cache) for part in ("run", "nsys"))
    told = json.loads(record(export).read_text())
    assert told["session_start_ns"] == START_NS
    assert str(kept.report.parent) not in json.dumps(told)


def record(export: Path) -> Path:
    return export.with_suffix(".json")
