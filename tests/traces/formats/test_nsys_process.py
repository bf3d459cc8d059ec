"""nsys is started with few words of our environment, no shell, and never waited for without an end."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from types import FrameType

import pytest

from tests.recordings.inputs import changed
from tests.recordings.nsys import EXPORTS_WELL, desk
from traces.errors import DamagedTrace, ExportFailed, NsysUnavailable
from traces.formats import nsys_tool, sqlite_tables
from traces.formats.nsys_tool import clean_environment, find_nsys
from traces.formats.sqlite_tables import SqliteTables
from traces.limits import Limit

SHORT = Limit(0.3, "seconds", "for a test")


def test_nsys_gets_what_it_needs_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("HF_TOKEN", "hunter2")
    here = desk(tmp_path, export=f'env >"$here/seen"; {EXPORTS_WELL}')
    here.export()
    seen = {line.partition("=")[0] for line in (here.nsys.folder / "seen").read_text().splitlines()}
    assert seen >= {"PATH", "HOME"}
    assert seen <= {*clean_environment(dict.fromkeys(seen, "")), "PWD", "OLDPWD", "SHLVL", "_"}


def test_a_name_that_a_shell_would_run_is_only_a_name(tmp_path: Path) -> None:
    here = desk(tmp_path)
    odd = here.report.rename(here.report.parent / "$(touch ran) `touch ran`; touch ran #' .nsys-rep")
    assert type(here)(odd, here.nsys, here.cache).export().is_file()
    assert list(tmp_path.rglob("ran")) == []


def test_an_export_without_an_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nsys_tool, "EXPORT_LIMIT", SHORT)
    here = desk(tmp_path, export='while :; do echo beat >>"$here/beats"; sleep 0.02; done & wait')
    refused = here.refusal()
    assert isinstance(refused, ExportFailed)
    assert "did not finish" in str(refused)
    heard = (here.nsys.folder / "beats").stat().st_size
    time.sleep(0.2)
    assert (here.nsys.folder / "beats").stat().st_size == heard


def test_an_nsys_that_never_tells_its_version_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nsys_tool, "ANSWER_LIMIT", SHORT)
    script = tmp_path / "nsys"
    script.write_text("#!/bin/sh\nsleep 600 & sleep 600\n")
    script.chmod(0o755)
    with pytest.raises(NsysUnavailable, match="is no nsys version"):
        find_nsys(str(script))


def test_an_nsys_without_memory_says_so(tmp_path: Path) -> None:
    here = desk(tmp_path, export='echo "terminate called: what(): std::bad_alloc" >&2; kill -6 $$')
    assert "ran out of memory" in str(here.refusal())


def test_a_query_without_an_end_hears_a_signal_and_a_value_has_a_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_tables, "_ALWAYS", 1 << 40)  # it is not ended for its length
    path = changed(
        tmp_path / "run.sqlite",
        "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT x FROM n WHERE x < 0",
        "CREATE VIEW wide AS SELECT zeroblob(500000000) AS x",
    )

    def up(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt), SqliteTables(path) as tables:
            tables.rows("endless", ["x"])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(DamagedTrace, match="too big"), SqliteTables(path) as tables:
        tables.rows("wide", ["x"])
