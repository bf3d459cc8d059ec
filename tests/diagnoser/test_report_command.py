"""`moe-diag report` and the formats of every command, as a user meets them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from diagnoser.cli import run
from diagnoser.output import base_name
from reports.result.json_text import render_json
from tests.configurations.check import SCRIPT, written
from tests.doubles.sides import as_json, result_of_run, run_of
from tests.doubles.writers import marked
from tests.places import ROOT
from tests.read_back.rendering import text
from tests.read_back.terminal import Tty

Json = dict[str, Any]
GIVEN = {"gpu": "H100", "core_version": "0.16.1"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    """A document of each kind."""
    folder = tmp_path_factory.mktemp("results")
    base, new = result_of_run(folder / "base.sqlite"), result_of_run(folder / "new.sqlite")
    script = written(folder, "run.sh", SCRIPT)
    return {
        "analysis": base,
        "comparison": diagnoser.compare(base, new).to_dict(),
        "configuration": diagnoser.check_config(script, about=GIVEN, ask_megatron=False).to_dict(),
    }


def kept(folder: Path, document: Json, name: str = "run.json") -> Path:
    """A result as `-f json -o` writes it."""
    path = folder / name
    path.write_text(render_json(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(("kind", "extensions"), [
    ("analysis", ["html", "json", "md", "pdf", "perfetto.json", "png", "svg", "txt"]),
    ("comparison", ["html", "json", "md", "pdf", "perfetto.json", "png", "svg", "txt"]),
    ("configuration", ["html", "json", "md", "txt"]),
])  # fmt: skip
def test_every_format_lies_beside_the_result_under_its_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    results: dict[str, Json],
    kind: str,
    extensions: list[str],
) -> None:
    marked(monkeypatch)
    path = kept(tmp_path, results[kind], "mine.json")
    named = {"txt": "text", "md": "markdown", "perfetto.json": "perfetto"}
    forms = [word for one in extensions for word in ("-f", named.get(one, one))]
    assert run(["report", str(path), *forms, "--full", "-o", "."]) == 0
    ending = "compared" if kind == "comparison" else "moe-diag"
    for extension in extensions:
        said = (tmp_path / f"mine_{ending}.{extension}").read_text(encoding="utf-8")
        assert said == f"{kind} {named.get(extension, extension)} full\n"
    assert len(list(tmp_path.iterdir())) == len(extensions) + 1


@pytest.mark.parametrize(
    ("name", "form"),
    [("x.md", "markdown"), ("x.perfetto.json", "perfetto"), ("x.jira.txt", "jira"), ("x", "text")],
)
def test_without_a_format_it_is_as_the_name_of_the_file_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: dict[str, Json], name: str, form: str
) -> None:
    marked(monkeypatch)
    path = kept(tmp_path, results["analysis"])
    assert run(["report", str(path), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_text(encoding="utf-8") == f"analysis {form} first\n"


def test_markdown_for_jira_is_a_flavor(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    results: dict[str, Json],
) -> None:
    marked(monkeypatch)
    path = str(kept(tmp_path, results["analysis"]))
    assert run(["report", path, "-f", "markdown", "--flavor", "jira"]) == 0
    assert run(["report", path, "-f", "markdown", "--flavor", "github"]) == 0
    assert capsys.readouterr().out == "analysis jira first\nanalysis markdown first\n"
    assert run(["report", path, "-f", "markdown", "--flavor", "jira", "-o", "."]) == 0
    assert (tmp_path / "run_moe-diag.jira.txt").exists()
    assert run(["report", path, "--flavor", "jira"]) == 2
    assert "Type the same line with -f markdown --flavor jira" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["png", "pdf"])
@pytest.mark.parametrize("words", [["analyze", "run.sqlite"], ["report", "run.json"], ["demo", "memory"]])
def test_bytes_never_go_to_a_terminal(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    results: dict[str, Json],
    words: list[str],
    form: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    run_of(tmp_path / "run.sqlite")
    kept(tmp_path, results["analysis"])
    assert run([*words, "-f", form]) == 2
    out, err = capsys.readouterr()
    base = {"demo": "memory"}.get(words[0], "run")
    assert (out, err.count("\n")) == ("", 1)
    assert f"Type the same line with -o {base}_moe-diag.{form}" in err
    assert run([*words, "-f", form, "-f", "text"]) == 2
    assert "with -o FOLDER/" in capsys.readouterr().err


def test_a_judged_configuration_names_the_formats_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], results: dict[str, Json]
) -> None:
    path = kept(tmp_path, results["configuration"])
    for words in (["-f", "perfetto"], ["-o", str(tmp_path / "x.svg")]):
        assert run(["report", str(path), *words]) == 2
        assert "Give one of html, json, markdown, text." in capsys.readouterr().err
    assert run(["report", str(path), "--ticket", str(tmp_path / "ticket")]) == 2
    assert "a ticket is of a trace or of two" in capsys.readouterr().err
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.json"]


def bad(name: str, change: Callable[[Json], object]) -> Callable[[Path, Json], Path]:
    def make(folder: Path, document: Json) -> Path:
        return as_json(folder / f"{name}.json", change(json.loads(json.dumps(document))))

    make.__name__ = name
    return make


def missing(folder: Path, _: Json) -> Path:
    return folder / "none.json"


def a_folder(folder: Path, _: Json) -> Path:
    (folder / "runs.json").mkdir()
    return folder / "runs.json"


def a_pipe(folder: Path, _: Json) -> Path:
    os.mkfifo(folder / "pipe.json")
    return folder / "pipe.json"


def a_trace(folder: Path, _: Json) -> Path:
    return run_of(folder / "run.sqlite")


def cut_gzip(folder: Path, document: Json) -> Path:
    path = as_json(folder / "run.json.gz", document)
    path.write_bytes(path.read_bytes()[:-100])
    return path


def nested(folder: Path, _: Json) -> Path:
    return written(folder, "nested.json", '{"schema_version": "1.0", "ranks": ' + "[" * 200_000)


BAD: list[tuple[Callable[[Path, Json], Path], str]] = [
    *((missing, "does not exist"), (a_folder, "is a folder"), (a_pipe, "is a pipe or a device")),
    (a_trace, "is no whole JSON. Make a result of a trace: moe-diag analyze TRACE -f json"),
    *((cut_gzip, "is no whole JSON"), (nested, "is no whole JSON")),
    (bad("list", lambda _: [1]), "it is no result of moe-diag"),
    (bad("half_a_word", lambda said: {**said, "framework": "\ud800"}), "half a character stands where"),
]


@pytest.mark.parametrize(("make", "said"), BAD, ids=lambda one: getattr(one, "__name__", None))
def test_what_is_no_result_ends_in_one_line_and_leaves_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    results: dict[str, Json],
    make: Callable[[Path, Json], Path],
    said: str,
) -> None:
    path = make(tmp_path, results["analysis"])
    before = sorted(tmp_path.iterdir())
    for words in (["-f", "text"], ["--ticket", str(tmp_path / "ticket")]):
        assert run(["report", str(path), *words]) == 3
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith(f"moe-diag: {path}")
        assert said in err
    assert sorted(tmp_path.iterdir()) == before


def test_a_later_1_x_is_rendered_as_1_0_without_the_keys_that_it_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], results: dict[str, Json]
) -> None:
    later = {**results["analysis"], "schema_version": "1.7", "a_new_key": {"deep": [1, {}]}}
    path = kept(tmp_path, later)
    assert run(["report", str(path), "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == results["analysis"]
    assert run(["report", str(path)]) == 0
    assert capsys.readouterr().out == text(results["analysis"], "text")


def test_a_row_of_a_step_that_a_later_1_x_added_is_shown_as_other_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], results: dict[str, Json]
) -> None:
    later = json.loads(json.dumps(results["analysis"]))
    row = next(one for one in later["ranks"][0]["ledger"] if one["row"] == "compute.gemm")
    row["row"] = "a_new_kind.of_time"
    for form in ("text", "markdown", "html"):
        assert run(["report", str(kept(tmp_path, later)), "-f", form]) == 0
        assert "other time" in capsys.readouterr().out


def with_kernel(document: Json, name: str) -> Json:
    """The document of a run whose largest kernel has this name."""
    made: Json = json.loads(json.dumps(document))
    made["ranks"][0]["kernel_table"]["rows"][0]["name"] = name
    return made


def test_the_result_itself_is_never_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], results: dict[str, Json]
) -> None:
    path = kept(tmp_path, results["analysis"], "run_moe-diag.json")
    before = path.read_bytes()
    for place in (".", str(path), f"{tmp_path}/"):
        assert run(["report", str(path), "-f", "json", "-o", place, "--force-overwrite"]) == 2
        assert "is the input itself, which is never changed" in capsys.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("run.nsys-rep", "run"), ("run.json", "run"), ("run.json.gz", "run"), ("run_moe-diag.json", "run"),
        ("new_compared.json", "new"), ("run_report.json", "run"), ("run_moe-diag.sqlite", "run_moe-diag"),
        (".json", ".json"), ("_moe-diag.json", "_moe-diag"), ("run", "run"),
    ],
)  # fmt: skip
def test_a_name_loses_its_extension_and_what_ours_end_with(name: str, base: str) -> None:
    assert base_name(Path("folder") / name) == base


def test_a_result_in_the_place_of_a_trace_is_told_what_renders_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], results: dict[str, Json]
) -> None:
    path = kept(tmp_path, results["analysis"])
    assert run(["analyze", str(path)]) == 3
    assert run([str(path)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(f"is an earlier result, no trace. Type moe-diag report {path}")
    assert second.endswith(f"Type moe-diag report {path}")


def inside(words: list[list[str]], **environment: str) -> list[str]:
    """A Python that runs several commands of ours, one after the other."""
    program = f"from diagnoser.cli import run; print([run(words) for words in {words!a}])"
    return ["env", *(f"{key}={value}" for key, value in environment.items()), sys.executable, "-c", program]


def test_a_locale_that_knows_no_utf_8_still_gets_reports_and_files(
    tmp_path: Path, results: dict[str, Json]
) -> None:
    document = with_kernel(results["analysis"], "größe")
    path = str(kept(tmp_path, document))
    again, page = str(tmp_path / "again.json"), str(tmp_path / "page.md")
    commands = [["report", path], ["report", path, "-f", "png"], ["report", path, "-o", page]]
    commands += [["report", path, "-o", again], ["report", "--help"], ["report", str(tmp_path / "none.json")]]
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "NO_COLOR": "1"}
    done = subprocess.run(inside(commands, **plain), cwd=ROOT, capture_output=True)
    assert done.stdout.endswith(b"[0, 2, 0, 0, 0, 3]\n"), done.stderr
    assert b"SLOWED BY" in done.stdout
    assert b"\x1b" not in done.stdout + done.stderr
    assert done.stderr.count(b"\n") == 2
    assert Path(again).read_bytes() == Path(path).read_bytes()
    assert "größe" in Path(page).read_text(encoding="utf-8")


def test_no_foreign_name_moves_a_cursor_of_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: dict[str, Json]
) -> None:
    path = kept(tmp_path, with_kernel(results["analysis"], "a\x1b[2Jb\u009b31mc\u202ed\x07"))
    screen = Tty()
    monkeypatch.setattr("sys.stdout", screen)
    assert [run(["report", str(path), "-f", form]) for form in ("text", "markdown", "json")] == [0] * 3
    without_colours = re.sub(r"\x1b\[[0-9;]*m", "", screen.got())
    assert not {"\x1b", "\x07", "\u009b", "\u202e"} & {*without_colours}
    assert "\n" in without_colours


def test_a_result_that_was_kept_before_newer_keys_is_still_written_in_every_format_for_people(
    tmp_path: Path,
) -> None:
    """Of 2026-11-23: a simulated run whose gradients are reduced outside of compute, for 30 % of the step."""
    kept = ROOT / "tests" / "data" / "results" / "dense_2026_11_23.json.gz"
    for ending in ("txt", "md", "html"):
        assert run(["report", str(kept), "-o", str(tmp_path / f"kept.{ending}")]) == 0
    assert "SLOWED BY  data parallelism (30 %)" in (tmp_path / "kept.txt").read_text(encoding="utf-8")
