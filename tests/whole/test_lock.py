"""`requirements.lock` holds what pyproject.toml asks for, by hash, and nothing of a machine."""

from __future__ import annotations

import re
import tomllib

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.places import ROOT

LOCK = ROOT / "requirements.lock"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def asked() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [Requirement(one) for one in project["dependencies"]]


def locked(text: str) -> list[tuple[Requirement, int]]:
    """Each locked package, and how many hashes it has."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    return [
        (Requirement(line.partition(" --hash")[0].strip()), line.count("--hash=sha256:")) for line in lines
    ]


def lacking(text: str) -> list[str]:
    """What is asked for and not locked in a version that fits, for each Python."""
    found = locked(text)
    wrong = []
    for python in PYTHONS:
        about = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
        here = {
            canonicalize_name(one.name): next(iter(one.specifier)).version
            for one, _ in found
            if one.marker is None or Marker(str(one.marker)).evaluate(about)
        }
        wrong += [
            f"{one} on Python {python}"
            for one in asked()
            if (version := here.get(canonicalize_name(one.name))) is None or version not in one.specifier
        ]
    return wrong


def test_the_lock_holds_all_that_is_asked_for_in_versions_that_fit() -> None:
    assert lacking(LOCK.read_text(encoding="utf-8")) == [], "renew it as CONTRIBUTING.md shows"


def test_every_package_is_one_version_with_hashes() -> None:
    for one, hashes in locked(LOCK.read_text(encoding="utf-8")):
        assert [part.operator for part in one.specifier] == ["=="], one
        assert hashes, one
        assert one.url is None, one


def test_the_lock_names_no_host_and_no_path() -> None:
    text = LOCK.read_text(encoding="utf-8")
    assert not re.search(r"://|--(?:extra-)?index|--find-links|--trusted|file:|@|(?<!\w)/\w", text)
