"""`moe-diag compare` and `diagnoser.compare` as a user meets them: what goes in, comes out, and the gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from diagnoser.cli import run
from diagnoser.diagnosis import Diagnosis
from diagnoser.options.given import gate_frac
from diagnoser.options.requests import Analysis
from diagnoser.running.pipeline import diagnose
from heuristics.result.exits import Exit
from tests.configurations.check import script, written
from tests.configurations.logs import iteration
from tests.doubles.sides import result_of_run, run_of
from traces.errors import UsageError

Json = dict[str, Any]


def compared(capsys: pytest.CaptureFixture[str], *words: object) -> Json:
    """The document of a comparison that ends as its verdict says."""
    code = run(["compare", *map(str, words), "-f", "json"])
    document: Json = json.loads(capsys.readouterr().out)
    assert code == (Exit.UNDECIDED if document["verdict"] == "undecided" else Exit.DONE)
    return document


def a_log(folder: Path, name: str, step_ms: float, count: int = 60) -> Path:
    """Iterations that take turns in being 10 us longer and shorter."""
    lengths = [9_000.0, *(step_ms + 0.01 * (-1) ** index for index in range(count))]
    lines = [iteration(index, ms, total=count + 1) for index, ms in enumerate(lengths, start=1)]
    return written(folder, name, "\n".join(lines) + "\n")


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    """Two runs of nine steps, of which the new one's are 100 us longer in their GEMM but not as a whole."""
    base, new = tmp_path / "base.sqlite", tmp_path / "new.sqlite"
    return [str(run_of(base, steps=9)), str(run_of(new, steps=9, gemm_us=800))]


@pytest.mark.parametrize(
    ("text", "frac"), [("3%", 0.03), ("3.5 %", 0.035), ("0.03%", 0.0003), ("0%", 0.0), ("100%", 1.0)]
)
def test_a_gate_is_a_percentage_with_its_sign(text: str, frac: float) -> None:
    assert gate_frac(text) == frac


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3", "Type --gate 3%"), ("3.5", "Type --gate 3.5%"), ("0.03", "Type --gate 3% or --gate 0.03%"),
        ("-3%", "is no percentage"), ("nan%", "is no percentage"), ("three", "is no percentage"),
        ("", "is no percentage"), ("1e3%", "is no percentage"), ("\u0663%", "is no percentage"),
    ],
)  # fmt: skip
def test_a_gate_that_could_be_meant_either_way_is_refused(
    capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said.replace(".", r"\.")):
        gate_frac(text)
    assert run(["compare", "none.sqlite", "none.sqlite", f"--gate={text}"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("words", "said"), [
    (["a.json"], "Type moe-diag compare BASE NEW, or moe-diag compare --baseline NAME a.json"),
    (["a.json", "b.json", "--baseline", "main"], "or moe-diag compare --baseline main b.json"),
    ([], "Type moe-diag compare --help"), (["a.json", "b.json", "c.json"], "Type moe-diag compare --help"),
    (["a.json", "b.json", "--bogus"], "Type moe-diag compare --help"),
    (["a.json", "b.json", "-f", "yaml"], "Type moe-diag compare --help"),
    (["a.json", "b.json", "-f", "markdown", "-f", "json"], "-o FOLDER/"),
    (["a.json", "b.json", "--ep", "0"], "--ep 0 is no size"),
])  # fmt: skip
def test_a_wrong_line_says_what_to_type(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(["compare", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


def test_one_file_is_read_once_and_its_gpus_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read = run_of(tmp_path / "run.sqlite", gpus=2, steps=1), []

    def counted(asked: Analysis, **more: Any) -> Diagnosis:
        read.append(asked.paths)
        return diagnose(asked, **more)

    monkeypatch.setattr("diagnoser.running.comparison.diagnose", counted)
    words = ["--base-gpu", "0", "--new-gpu", "1"]
    document = compared(capsys, path, tmp_path / "." / "run.sqlite", *words)
    assert len(read) == 1
    assert (document["base"]["device"], document["new"]["device"]) == (0, 1)
    assert document["step_delta_ns"] == 50_000  # the GEMM of GPU 1 is 50 us longer
    turned = compared(capsys, path, path, "--base-gpu", "1", "--new-gpu", "0")
    assert turned["step_delta_ns"] == -50_000


def test_the_api_takes_paths_documents_and_diagnoses(pair: list[str]) -> None:
    found = [diagnoser.analyze(one, ask_megatron=False) for one in pair]
    whole = diagnoser.compare(*pair, gate="3%")
    for base, new in ((found[0], found[1]), (found[0].to_dict(), Path(pair[1]))):
        assert diagnoser.compare(base, new, gate="3%").to_dict() == whole.to_dict()
    assert whole.gate is not None
    assert whole.gate.limit_frac == 0.03
    assert repr(whole) == f"<Comparison: {whole.to_dict()['verdict']}>"
    whole.to_dict().clear()
    assert whole.to_dict()["schema_version"] == "1.0"


def test_the_frame_adds_up_to_the_difference(pair: list[str]) -> None:
    result = diagnoser.compare(*pair)
    frame = result.to_frame()
    assert list(frame.columns) == ["row", "wall", "delta_ns", "count_ns", "duration_ns", "overlap_ns"]
    assert str(frame["delta_ns"].dtype) == "Int64"
    assert len(frame) > 0
    assert frame["delta_ns"].sum() == result.to_dict()["step_delta_ns"]


@pytest.mark.parametrize("which", ["base", "new", "log", "config"])
def test_no_input_is_ever_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pair: list[str], which: str
) -> None:
    log, config = a_log(tmp_path, "new.log", 5.0), script(tmp_path)
    path = {"base": Path(pair[0]), "new": Path(pair[1]), "log": log, "config": config}[which]
    before = path.read_bytes()
    words = ["--new-log", str(log), "--base-config", str(config), "-o", str(path), "--force-overwrite"]
    assert run(["compare", *pair, *words]) == 2
    assert "never changed" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_baseline_of_the_history_is_the_base(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = result_of_run(tmp_path / "before.sqlite")
    asked: list[str] = []

    def baseline_document(name: str) -> Json:
        asked.append(name)
        return document

    monkeypatch.setattr("diagnoser.history.kept.baseline_document", baseline_document)
    new = run_of(tmp_path / "after.sqlite")
    found = compared(capsys, new, "--baseline", "main")
    assert asked == ["main"]
    assert (found["base"]["name"], found["new"]["name"]) == ("before.sqlite", "after.sqlite")
