"""A working folder that a stranger filled: nothing in it is run, and none of it changes what is done."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from diagnoser.demo import unpack
from tests.places import ROOT
from tests.recordings.nsys import desk

OURS = ("diagnoser", "traces", "heuristics", "reports", "moe_diag")
LOADED = (
    *("numpy", "pandas", "msgspec", "typer", "yaml", "tomli", "packaging", "rich", "jinja2", "matplotlib"),
    *("typing", "pathlib", "json", "re", "dataclasses", "sqlite3", "signal", "importlib_metadata"),
    *("sitecustomize", "usercustomize", "multiprocessing", "pickle", "acme", "numba", "megatron", "torch"),
)
"""Modules that a run loads, or would if they were there; none that Python itself loads for `python -m`."""


def planted(folder: Path, *names: str) -> Path:
    """A folder with modules of these names, each of which leaves a mark where it is run, and a plug-in."""
    folder.mkdir()
    for name in names:
        mark = f"open({str(folder / 'ran')!r}, 'a').write({name!r})\n"
        (folder / f"{name}.py").write_text(f"{mark}raise SystemExit({name!r})\n", encoding="utf-8")
    about = folder / "acme-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[moe_diag.fixes]\na = acme:FIX\n", encoding="utf-8")
    return folder


def started(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program that is started in a folder, with our packages on the path as an installation has them."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    given = {name: value for name, value in given.items() if name != "PYTHONSAFEPATH"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=given, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    "words", [["-m", "diagnoser"], ["-mdiagnoser"], ["-Bmdiagnoser"], ["-m", "moe_diag"]]
)
def test_no_module_and_no_plugin_of_the_working_folder_is_run(words: list[str], tmp_path: Path) -> None:
    folder = planted(tmp_path / "stranger", *LOADED)
    unpack(folder / "run.sqlite", "communication")
    done = started(folder, *words, "analyze", "run.sqlite", "-f", "markdown", "--no-facts")
    assert (done.returncode, done.stderr) == (0, "")
    assert "acme" not in done.stdout
    assert not (folder / "ran").exists()


def test_what_python_itself_takes_from_there_first_is_named(tmp_path: Path) -> None:
    """Before any code of ours, by `python -m` alone; whether it does depends on its version."""
    folder = planted(tmp_path / "stranger")
    whole = Path(contextlib.__file__).read_text(encoding="utf-8")
    (folder / "contextlib.py").write_text(
        f"{whole}open({str(folder / 'ran')!r}, 'a').close()\n", encoding="utf-8"
    )
    done = started(folder, "-m", "diagnoser", "--version")
    if (folder / "ran").exists():
        assert "Python took its module 'contextlib' from the working folder" in done.stderr
        assert "Type moe-diag in place of python -m" in done.stderr
    else:
        assert done.returncode == 0


def test_a_checkout_works_and_its_other_modules_come_last(tmp_path: Path) -> None:
    home = planted(tmp_path / "checkout", "numpy", "typing", "msgspec")
    for name in OURS:
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    (home / "traces" / "limits.py").write_text(
        (ROOT / "traces" / "limits.py").read_text(encoding="utf-8") + "print('this one')\n", encoding="utf-8"
    )
    done = started(home, "-m", "diagnoser", "demo", PYTHONPATH="")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("this one")
    assert "SLOWED BY" in done.stdout
    assert not (home / "ran").exists()


MATPLOTLIB = "text.usetex: True\nfont.size: 40\nlines.linewidth: 20\nbackend: module://acme\nsavefig.dpi: 7\n"
NUMBA = "dump_bytecode: 1\ndump_llvm: 1\ncache_locator_classes: acme.Locator\nchrome_trace: written\nopt: 7\n"


def test_settings_of_libraries_in_the_working_folder_change_nothing(tmp_path: Path) -> None:
    stranger, empty = planted(tmp_path / "stranger", *LOADED), tmp_path / "empty"
    empty.mkdir()
    (stranger / "matplotlibrc").write_text(MATPLOTLIB, encoding="utf-8")
    (stranger / ".numba_config.yaml").write_text(NUMBA, encoding="utf-8")
    loop = (
        "import numpy as np\nfrom traces.loops import loop\n"
        "@loop('sums')\ndef add_up(values, sums):\n"
        "    for place in range(len(values)):\n        sums[place] = values[place] + 1\n"
    )
    (tmp_path / "looped.py").write_text(loop, encoding="utf-8")
    code = (
        "import sys; sys.argv = ['moe-diag', 'demo', '-o', '-', '-f', 'svg']\n"
        f"sys.path.append({str(tmp_path)!r})\nimport os; os.environ['PYTHONSAFEPATH'] = '1'\n"
        "import looped, numpy\n"
        "values = numpy.arange(3); looped.add_up.compiled(values, values.copy())\n"
        "from diagnoser.__main__ import main; main()\n"
    )
    program = tmp_path / "program.py"
    program.write_text(code, encoding="utf-8")
    done = [started(folder, str(program), HOME=str(tmp_path)) for folder in (stranger, empty)]
    assert [one.returncode for one in done] == [0, 0], done[0].stderr
    assert done[0].stdout == done[1].stdout
    assert done[0].stdout.startswith("<?xml")
    assert not (stranger / "ran").exists()
    assert not (stranger / "written").exists()


def test_an_nsys_of_the_working_folder_is_not_taken_where_path_leads_there(tmp_path: Path) -> None:
    """An empty part of PATH is the working folder."""
    here = desk(tmp_path)
    folder = planted(tmp_path / "stranger")
    (folder / "nsys").write_text(f"#!/bin/sh\ntouch '{folder}/ran'\n", encoding="utf-8")
    (folder / "nsys").chmod(0o755)
    words = ["analyze", str(here.report), "--cache-dir", str(here.cache)]
    started(folder, "-m", "diagnoser", *words, PATH=f":.:{here.nsys.folder}:{os.environ['PATH']}")
    assert not (folder / "ran").exists()
    assert here.nsys.exports == 1


def test_nsys_is_asked_elsewhere(tmp_path: Path) -> None:
    """Its own Python looks for its modules where it is started."""
    here = desk(tmp_path)
    script = Path(here.nsys.path)
    script.write_text(script.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\npwd >>'{tmp_path}/asked'\n"))
    folder = planted(tmp_path / "stranger")
    words = ["analyze", str(here.report), "--nsys", here.nsys.path, "--cache-dir", str(here.cache)]
    started(folder, "-m", "diagnoser", *words)
    asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert len(asked) >= 3
    assert str(folder) not in asked
