"""Rules and fixes of an installed package: used, named with their package, and never the end of a run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from diagnoser.demo import unpack
from tests.places import ROOT

Json = dict[str, Any]
EXAMPLE = ROOT / "docs" / "examples" / "plugin"
SETTINGS = """model:
  num_moe_experts: 64
  expert_model_parallel_size: 8
  moe_token_dispatcher_type: flex
  moe_flex_dispatcher_backend: deepep
"""


def installed(site: Path, fixes: str = "", rules: str = "", name: str = "acme-moe") -> Path:
    """The example as an installer puts it into a folder of packages; other code and rules where given."""
    package = site / "acme_moe"
    shutil.copytree(EXAMPLE / "acme_moe", package, ignore=shutil.ignore_patterns("__pycache__"))
    if fixes:
        (package / "fixes.py").write_text(fixes, encoding="utf-8")
    if rules:
        (package / "rules.toml").write_text(rules, encoding="utf-8")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project["entry-points"]
    listed = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in groups.items()
    ]
    info = site / f"{name.replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("\n".join(listed), encoding="utf-8")
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(about, encoding="utf-8")
    return site


def said(site: Path, *words: str, code: int = 0) -> str:
    """What the program prints with a folder of packages beside its own."""
    path = os.pathsep.join((str(ROOT), str(site)))
    done = subprocess.run(
        [sys.executable, "-m", "diagnoser", *words],
        cwd=site,
        env={**os.environ, "PYTHONPATH": path, "MOE_DIAG_TRACEBACK": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def analysed(site: Path) -> Json:
    unpack(site / "run.sqlite", "communication")
    (site / "run.yaml").write_text(SETTINGS, encoding="utf-8")
    options = ("--config", "run.yaml", "--core-version", "0.16.1", "--no-megatron", "-f", "json")
    document: Json = json.loads(said(site, "analyze", "run.sqlite", *options))
    return document


def broken(site: Path) -> str:
    """The one warning about a plug-in, of a run that is diagnosed all the same."""
    document = analysed(site)
    assert document["verdict"]["wall"] == "communication"
    assert not [one for one in document["fixes"] if one["id"].startswith("ACME")]
    (warning,) = [one for one in document["warnings"] if "plug-in" in one]
    return str(warning)


def test_the_example_adds_a_fix_and_a_rule_with_their_source(tmp_path: Path) -> None:
    document = analysed(installed(tmp_path))
    (fix,) = [one for one in document["fixes"] if one["id"] == "ACME-1"]
    assert fix["sources"][0] == "plug-in acme-moe 1.0 (links)"
    assert "NCCL_CROSS_NIC=0" in fix["knobs"]["environment"]
    assert fix["gain_frac"][1] > 0.4
    assert "acme-no-deepep-on-west" in [one["id"] for one in document["defects"]]
    (rule,) = [one for one in document["rules"]["broken"] if one["id"].startswith("acme")]
    assert rule["source"] == "plug-in acme-moe 1.0 (cluster); ACME incident 4711"
    assert not [one for one in document["warnings"] if "plug-in" in one]
    assert "plug-in acme-moe 1.0 (links)" in said(tmp_path, "explain", "ACME-1")
    assert "ACME incident 4711" in said(tmp_path, "explain", "acme-no-deepep-on-west")


def test_a_plugin_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    site = installed(tmp_path, fixes="import no_such_package\n")
    assert broken(site) == "plug-in acme-moe 1.0 (links) is left out: it raised ModuleNotFoundError"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (('"ACME-1"', '"COM-2"'), "'COM-2' is no id for it: give letters of its own and a number, as ACME-1"),
        (('wall="communication"', 'wall="network"'), "ACME-1 is for 'network', which is no wall"),
        (("    del run\n    return Change", "    return 1 / 0, Change"), "it raised ZeroDivisionError"),
        (
            ("Change(launch", 'Change({"env.ACME_RAIL": "0"}, launch'),
            "ACME-1 sets env.ACME_RAIL, which is no knob: give its line in `launch`",
        ),
    ],
)
def test_a_fix_that_is_none_is_left_out(change: tuple[str, str], why: str, tmp_path: Path) -> None:
    code = (EXAMPLE / "acme_moe" / "fixes.py").read_text(encoding="utf-8")
    assert change[0] in code
    site = installed(tmp_path, fixes=code.replace(*change))
    assert broken(site) == f"plug-in acme-moe 1.0 (links) is left out: {why}"


def test_a_fix_that_fails_for_a_run_is_refused_there(tmp_path: Path) -> None:
    code = (EXAMPLE / "acme_moe" / "fixes.py").read_text(encoding="utf-8")
    fails = code.replace("    del run\n    return Change", "    assert not run.window_ns\n    return Change")
    site = installed(tmp_path, fixes=fails)
    assert broken(site) == "plug-in acme-moe 1.0 (links) has no ACME-1 for this run: it raised AssertionError"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("acme-no-deepep-on-west", "alltoall-corrupted"),
         "rule 'alltoall-corrupted' is there already: give it an id of its own"),
        (("cure =", "cures_all ="),
         "rules.toml, acme-no-deepep-on-west: Object contains unknown field `cures_all`"),
        (("moe_token_dispatcher_type ==", "no_such_knob =="), "rules.toml, acme-no-deepep-on-west, "),
    ],
)  # fmt: skip
def test_rules_that_are_none_are_left_out(change: tuple[str, str], why: str, tmp_path: Path) -> None:
    rules = (EXAMPLE / "acme_moe" / "rules.toml").read_text(encoding="utf-8")
    assert change[0] in rules
    site = installed(tmp_path, fixes="FIXES = ()\n", rules=rules.replace(*change))
    assert broken(site).startswith(f"plug-in acme-moe 1.0 (cluster) is left out: {why}")


def test_nothing_of_a_plugin_is_loaded_where_nothing_is_judged(tmp_path: Path) -> None:
    site = installed(tmp_path, fixes="raise SystemExit(99)\n")
    assert "communication" in said(site, "demo", "list")
    assert "Usage" in said(site, "analyze", "--help")
