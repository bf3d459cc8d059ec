"""`--ticket DIR`: the whole of it or nothing, and never over something that is there."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from diagnoser.cli import run
from diagnoser.output.ticket import plan_ticket, write_ticket
from reports.content.page import Detail
from reports.result.json_text import render_json
from reports.result.read import typed
from tests.doubles.sides import as_json, result_of_run, run_of
from tests.doubles.writers import marked
from tests.read_back import rendering
from traces.files.folder import Folder
from traces.files.moved import move_to_new

Json = dict[str, Any]
FILES = ["run_manifest.json", "run_report.html", "run_report.json", "run_report.md", "run_report.png"]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Json:
    return result_of_run(tmp_path_factory.mktemp("ticket") / "run.sqlite")


@pytest.fixture(autouse=True)
def _light(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "real" not in request.node.name:
        marked(monkeypatch)


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def texts(folder: Path) -> dict[str, str]:
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.is_file()}


def test_a_ticket_holds_the_report_its_picture_and_a_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, folder = run_of(tmp_path / "run.sqlite"), tmp_path / "perf-1234"
    assert run(["analyze", str(trace), "--ticket", str(folder)]) == 0
    assert names(folder) == FILES
    out, err = capsys.readouterr()
    assert (out.splitlines()[0], err) == (f"Ticket in {folder}:", "")
    assert sorted(line.strip() for line in out.splitlines()[1:]) == FILES
    manifest = json.loads((folder / "run_manifest.json").read_text(encoding="utf-8"))
    assert manifest.pop("files") == [
        {"name": name, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name in ("run_report.md", "run_report.html", "run_report.json", "run_report.png")
        for data in [(folder / name).read_bytes()]
    ]
    assert manifest == {
        "tool": {"name": "moe-diag", "version": diagnoser.__version__},
        "schema_version": "1.0",
        "runs": ["run.sqlite"],
        "redacted": True,
    }
    assert folder.stat().st_mode & 0o777 == 0o777 & ~mask()


def mask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


@pytest.mark.parametrize("name", FILES)
def test_any_file_in_the_way_stops_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], document: Json, name: str
) -> None:
    result, folder = as_json(tmp_path / "run.json", document), tmp_path / "t"
    folder.mkdir()
    (folder / name).symlink_to("nowhere")
    assert run(["report", str(result), "--ticket", str(folder)]) == 2
    assert f"{name} exists" in capsys.readouterr().err
    assert names(folder) == [name]
    (folder / name).unlink()
    (folder / name).mkdir()
    assert run(["report", str(result), "--ticket", str(folder), "--force-overwrite"]) == 2
    assert f"{name} is a folder" in capsys.readouterr().err
    assert names(folder) == [name]


def test_a_place_that_cannot_be_is_said_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    trace = str(tmp_path / "none.sqlite")
    assert run(["analyze", trace, "--ticket", str(tmp_path / "file")]) == 2
    assert "file is no folder. Give another place with --ticket." in capsys.readouterr().err
    assert run(["analyze", trace, "--ticket", str(tmp_path / "none" / "t")]) == 3
    assert "none is no folder. Create it" in capsys.readouterr().err
    assert names(tmp_path) == ["file"]


FAILURES = [OSError(errno.ENOSPC, "full"), OSError(errno.EROFS, "read-only"), KeyboardInterrupt()]


@pytest.mark.parametrize("failure", FAILURES, ids=["full", "read_only", "ctrl_c"])
@pytest.mark.parametrize("there", ["nothing", "a folder", "an older ticket"])
@pytest.mark.parametrize("step", range(1, 6))
@pytest.mark.parametrize("what", ["write", "move"])
def test_whatever_stops_it_the_place_is_as_it_was(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    document: Json,
    failure: BaseException,
    there: str,
    step: int,
    what: str,
) -> None:
    folder, older = tmp_path / "t", {name: f"old {name}" for name in [*FILES, "notes.txt"]}
    if there != "nothing":
        folder.mkdir()
    for name, content in older.items() if there == "an older ticket" else ():
        (folder / name).write_text(content, encoding="utf-8")
    ticket = plan_ticket(folder, "run", "markdown", force=True)
    count = 0

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **how: Any) -> Any:
            nonlocal count
            count += what == "move" or args[1] in ticket.names
            if count == step:
                raise failure
            return real(*args, **how)

        return call

    if what == "write":
        monkeypatch.setattr(Folder, "write_new", failing(Folder.write_new))
    elif there == "nothing":
        monkeypatch.setattr(Folder, "move", failing(Folder.move))
        count = step - 1
    else:
        monkeypatch.setattr("traces.files.moved.move_to_new", failing(move_to_new))
    with pytest.raises((diagnoser.InputError, KeyboardInterrupt)) as stopped:
        write_ticket(ticket, typed(document), lambda form: form)
    if isinstance(failure, OSError):
        assert "cannot be written" in str(stopped.value)
        assert "\n" not in str(stopped.value)
    assert names(tmp_path) == ([] if there == "nothing" else ["t"])
    if there != "nothing":
        assert texts(folder) == (older if there == "an older ticket" else {})
        assert len(names(folder)) == len(texts(folder))


def test_a_file_that_appears_meanwhile_stays(tmp_path: Path, document: Json) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    ticket = plan_ticket(folder, "run", "markdown", force=False)

    def render(form: str) -> str:
        if form == "png":
            (folder / "run_report.json").write_text("mine", encoding="utf-8")
        return form

    with pytest.raises(diagnoser.UsageError, match=r"run_report\.json exists"):
        write_ticket(ticket, typed(document), render)
    assert texts(folder) == {"run_report.json": "mine"}


def test_the_real_ticket_has_a_page_a_picture_and_the_very_document(tmp_path: Path) -> None:
    trace, folder = run_of(tmp_path / "run.sqlite"), tmp_path / "t"
    assert run(["analyze", str(trace), "--no-megatron", "--ticket", str(folder)]) == 0
    assert (folder / "run_report.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    page = (folder / "run_report.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 40
    assert page.splitlines()[-1].startswith("Attached: <code>run_report.html</code>, ")
    whole = diagnoser.analyze(trace, ask_megatron=False).to_dict()
    whole["command"] = json.loads((folder / "run_report.json").read_text(encoding="utf-8"))["command"]
    assert (folder / "run_report.json").read_text(encoding="utf-8") == render_json(whole)
    html = (folder / "run_report.html").read_text(encoding="utf-8")
    assert html == rendering.text(whole, "html", Detail.FULL)
    assert html.lower().startswith("<!doctype html>")
