"""Packages of strangers that are called like ours: installed over them, or found before them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

OURS = ("diagnoser", "traces", "heuristics", "reports")


def said(*homes: Path) -> str:
    """The last line of an import of the first copy there is."""
    code = f"import sys; sys.path[:0] = {[*map(str, homes)]!r}; import diagnoser; print('imported')"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=homes[0], capture_output=True, text=True)
    return (done.stdout or done.stderr).strip().splitlines()[-1]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in OURS:
        shutil.copytree(
            ROOT / name, tmp_path / "home" / name, ignore=shutil.ignore_patterns("*.xz", "__pycache__")
        )
    return tmp_path / "home"


@pytest.mark.parametrize("name", OURS[1:])
def test_a_package_that_was_installed_over_ours_is_named(home: Path, name: str) -> None:
    (home / name / "__init__.py").write_text('"""Somebody else\'s."""\n')
    assert said(home).startswith(
        f"ImportError: another package {name!r} was installed over moe-diag's in {home}"
    )


def test_a_package_that_is_found_before_ours_is_named(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "__init__.py").write_text("", encoding="utf-8")
    told = said(tmp_path, ROOT)
    assert "needs its own package 'traces'" in told
    assert str(tmp_path / "traces") in told
