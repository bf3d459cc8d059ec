"""Tests here ask the installed megatron-core; elsewhere they skip, unless it is said that it must be here.

Releases for another Python lie unpacked beside each other: MOE_DIAG_CORES names the environment of that
Python, which has PyTorch, and the folder `cores` with one folder for each.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from diagnoser.megatron import check_with_megatron
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import Request
from tests.places import DATA

Ask = Callable[[Sequence[Request]], list[tuple[Answer, Answer]]]

OTHERS: Final = (DATA / "megatron_cores.txt").read_text("utf-8").split()
"""Releases that need Python 3.12."""


@dataclass(frozen=True, slots=True)
class Release:
    """A megatron-core, and a Python that finds it."""

    version: str
    python: str

    def ask(self, requests: Sequence[Request]) -> list[tuple[Answer, Answer]]:
        """Insists on answers of that release; what asking it failed by is one."""
        answers = check_with_megatron(requests, python=self.python)
        assert {config.version for config, _ in answers} == {self.version}, answers[0]
        return answers


@pytest.fixture(scope="session")
def ask(megatron: None) -> Ask:
    """Ask the installed one."""
    return Release(version("megatron-core"), sys.executable).ask


@pytest.fixture(scope="session", params=("installed", *OTHERS))
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The installed one, then those of another Python."""
    if request.param == "installed":
        request.getfixturevalue("megatron")
        return Release(version("megatron-core"), sys.executable)
    if not (place := os.environ.get("MOE_DIAG_CORES")):
        pytest.skip(
            f"no Python 3.12 with PyTorch: would have shown that megatron-core {request.param} is asked"
        )
    core, python = Path(place, "cores", request.param).resolve(), Path(place, "bin", "python").absolute()
    program = tmp_path_factory.mktemp("release") / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={core} exec {python} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return Release(request.param, str(program))
