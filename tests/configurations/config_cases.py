"""Configurations that a reader of the guides wrote, and the first screen of each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from diagnoser.cli import run
from tests.places import DATA

CASES = sorted(one for one in (DATA / "config_cases").iterdir() if one.is_dir())


def screen(case: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """The exit code, and the output with its lines joined."""
    files = {one.stem: one for one in case.iterdir()}
    file = files.get("config") or files["run"]
    given = [*expected(case)["options"], "--no-megatron", *options]
    if "symptoms" in files:
        given += ["--symptoms", str(files["symptoms"])]
    code = run(["check-config", str(file), *given])
    return code, " ".join(capsys.readouterr().out.split())


def expected(case: Path) -> dict[str, Any]:
    return tomllib.loads((case / "expected.toml").read_text(encoding="utf-8"))
