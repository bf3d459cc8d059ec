"""Exit codes and messages: every bad input once, as a user meets it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from diagnoser import __main__ as door
from diagnoser.cli import run
from tests.places import ROOT, Reviewed
from tests.recordings.inputs import (
    a_folder,
    changed,
    empty,
    missing,
    no_kernels,
    scrambled,
    simple,
    text,
    truncated,
)


def holding(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def database(name: str, statement: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        return changed(folder / name, statement)

    return make


BAD_INPUTS: dict[str, tuple[Callable[[Path], Path], int, str]] = {
    "missing": (missing, 3, "does not exist"), "empty": (empty, 3, "is empty"),
    "a text": (text, 3, "is no trace we know"), "a folder": (a_folder, 3, "has no recordings"),
    "truncated": (truncated, 3, "is truncated"), "scrambled": (scrambled, 3, "is damaged"),
    "a head alone": (holding("run.sqlite", b"SQLite format 3\0"), 3, "is truncated"),
    "no export": (database("mine.sqlite", "CREATE TABLE mine (a INTEGER)"), 3, "nsys export --type sqlite"),
    "a failed export": (database("half.sqlite", "CREATE TABLE StringIds (id INTEGER, value TEXT)"), 3,
     "its export failed half way"),
    "a stream": (holding("run.qdstrm", b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1"), 3,
     "QdstrmImporter"),
    "a report cut": (holding("run.nsys-rep", b"NVIDIA Tegra Profiler Report 1.\n" + b"x" * 500), 3,
     "is truncated"),
    "no kernels": (no_kernels, 4, "nsys profile --trace=cuda,nvtx"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "code", "said"), BAD_INPUTS.values(), ids=BAD_INPUTS)
def test_a_bad_input_ends_in_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Path], code: int, said: str
) -> None:
    path = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert run(["analyze", str(path)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"moe-diag: {path} ")
    assert said in err
    assert "Traceback" not in err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "9:12"], "Recorded are 0 to 2"), (["--steps", "x"], "--steps 2:5"),
        (["--nvtx", "iterations"], "'iteration N'"), (["--nvtx", "("], "no regular expression"),
        (["--steps", f"0:{'9' * 5000}"], "is not of the form A:B"),
        (["--start", "9s"], "GPU activity lies between"), (["--gpu", "5"], "GPU 0"),
        (["--rank", "5"], "no rank is recorded"), (["--start", "1ms", "--nvtx", "x"], "Give one of them"),
        (["-f", "yaml"], "yaml"), (["--bogus"], "--bogus"), (["-f", "text", "-f", "json"], "-o FOLDER/"),
    ],
)  # fmt: skip
def test_a_bad_option_or_selection_ends_with_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(["analyze", str(simple(tmp_path / "run.sqlite")), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(("make", "code"), [(truncated, 3), (no_kernels, 4)])
def test_several_that_are_bad_alike_end_with_the_code_of_each(
    tmp_path: Path, make: Callable[[Path], Path], code: int
) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    assert run(["analyze", *(str(make(folder)) for folder in folders), "--jobs", "1"]) == code


def test_no_command_shows_the_help_and_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "analyze" in "".join(capsys.readouterr())


def test_the_help_that_is_shipped_is_what_the_commands_say(
    reviewed: Reviewed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    assert reviewed(Path(door.__file__).with_name("help.txt"), said) == said
    assert "..." not in said.partition("Commands:")[2]  # no summary is cut
    monkeypatch.setattr(sys, "argv", ["moe-diag", "--help"])
    with pytest.raises(SystemExit) as ended:
        door.main()
    assert (ended.value.code, capsys.readouterr().out) == (0, said)


@pytest.mark.parametrize("output", ["/proc/nowhere/x.json", "none/x.json"])
def test_an_output_that_cannot_be_written_ends_with_three(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    assert run(["analyze", str(simple(tmp_path / "run.sqlite")), "-o", str(tmp_path / output)]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_a_trace_is_never_replaced_by_its_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = simple(tmp_path / "run.sqlite")
    (tmp_path / "link.sqlite").symlink_to(path)
    before = path.read_bytes()
    for traces in ([path], [tmp_path / "link.sqlite"]):
        assert run(["analyze", *map(str, traces), "-o", str(path), "--force-overwrite"]) == 2
        assert "is the input itself" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    path = simple(tmp_path / "run.sqlite")
    for force in ([], ["--force-overwrite"]):
        assert run(["analyze", str(path), "-o", "/dev/null", *force]) == 0
    assert Path("/dev/null").is_char_device()


def in_shell(words: str) -> subprocess.CompletedProcess[str]:
    line = f"{sys.executable} -m diagnoser {words}"
    return subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="no /dev/full: would have shown how a full disk ends"
)
def test_a_full_disk_is_no_bug_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = simple(tmp_path / "run.sqlite")
    assert run(["analyze", str(path), "-o", "/dev/full"]) == 3
    assert "No space left" in capsys.readouterr().err
    done = in_shell(f"analyze {path} > /dev/full")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)


def test_a_skipped_trace_is_said_on_stderr_and_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = simple(tmp_path / "run.sqlite")
    assert run(["analyze", str(path), str(tmp_path / "none.sqlite")]) == 0
    out, err = capsys.readouterr()
    assert "Warning    none.sqlite was skipped: it cannot be read" in out
    assert err == f"moe-diag: skipped: {tmp_path}/none.sqlite does not exist. Check the path.\n"


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    path = simple(tmp_path / "run.sqlite")
    pipe = in_shell(f"analyze {path} -f json | head -n 1")
    assert (pipe.stdout, pipe.stderr) == ("{\n", "")


def test_the_demo_runs_the_main_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "demo.sqlite"
    assert run(["demo", "--keep", str(kept)]) == 0
    assert "SLOWED BY  expert all-to-all (50 %)" in capsys.readouterr().out
    assert run(["demo", "--keep", str(kept)]) == 2
    assert run(["demo", "--keep", str(tmp_path / "none" / "x.sqlite")]) == 3
    assert run(["analyze", str(kept), "-f", "json"]) == 0


def test_a_bug_of_ours_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret from the trace")

    monkeypatch.setattr("diagnoser.running.pipeline.diagnose", broken)
    assert run(["analyze", str(simple(tmp_path / "run.sqlite"))]) == 70
    err = capsys.readouterr().err
    assert "RuntimeError" in err
    assert "secret" not in err


def test_examples_of_a_command_stand_on_lines_of_their_own() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "diagnoser/commands").glob("*.py")]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    examples = [line for line in lines if line.startswith("moe-diag ")]
    assert len(examples) > 40
    assert [line for line in lines if line.startswith("\\b") and line != "\\b"] == []
    assert [line for line in examples if line.count("moe-diag ") > 1] == []
