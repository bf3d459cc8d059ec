"""Facts of a run from a file of the working folder: found, said, checked, and less than what is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diagnoser.cli import run
from diagnoser.demo import unpack
from diagnoser.running.inputs.facts import FactsFile, facts_near
from tests.places import ROOT

BRIDGE = ROOT / "tests" / "data" / "settings" / "bridge.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    unpack(tmp_path / "run.sqlite", "healthy")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def given(folder: Path, *words: str) -> dict[str, object]:
    """What `analyze` takes for given."""
    assert run(["analyze", "run.sqlite", "-o", "run.json", "--force-overwrite", *words]) == 0
    found: dict[str, object] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return found


def test_facts_of_the_folder_are_given_and_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "moe-diag.toml").write_text('gpu-model = "H100"\nep = 16\nmemory_tight = true\n')
    found = given(folder)
    assert capsys.readouterr().err == "moe-diag: facts from moe-diag.toml: gpu-model, ep, memory-tight\n"
    assert found["command"] == ("moe-diag analyze run.sqlite --gpu-model H100 --ep 16 --memory-tight")


def test_what_is_typed_wins_and_all_can_be_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "moe-diag.toml").write_text("ep = 16\ntp = 2\n")
    assert str(given(folder, "--ep", "8")["command"]).endswith("--ep 8 --tp 2")
    assert capsys.readouterr().err == "moe-diag: facts from moe-diag.toml: tp\n"
    assert given(folder, "--no-facts")["command"] == "moe-diag analyze run.sqlite"
    assert capsys.readouterr().err == ""


def test_files_are_named_from_where_the_facts_stand(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.moe-diag]\nconfig = "conf/run.yaml"\nenv = {NCCL_DEBUG = "INFO"}\n'
    )
    below = folder / "conf" / "deep"
    below.mkdir(parents=True)
    found = facts_near(below)
    assert found == FactsFile(
        folder / "pyproject.toml", {"env": ["NCCL_DEBUG=INFO"]}, {"config": folder / "conf" / "run.yaml"}
    )


def test_outside_of_a_repository_the_folder_alone_is_looked_at(folder: Path) -> None:
    (folder / "moe-diag.toml").write_text("ep = 16\n")
    (folder / "below").mkdir()
    assert facts_near(folder / "below") is None
    assert facts_near(folder) is not None


def test_a_pyproject_without_a_table_of_ours_is_not_parsed(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("this = is [no toml")
    assert facts_near(folder) is None


def test_another_configuration_gets_only_the_facts_of_the_machine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "moe-diag.toml").write_text('gpu_model = "H100"\nep = 64\nconfig = "other.yaml"\n')
    run(["check-config", str(BRIDGE)])
    assert "facts from moe-diag.toml: gpu-model\n" in capsys.readouterr().err
    assert run(["plan", "Qwen3-30B-A3B", "--gpus", "16"]) == 0
    assert "facts from moe-diag.toml: gpu-model\n" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "said"), [
    ('gpu_modle = "H100"', "nothing is known of 'gpu_modle'. Did you mean gpu_model?"),
    ("zzz = 1", "nothing is known of 'zzz'. There are gpu_model, nvlink_domain"),
    *(('ep = "16"', "ep must be a whole number"), ("ep = true", "ep must be a whole number")),
    *(("ep = 0", "--ep 0 is no size"), ("config = 3", "config must be a text")),
    ('gpu_model = "H1000000"', "--gpu-model 'H1000000' is no GPU that we know"),
    *(("ep 16", "it is no TOML"), ("a = " + "[" * 100_000, "it is no TOML")),
])  # fmt: skip
def test_a_wrong_fact_is_one_line_that_names_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (folder / "moe-diag.toml").write_text(text)
    assert run(["analyze", "run.sqlite"]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"moe-diag: moe-diag.toml: {said}")
    assert err.endswith("--no-facts leaves the file out\n")
