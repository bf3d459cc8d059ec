"""An open result, and the line that makes a result again: without folders unless they are asked for."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

import diagnoser
from diagnoser.cli import run
from diagnoser.options.requests import command_line
from reports.result.codec import Document
from tests.doubles.sides import as_json, run_of


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of(tmp_path_factory.mktemp("redaction") / "run.sqlite")


@pytest.fixture(scope="module")
def unredacted(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    document = diagnoser.analyze(trace, ask_megatron=False, redact=False).to_dict()
    return as_json(tmp_path_factory.mktemp("unredacted") / "open.json", document)


def test_an_open_result_is_shown_only_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unredacted: Path
) -> None:
    for words in (["report", str(unredacted)], ["report", str(unredacted), "--ticket", str(tmp_path / "t")]):
        assert run(words) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "was made with --no-redact and holds paths. Give --no-redact to show them" in err
    assert list(tmp_path.iterdir()) == []
    assert run(["report", str(unredacted), "--no-redact", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(unredacted.read_text(encoding="utf-8"))


@pytest.mark.parametrize("side", ["base", "new"])
def test_an_open_side_makes_no_redacted_comparison(
    capsys: pytest.CaptureFixture[str], trace: Path, unredacted: Path, side: str
) -> None:
    runs = [str(unredacted), str(trace)] if side == "base" else [str(trace), str(unredacted)]
    assert run(["compare", *runs]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"moe-diag: {side}: this earlier result was made with --no-redact")
    assert run(["compare", *runs, "--no-redact", "-f", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["redacted"] is False
    assert str(trace) in shlex.split(document["command"])


@pytest.mark.parametrize("redact", [True, False])
def test_the_command_holds_what_was_given_and_makes_the_result_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, redact: bool
) -> None:
    run_of(tmp_path / "a run.sqlite")
    monkeypatch.chdir(tmp_path)
    words = ["--steps", "1:3", "--gpu", "0", "--ep", "16", "--memory-tight", "--guidance", "seed", "--full"]
    words += [] if redact else ["--no-redact"]
    assert run(["analyze", str(tmp_path / "a run.sqlite"), *words, "-f", "json"]) == 0
    first = json.loads(capsys.readouterr().out)
    name = "'a run.sqlite'" if redact else f"'{tmp_path}/a run.sqlite'"
    said = f"moe-diag analyze {name} --steps 1:3 --gpu 0 --ep 16 --memory-tight --guidance seed"
    said += "" if redact else " --no-redact"
    assert first["command"] == said
    assert run([*shlex.split(said)[1:], "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == first


@given(
    folder=some.text(min_size=1).filter(lambda text: not {"/", "\0"} & set(text)),
    name=some.text(min_size=1).filter(lambda text: not {"/", "\0"} & set(text) and text not in (".", "..")),
    pattern=some.text(),
)
def test_a_command_is_one_line_of_a_shell_without_folders(folder: str, name: str, pattern: str) -> None:
    path = Path("/home/hunter2_sesame") / folder / name
    said = command_line("analyze", [path], {"--nvtx": pattern, "--config": path, "--rank": None, "--x": True})
    words = shlex.split(said)
    assert said.isprintable()
    assert "hunter2_sesame" not in said
    assert words[:2] == ["moe-diag", "analyze"]
    assert [words[3], words[5], words[7:]] == ["--nvtx", "--config", ["--x"]]
    assert words[2] == words[6]
    assert len(words) == 8


@pytest.mark.parametrize(("about", "said"), [
    ({"container": "/home/me/box"}, "--container NAME"),
    ({"gpu": "NVIDIA H100 80GB HBM3"}, "--gpu-model H100"),
    ({"gpu": "H100 of db01.example"}, "--gpu-model H100"), ({"pp_layout": "me@host"}, "--pp-layout TEXT"),
    ({"graph_modules": "attn,moe_router"}, "--graph-modules attn,moe_router"),
    ({"packed_sequences": False}, "--no-packed-sequences"), ({"tp": 2, "ep": 8}, "--ep 8 --tp 2"),
])  # fmt: skip
def test_what_is_said_of_a_run_is_told_in_known_words_only(about: Document, said: str) -> None:
    assert (
        command_line("analyze", [Path("/x/run.sqlite")], {}, about) == f"moe-diag analyze run.sqlite {said}"
    )
