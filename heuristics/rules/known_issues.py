"""Published hangs, crashes and regressions, by `known_issues.toml`: beside the fixes that they concern."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, cast

from heuristics.config.versions import Package, numbers
from heuristics.result.judged import KnownIssue
from heuristics.rules.condition import condition, named
from heuristics.run.run import Run
from traces.settings.settings import Value


@lru_cache(maxsize=1)
def issues() -> tuple[Mapping[str, Any], ...]:
    """The rows as they stand in the file."""
    text = files("heuristics.rules").joinpath("known_issues.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["issue"])


def known_issues(fix: str, sets: Mapping[str, Value], run: Run) -> tuple[KnownIssue, ...]:
    """Issues of a fix that this run can meet: what is known of it fits, what is not known is named.

    `sets`: knobs that the fix sets; all others are the run's.
    """
    return tuple(found for row in issues() if fix in row["fixes"] if (found := _met(row, sets, run)))


def _met(row: Mapping[str, Any], sets: Mapping[str, Value], run: Run) -> KnownIssue | None:
    gpus, when, config = row.get("gpus", ()), condition(row["when"]), run.changed(sets).config
    answers = {
        "release": _released(row["releases"], run),
        **({"gpu": None if run.gpu is None else run.gpu in gpus} if gpus else {}),
        **{name: named(name).of(config) for name in when.names},
    }
    if when.holds(config) is False or False in (answers["release"], answers.get("gpu")):
        return None
    return KnownIssue(
        id=row["id"],
        what=row["what"],
        releases=tuple(_words(*one) for one in row["releases"].items()),
        gpus=tuple(gpus),
        only_if=tuple(name for name, answer in answers.items() if answer is None),
        workaround=row["workaround"],
        source=row["source"],
    )


def _released(releases: Mapping[str, tuple[str, str]], run: Run) -> bool | None:
    """Whether a package that is known is of an affected release; None where none of them is known."""
    told = list(_answers(releases, run))
    return None if not told else all(told)


def _answers(releases: Mapping[str, tuple[str, str]], run: Run) -> Iterator[bool]:
    for package, (since, until) in releases.items():
        version = (
            run.config.container
            if package == "container"
            else run.config.version_text(cast(Package, package))
        )
        if version is not None:
            yield numbers(since) <= numbers(version) and (not until or numbers(version) < numbers(until))


def _words(package: str, ends: tuple[str, str]) -> str:
    since, until = ends
    return f"{package} {since}, before {until}" if until else f"{package} {since} and newer"
