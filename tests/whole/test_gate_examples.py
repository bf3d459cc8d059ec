"""The files to copy for GitHub and GitLab: their steps run here in bash, on recordings of the demo."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from diagnoser.cli import run
from tests.places import ROOT
from tests.recordings.inputs import changed

EXAMPLES: Final = ROOT / "docs" / "examples"
CASES: Final = {
    "graphs.sqlite": (0, "passed"),
    "graphs_lost.sqlite": (1, "slower than 3%, or not judged"),
    "not_there.sqlite": (3, "not judged: an input cannot be read"),
    "no_kernels.sqlite": (4, "not judged: a recording has nothing to compare"),
}
"""What is compared with `graphs`, the exit code, and how the comment begins."""
_PYTHON: Final = """#!/bin/sh
mkdir -p "$3/bin"
printf '#!/bin/sh\\necho "$@" >> "$CALLED"\\n' > "$3/bin/pip"
printf '#!/bin/sh\\nexec {python} -m diagnoser "$@"\\n' > "$3/bin/moe-diag"
chmod +x "$3/bin/pip" "$3/bin/moe-diag"
"""
"""For `python3 -m venv DIR`: a pip that notes what it is asked for, and this checkout as `moe-diag`."""
_CALLED: Final = '#!/bin/sh\necho "$0 $@" >> "$CALLED"\n'


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    for name in ("graphs", "graphs_lost"):
        assert (
            run(["demo", name, "--keep", str(folder / f"{name}.sqlite"), "-o", f"{folder}/{name}.txt"]) == 0
        )
    empty = shutil.copy(folder / "graphs.sqlite", folder / "no_kernels.sqlite")
    changed(Path(empty), "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
    (folder / "ci").mkdir()
    assert run(["analyze", str(folder / "graphs.sqlite"), "-o", str(folder / "ci" / "main.json")]) == 0
    return folder


class Checkout:
    """A folder in which steps run as a runner would run them."""

    def __init__(self, folder: Path, recordings: Path, variables: dict[str, str]) -> None:
        shutil.copytree(recordings, folder / "checkout")
        self.place, self.called, self.env = folder / "checkout", folder / "called", variables
        for name, text in (("python3", _PYTHON.replace("{python}", sys.executable)), ("gh", _CALLED)):
            self._program(folder / "programs" / name, text)
        self._program(folder / "programs" / "curl", _CALLED)
        self.path = f"{folder / 'programs'}:{os.environ['PATH']}"

    def _program(self, file: Path, text: str) -> None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)

    def bash(self, script: str, options: str, env: dict[str, str]) -> int:
        """The exit code of a script in a shell of its own."""
        own = {
            "PATH": self.path,
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.place),
            "CALLED": str(self.called),
        }
        line = ["bash", "--noprofile", "--norc", *options.split(), "-c", script]
        return subprocess.run(line, cwd=self.place, env={**own, **self.env, **env}, timeout=120).returncode

    def comment(self) -> str:
        return (self.place / "comment.md").read_text(encoding="utf-8")

    def report(self) -> set[str]:
        return {file.suffix for file in (self.place / "report").iterdir()}


def test_the_commands_of_the_examples_are_shell_without_expressions_of_the_service() -> None:
    """What `${{ }}` puts into a script is run by the shell: names of branches must not get there."""
    for step in github()["jobs"]["gate"]["steps"]:
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("new", CASES)
def test_the_github_job_ends_with_the_code_of_the_gate_and_comments(
    new: str, recordings: Path, tmp_path: Path
) -> None:
    code, word = CASES[new]
    workflow = github()
    files = {name: str(tmp_path / name.lower()) for name in ("GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
    checkout = Checkout(tmp_path, recordings, {**workflow["env"], "NEW": new, "RUNNER_TEMP": str(tmp_path)})
    ended = {}
    for step in workflow["jobs"]["gate"]["steps"]:
        if "run" in step:
            ended[step["name"]] = checkout.bash(step["run"], "-e", {**files, "PULL_REQUEST": "address"})
        if (added := Path(files["GITHUB_PATH"])).exists():
            checkout.path = f"{added.read_text().strip()}:{checkout.path}"
            added.unlink()
    assert ended == {"Install": 0, "Compare": code, "Comment": 0}
    written(checkout, code, word)
    assert Path(files["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8") == checkout.comment()
    installed, commented = checkout.called.read_text().splitlines()
    assert installed == "install --quiet moe-diag"
    assert "gh pr comment address --body-file comment.md" in commented


@pytest.mark.parametrize("token", [True, False])
@pytest.mark.parametrize("new", CASES)
def test_the_gitlab_job_ends_with_the_code_of_the_gate_and_comments(
    new: str, token: bool, recordings: Path, tmp_path: Path
) -> None:
    code, word = CASES[new]
    job = gitlab()
    given = {"CI_BUILDS_DIR": str(tmp_path), "CI_API_V4_URL": "api", "CI_PROJECT_ID": "1"}
    given |= {"CI_MERGE_REQUEST_IID": "2", **({"MOE_DIAG_TOKEN": "secret"} if token else {})}
    checkout = Checkout(tmp_path, recordings, {**job["variables"], "NEW": new, **given})
    script = "\n".join([*job["before_script"], *job["script"]])
    assert checkout.bash(script, "-e -o pipefail", {}) == code
    written(checkout, code, word)
    assert job["artifacts"]["when"] == "always"
    installed, *commented = checkout.called.read_text().splitlines()
    assert installed == "install --quiet moe-diag"
    assert len(commented) == token
    assert all(one.endswith("api/projects/1/merge_requests/2/notes") for one in commented)


def test_both_examples_run_the_same_comparison() -> None:
    """What is explained once is kept alike twice: each file is copied alone."""
    of_github = github()["jobs"]["gate"]["steps"][2]["run"].partition('cat comment.md >> "$GITHUB')[0]
    of_gitlab = gitlab()["script"][0].partition("cat comment.md\n")[0]
    assert of_github == of_gitlab


def written(checkout: Checkout, code: int, word: str) -> None:
    """A comment that begins with the result; the report where there is one, else the reason."""
    first, *rest = checkout.comment().splitlines()
    assert first == f"### moe-diag: {word}"
    judged = {".md", ".html", ".json"} if code in (0, 1) else set()
    assert checkout.report() == {".txt"} | judged
    assert any("graphs.sqlite" in line if judged else "moe-diag: new: " in line for line in rest)


def github() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((EXAMPLES / "github_gate.yml").read_text(encoding="utf-8"))
    return read


def gitlab() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((EXAMPLES / "gitlab_gate.yml").read_text(encoding="utf-8"))[
        "moe-diag"
    ]
    return read
