"""What is given away: the built wheel does every command of the README, and a release has one version."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import diagnoser
from diagnoser.demo import RECORDINGS, compressed
from tests.places import ROOT
from tests.read_back.source import MAY_IMPORT
from tests.release.oldest_dependencies import oldest, promised

_CHANGELOG = ROOT / "CHANGELOG.md"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def program(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's program: our packages are the wheel's, what they need is of this environment."""
    folder = tmp_path_factory.mktemp("installed")
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    program = folder / "moe-diag"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(folder)!r})\n"
        "from diagnoser.__main__ import main\nmain()\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program


def test_the_program_of_the_wheel_is_of_the_wheel(program: Path) -> None:
    place = str(program.parent)
    ask = f"import sys; sys.path.insert(0, {place!r}); import diagnoser; print(diagnoser.__file__)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", ask], cwd=program.parent, capture_output=True, text=True
    )
    assert done.stdout.startswith(place)


def test_the_wheel_holds_exactly_our_four_packages(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(MAY_IMPORT)
    assert [name for name in names if "simulate" in name] == []  # what makes recordings stays with the tests
    shipped = {
        *(f"reports/write/html/{name}.css" for name in ("page", "blocks", "analysis")),
        *(f"reports/write/html/{name}.js" for name in ("page", "plan", "timeline_draw", "timeline")),
        *(
            f"reports/write/html/templates/{name}.html.j2"
            for name in ("base", "blocks", "analysis", "comparison", "run", "timeline")
        ),
        "reports/measures.toml",
        "traces/names/kernel_rules.toml",
        "traces/settings/knobs.toml",
        "traces/settings/known_names.toml",
        "traces/settings/models.toml",
        "traces/settings/precision_recipes.toml",
        "traces/settings/older_names.toml",
        "traces/sizes/peaks.toml",
        "traces/training_log/known_lines.toml",
        *(str(compressed(name).relative_to(ROOT)) for name in RECORDINGS),
    }
    assert shipped | {f"{package}/py.typed" for package in MAY_IMPORT} <= set(names)


def test_the_sdist_holds_what_the_tests_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("no git checkout: would have shown that the sdist holds every file of it")
    assert {*tracked.stdout.split("\n")} - {""} - names == set()


def test_there_is_one_version(built: Path) -> None:
    """Its home is `diagnoser/version.py`: the wheel, the sdist and the changelog have the same."""
    version = diagnoser.__version__
    assert {file.name.split("-")[1].removesuffix(".tar.gz") for file in built.iterdir()} == {version}
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_changelog_begins_with_this_version() -> None:
    headings = [
        line for line in _CHANGELOG.read_text(encoding="utf-8").splitlines() if line.startswith("## ")
    ]
    assert headings[0].split()[1] == diagnoser.__version__
    assert all(len(heading.split()) == 3 for heading in headings), "## VERSION (date), or (unreleased)"


def test_every_dependency_has_an_oldest_release() -> None:
    assert "msgspec==0.22" in promised()
    with pytest.raises(ValueError, match="jinja2 has no lower bound"):
        oldest(["numpy>=1.26", "jinja2"])


def test_what_runs_before_a_commit_is_what_the_gate_runs() -> None:
    """Hooks of this machine alone, by the environment of make: a commit needs no network."""
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [one["repo"] for one in repos] == ["local"]
    hooks = [hook["entry"].removeprefix(".venv/bin/") for hook in repos[0]["hooks"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    code = re.search(r"^CODE +:= (.+)$", makefile, re.MULTILINE)
    lint = re.search(r"^lint:.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    assert code
    assert lint
    asked = [line.replace("$(BIN)/", "").strip() for line in lint[1].splitlines()]
    asked = [line.replace(" --check", "").replace("$(CODE)", code[1]) for line in asked]
    assert hooks[1:] == [line.removesuffix(f" {code[1]}") if "ruff" in line else line for line in asked]
