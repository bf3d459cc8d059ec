"""Packages of strangers that are called like ours and were installed over them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

OURS = ("diagnoser", "traces", "heuristics", "reports")


def said(home: Path) -> str:
    """The last line of an import of the copy in `home`."""
    code = f"import sys; sys.path.insert(0, {str(home)!r}); import diagnoser; print('imported')"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=home, capture_output=True, text=True)
    return (done.stdout or done.stderr).strip().splitlines()[-1]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in OURS:
        shutil.copytree(
            ROOT / name, tmp_path / "home" / name, ignore=shutil.ignore_patterns("*.xz", "__pycache__")
        )
    return tmp_path / "home"


def test_ours_are_imported(home: Path) -> None:
    assert said(home) == "imported"


@pytest.mark.parametrize("name", OURS[1:])
def test_a_package_that_was_installed_over_ours_is_named(home: Path, name: str) -> None:
    (home / name / "__init__.py").write_text('"""Somebody else\'s."""\n')
    assert said(home).startswith(
        f"ImportError: another package {name!r} was installed over moe-diag's in {home}"
    )
