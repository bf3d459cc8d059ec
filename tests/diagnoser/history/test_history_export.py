"""The history for other programs: CSV, Prometheus' text, and the lines of the docs for W&B and MLflow."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from diagnoser.cli import run
from diagnoser.demo import unpack
from diagnoser.history.store import Store
from tests.doubles.history import H100, document, without_steps
from tests.places import ROOT

SAMPLE = re.compile(r'(moe_diag_[a-zA-Z0-9_]+)\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)+)\} (-?\d+(?:\.\d+)?)')
"""A line of the exposition format: name, labels, a number without an exponent."""


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("MOE_DIAG_HISTORY", str(tmp_path / "h.sqlite"))
    monkeypatch.chdir(tmp_path)
    store = Store(tmp_path / "h.sqlite")
    store.add(document(40), 'night "1"\n=x')
    store.add(document(44), "night 2")
    store.add(document(50, gpu=H100))
    store.add(without_steps())
    return store


def test_the_table_has_a_row_a_result_and_the_numbers_as_they_are_kept(history: Store) -> None:
    assert run(["history", "export", "-o", "all.csv"]) == 0
    with Path("all.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step_ns"] for row in rows] == ["40000000", "44000000", "50000000", ""]
    assert [row["tag"] for row in rows[1:]] == ["night 2", "", ""]
    for row, kept in zip(rows, history.rows(), strict=True):
        assert {name: float(row[name]) for name in kept.metrics} == kept.metrics
        assert row["id"] == str(kept.id)


def test_prometheus_gets_the_newest_result_of_each_kind_in_base_units(
    history: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["history", "export", "-f", "prometheus"]) == 0
    lines = capsys.readouterr().out.splitlines()
    samples = [found for line in lines if (found := SAMPLE.fullmatch(line))]
    assert len(samples) == sum(not line.startswith("#") for line in lines)
    named = {(one[1], re.findall(r'id="(\d+)"', one[2])[0]): one[3] for one in samples}
    assert named["moe_diag_step_seconds", "3"] == "0.05"
    assert named["moe_diag_ledger_exposed_comm_ep_dispatch_seconds", "3"] == "0.0125"
    assert {number for _, number in named} == {"3", "4"}  # 1 and 2 are older than 4, of the same kind
    assert named["moe_diag_budget_exposed_comm_ratio", "3"] == "0.25"
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert types == list(dict.fromkeys(one[1] for one in samples))


def test_labels_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "other.sqlite")
    store.add(document(40), 'a "b" \\c')
    assert run(["history", "export", "--store", str(store.path), "-o", str(tmp_path / "x.prom")]) == 0
    assert 'tag="a \\"b\\" \\\\c"' in (tmp_path / "x.prom").read_text(encoding="utf-8")


def test_the_history_itself_is_never_replaced(history: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history", "export", "-o", str(history.path), "--force-overwrite"]) == 2
    assert "is the input itself" in capsys.readouterr().err


def test_an_empty_history_is_a_table_of_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history", "export", "--store", str(tmp_path / "none.sqlite")]) == 0
    assert capsys.readouterr().out == "id,added_at,name,tag,gpu,wall\n"


def lines_of(package: str) -> str:
    """The lines of the docs that import a package."""
    text = (ROOT / "docs" / "usage.md").read_text(encoding="utf-8")
    (found,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        if f"import {package}\n" in block
    )
    return str(found)


def done(code: str, folder: Path, **environment: str) -> str:
    own = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]]), **environment}
    line = [sys.executable, "-c", code]
    ended = subprocess.run(line, cwd=folder, env=own, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_lines_for_wandb_log_every_number_offline(history: Store, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="no wandb: would have shown that the lines of the docs log")
    assert run(["history", "export", "-o", "results.csv"]) == 0
    end = "\n    print(run.summary['moe_diag/wall'], run.summary['moe_diag/budget_frac.compute'])"
    code = lines_of("wandb").rstrip() + end
    out = done(code, tmp_path, WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(tmp_path))
    assert out.split()[-2:] == ["communication", "0.75"], out
    assert [*(tmp_path / "wandb").glob("offline-run-*")]


def test_the_lines_for_mlflow_log_into_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="no mlflow: would have shown that the lines of the docs log")
    unpack(tmp_path / "run.sqlite", "communication")
    assert run(["analyze", str(tmp_path / "run.sqlite"), "-o", str(tmp_path / "run.json")]) == 0
    store = (tmp_path / "runs").as_uri()
    done(lines_of("mlflow"), tmp_path, MLFLOW_TRACKING_URI=store, MLFLOW_ALLOW_FILE_STORE="true")
    (found,) = (tmp_path / "runs").rglob("metrics/moe_diag.communication.cost_frac")
    (wall,) = (
        one
        for one in json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["walls"]
        if one["id"] == "communication"
    )
    assert float(found.read_text(encoding="utf-8").split()[1]) == wall["cost_frac"]
    assert [*(tmp_path / "runs").rglob("artifacts/run.json")]
