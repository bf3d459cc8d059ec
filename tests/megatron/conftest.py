"""Tests here ask the installed megatron-core; elsewhere they skip, unless it is said that it must be here.

Releases for another Python lie unpacked beside each other: MOE_DIAG_CORES names the environment of that
Python, which has PyTorch, and the folder `cores` with one folder for each.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from diagnoser.megatron import check_with_megatron
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import Request
from tests.places import ROOT

Ask = Callable[[Sequence[Request]], list[tuple[Answer, Answer]]]

OTHERS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["moe-diag"]["cores"]
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


@pytest.fixture(scope="module", params=("installed", *OTHERS))
def release(request: pytest.FixtureRequest) -> Iterator[Release]:
    """The installed one, then those of another Python, each the one found while a test has it."""
    with pytest.MonkeyPatch.context() as environment:
        if request.param == "installed":
            request.getfixturevalue("megatron")
            yield Release(version("megatron-core"), sys.executable)
            return
        if not (place := os.environ.get("MOE_DIAG_CORES")):
            pytest.skip(
                f"no Python 3.12 with PyTorch: would have shown that megatron-core {request.param} is asked"
            )
        environment.setenv("PYTHONPATH", str(Path(place, "cores", request.param).resolve()))
        yield Release(request.param, str(Path(place, "bin", "python").absolute()))
