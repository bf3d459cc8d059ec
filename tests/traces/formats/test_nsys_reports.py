"""A report before nsys is started: what it is, and which nsys would export it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recordings.nsys import desk, fake_nsys, write_report
from traces.errors import DamagedTrace, NsysUnavailable, OutputNotWritable
from traces.files.cache_folder import default_cache_dir
from traces.formats import nsys_tool
from traces.formats.export_cache import collector_version, exported, is_report, is_stream
from traces.formats.nsys_tool import find_nsys
from traces.progress import silent

STREAM = b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-df9881f"


@pytest.fixture
def no_nsys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NSYS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nsys_tool, "_INSTALLED", ())


def test_a_report_tells_which_nsys_recorded_it(tmp_path: Path) -> None:
    assert collector_version(write_report(tmp_path / "r.nsys-rep")) == "2022.4.2.1"


def test_a_report_that_tells_it_only_in_the_first_line_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "new.nsys-rep"
    path.write_bytes(b"NVIDIA Tegra Profiler Report 2025@6@1@190-256137v0.\n" + bytes(9000) + b"U3w[END]")
    assert collector_version(path) == "2025.6.1.190"


def test_reports_and_streams_are_told_apart_by_their_first_bytes(tmp_path: Path) -> None:
    head = write_report(tmp_path / "r.nsys-rep").read_bytes()[:100]
    assert (is_report(head), is_stream(head)) == (True, False)
    assert (is_report(STREAM), is_stream(STREAM)) == (False, True)


def test_what_is_no_whole_report_is_refused_before_nsys_runs(tmp_path: Path) -> None:
    here = desk(tmp_path)
    here.report.write_bytes(b"NVIDIA Tegra Profiler Report 1.\n" + bytes(500) + b"U3w[END")
    refused = here.refusal()
    assert isinstance(refused, DamagedTrace)
    assert "truncated" in str(refused)
    assert not here.cache.exists()
    assert not (here.nsys.folder / "calls").exists()


def test_a_report_that_is_not_there_is_named(tmp_path: Path) -> None:
    here = desk(tmp_path)
    here.report.unlink()
    assert "No such file" in str(here.refusal())


@pytest.mark.usefixtures("no_nsys")
def test_without_nsys_the_line_to_type_elsewhere_is_given(tmp_path: Path) -> None:
    report = write_report(tmp_path / "run.nsys-rep")
    with pytest.raises(NsysUnavailable) as caught:
        exported(report, nsys=None, cache_dir=tmp_path / "cache", progress=silent)
    assert str(caught.value).startswith(str(report))
    assert "nsys export --type sqlite --output run.sqlite run.nsys-rep" in str(caught.value)
    assert "moe-diag analyze run.sqlite" in str(caught.value)


@pytest.mark.usefixtures("no_nsys")
def test_nsys_is_taken_from_the_option_then_the_environment_then_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    option, environment, path = (
        fake_nsys(tmp_path / name, version=f"{year}.1.1.1-aaa")
        for name, year in (("option", 2023), ("environment", 2024), ("path", 2025))
    )
    monkeypatch.setenv("PATH", f"{path.folder}:/usr/bin:/bin")
    assert find_nsys(None).version == (2025, 1, 1, 1)
    monkeypatch.setenv("NSYS", environment.path)
    assert find_nsys(None).text == "2024.1.1.1-aaa"
    assert find_nsys(option.path).release == find_nsys(str(option.folder)).release == "2023.1.1"


@pytest.mark.usefixtures("no_nsys")
def test_of_the_installed_ones_the_newest_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for release in ("2023.4.4", "2024.10.1", "2024.9.1"):
        (tmp_path / release).mkdir()
        fake_nsys(tmp_path / release / "bin", version=f"{release}.7-abc")
    monkeypatch.setattr(nsys_tool, "_INSTALLED", (f"{tmp_path}/*/bin/nsys",))
    assert find_nsys(None).release == "2024.10.1"


@pytest.mark.parametrize("given", ["absent", "good.sqlite", "silent"])
def test_an_nsys_named_wrongly_is_never_replaced_by_another(tmp_path: Path, given: str) -> None:
    nsys = fake_nsys(tmp_path / "nsys")
    (nsys.folder / "silent").write_text("#!/bin/sh\n")
    (nsys.folder / "silent").chmod(0o755)
    with pytest.raises(NsysUnavailable, match=f"--nsys names .*{given}"):
        find_nsys(str(nsys.folder / given))


def test_a_report_newer_than_nsys_is_refused_before_any_export(tmp_path: Path) -> None:
    here = desk(tmp_path, collector="2023.1.2.43-32377213v0")
    refused = here.refusal()
    assert isinstance(refused, NsysUnavailable)
    assert "2023.1.2" in str(refused)
    assert "2022.4.2" in str(refused)
    assert here.nsys.exports == 0


def test_the_cache_is_where_the_desktop_rules_put_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert default_cache_dir() == tmp_path / ".cache" / "moe-diag"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert default_cache_dir() == tmp_path / "elsewhere" / "moe-diag"


def test_a_cache_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    here = desk(tmp_path)
    here.cache.write_text("a file where the folder should be")
    with pytest.raises(OutputNotWritable, match=r"cannot write the cache folder .*cache .*--cache-dir DIR"):
        here.export()
