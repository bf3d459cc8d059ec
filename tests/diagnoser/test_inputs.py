"""What a command line names: files, folders of recordings, patterns; each recording counts once."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from diagnoser.cli import run
from diagnoser.running.inputs.named import recordings_in, traces_named
from traces.errors import TraceNotFound, UsageError

KINETO = json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": []})


def made(folder: Path, names: Sequence[str], text: str = "some") -> list[Path]:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in names]


def test_a_folder_stands_for_its_recordings_by_name(tmp_path: Path) -> None:
    traces = made(tmp_path, ["a.sqlite", "b.nsys-rep", "c.qdrep"])
    made(tmp_path, ["notes.txt", ".hidden.sqlite", "run.yaml"])
    made(tmp_path, ["d.json"], KINETO)
    (tmp_path / "e.json.gz").write_bytes(gzip.compress(KINETO.encode()))
    made(tmp_path, ["result.json"], '{"schema_version": "1.0"}')
    made(tmp_path, ["run_moe-diag.perfetto.json"], '{"otherData":{"name":"moe-diag"},"traceEvents":[]}')
    (tmp_path / "deeper").mkdir()
    assert traces_named([tmp_path]) == [*traces, tmp_path / "d.json", tmp_path / "e.json.gz"]


def test_an_export_beside_its_report_is_read_and_counts_once(tmp_path: Path) -> None:
    report, export = made(tmp_path, ["rank0.nsys-rep", "rank0.sqlite"])
    os.utime(report, ns=(0, 1_000))
    os.utime(export, ns=(0, 2_000))
    assert recordings_in(tmp_path) == [export]
    os.utime(report, ns=(0, 3_000))  # recorded again since
    assert recordings_in(tmp_path) == [report]


def test_a_quoted_pattern_stands_for_what_matches(tmp_path: Path) -> None:
    first, second, _ = made(tmp_path / "ranks", ["a.sqlite", "b.sqlite", "c.nsys-rep"])
    assert traces_named([tmp_path / "ranks" / "*.sqlite"]) == [first, second]
    assert traces_named([tmp_path / "**" / "?.sqlite"]) == [first, second]
    assert len(traces_named([tmp_path / "*"])) == 3  # the folder that matches


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    odd, _ = made(tmp_path, ["run[0].sqlite", "run0.sqlite"])
    assert traces_named([odd]) == [odd]


def test_a_file_counts_once_where_its_folder_is_given_too(tmp_path: Path) -> None:
    one, two = made(tmp_path, ["a.sqlite", "b.sqlite"])
    assert traces_named([two, tmp_path, tmp_path / "*.sqlite"]) == [two, one]
    with pytest.raises(UsageError, match="is given twice"):
        traces_named([one, tmp_path / "." / "a.sqlite"])


def test_what_holds_no_recording_is_an_error_that_says_what_to_type(tmp_path: Path) -> None:
    made(tmp_path, ["notes.txt"])
    with pytest.raises(TraceNotFound, match="has no recordings"):
        traces_named([tmp_path])
    with pytest.raises(TraceNotFound, match="matches no file"):
        traces_named([tmp_path / "*.sqlite"])
    made(tmp_path / "rank0", ["a.sqlite"])
    with pytest.raises(TraceNotFound, match=r"Type moe-diag analyze '.*/\*'"):
        traces_named([tmp_path])


@pytest.mark.parametrize(
    "command", ["analyze", "compare", "merge", "doctor", "report", "history add", "check-config"]
)
def test_links_in_a_circle_are_an_input_that_cannot_be_read(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MOE_DIAG_HISTORY", str(tmp_path / "history.sqlite"))
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for place in (tmp_path / "a", tmp_path / "a" / "run.sqlite"):
        given = [str(place)] * (2 if command == "compare" else 1)
        assert run([*command.split(), *given]) == 3
        assert str(place) in capsys.readouterr().err


@pytest.mark.parametrize("command", ["analyze", "compare", "merge", "doctor", "check-config"])
def test_a_link_that_may_not_be_read_is_an_input_that_cannot_be_read(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As that of the root of another user's process."""

    def refused(path: object, **how: object) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "root").symlink_to(tmp_path / "nowhere")
    monkeypatch.setattr(os, "readlink", refused)
    place = str(tmp_path / "root" / "run.sqlite")
    assert run([command, *[place] * (2 if command == "compare" else 1)]) == 3
    assert place in capsys.readouterr().err
