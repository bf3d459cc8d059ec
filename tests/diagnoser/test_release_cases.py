"""Configurations as `check-config` judges them for a release: tests/data/release_cases.toml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diagnoser.cli import run
from tests.configurations.constraints import read

TABLE: dict[str, Any] = read("release_cases.toml")
OPTIONS = {"core": "--core-version", "bridge": "--bridge-version", "gpu": "--gpu-model", "te": "--te-version"}


def configuration(changes: dict[str, object]) -> dict[str, Any]:
    """The base with values at paths; "null" is null."""
    found: dict[str, Any] = json.loads(json.dumps(TABLE["base"]))
    for path, value in changes.items():
        *groups, name = path.split(".")
        place = found
        for group in groups:
            place = place.setdefault(group, {})
        place[name] = None if value == "null" else value
    return found


@pytest.mark.parametrize("name", TABLE["cases"])
def test_a_configuration_is_judged_as_its_release_takes_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = TABLE["cases"][name]
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(configuration(case["changes"])), encoding="utf-8")
    versions = [word for one, value in case["versions"].items() for word in (OPTIONS[one], value)]
    code = run(["check-config", str(file), "--world-size", "16", "--no-megatron", *versions])
    text = " ".join(capsys.readouterr().out.split())
    assert [one for one in case.get("must", ()) if one not in text] == []
    assert [one for one in case.get("never", ()) if one in text] == []
    assert (code == 1) == ("NOT LEGAL" in case.get("must", ()))
