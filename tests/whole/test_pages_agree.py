"""No page of `check-config` says anything against itself: over every configuration that is kept here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from diagnoser.cli import run
from tests.agreement.one_page import disagreements
from tests.configurations.config_cases import CASES, screen
from tests.configurations.pairs import PAIRS, config_of

SYMPTOMS: Final[Mapping[str, dict[str, Any]]] = {
    "communication": {"budget_frac": {"compute": 0.5, "exposed_comm": 0.45, "idle": 0.05},
     "exposed_comm_by_kind_frac": {"ep_a2a": 0.25, "pp_p2p": 0.1, "tp": 0.1}},
    "host": {"budget_frac": {"compute": 0.6, "exposed_comm": 0.1, "idle": 0.3},
     "absent_frac": {"launch_starved": 0.27}},
    "memory": {"budget_frac": {"compute": 0.9, "exposed_comm": 0.05, "idle": 0.05},
     "memory": {"does_not_fit": True}},
}  # fmt: skip


def document(
    path: Path, symptoms: Path, capsys: pytest.CaptureFixture[str], gpu: str
) -> dict[str, Any] | None:
    """None for what is no configuration of ours."""
    about = ("--gpu-model", gpu, "--core-version", "0.16.1", "--world-size", "64")
    run(["check-config", str(path), *about, "--symptoms", str(symptoms), "--no-megatron", "-f", "json"])
    text = capsys.readouterr().out
    return json.loads(text) if text else None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_case_of_a_reader_says_anything_against_itself(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text = screen(case, capsys, "-f", "json")
    assert disagreements(json.loads(text)) == []


@pytest.mark.parametrize("wall", SYMPTOMS)
def test_no_side_of_a_pair_says_anything_against_itself(
    wall: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    symptoms = _written(tmp_path, wall)
    for pair in PAIRS[::4]:
        found = document(config_of(pair, "new"), symptoms, capsys, "H100")
        assert found is not None
        assert disagreements(found) == [], pair.name


def _written(folder: Path, wall: str) -> Path:
    path = folder / "symptoms.json"
    path.write_text(json.dumps(SYMPTOMS[wall]), encoding="utf-8")
    return path
