"""Published hangs, crashes and regressions, by `known_issues.toml`: beside the fixes that they concern."""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from msgspec import Struct

from heuristics.config.versions import Package, numbers
from heuristics.result.judged import KnownIssue
from heuristics.rules.condition import READERS, Condition, named
from heuristics.run.run import Run
from heuristics.words import say
from traces.settings.settings import Value
from traces.toml_tables import read_keyed


class Issue(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `known_issues.toml`, which says what its fields are."""

    id: str
    what: str
    fixes: tuple[str, ...]
    releases: dict[Package | Literal["container"], tuple[str, str]]
    when: Condition
    workaround: str
    source: str
    gpus: tuple[str, ...] = ()


@cache
def issues() -> Mapping[str, Issue]:
    """Every row by its id. Raises `WrongRow`."""
    return read_keyed("heuristics.rules", "known_issues.toml", Issue, READERS)


def known_issues(fix: str, sets: Mapping[str, Value], run: Run) -> tuple[KnownIssue, ...]:
    """Issues of a fix that this run can meet: what is known of it fits, what is not known is named.

    `sets`: knobs that the fix sets; all others are the run's.
    """
    return tuple(
        found for issue in issues().values() if fix in issue.fixes if (found := _met(issue, sets, run))
    )


def _met(issue: Issue, sets: Mapping[str, Value], run: Run) -> KnownIssue | None:
    config = run.changed(sets).config
    answers = {
        "release": _released(issue, run),
        **({"gpu": None if run.gpu is None else run.gpu in issue.gpus} if issue.gpus else {}),
        **{name: named(name).of(config) for name in issue.when.names},
    }
    if issue.when.holds(config) is False or False in (answers["release"], answers.get("gpu")):
        return None
    return KnownIssue(
        id=issue.id,
        what=issue.what,
        releases=tuple(_words(*one) for one in issue.releases.items()),
        gpus=issue.gpus,
        only_if=tuple(name for name, answer in answers.items() if answer is None),
        workaround=issue.workaround,
        source=issue.source,
    )


def _released(issue: Issue, run: Run) -> bool | None:
    """Whether a package that is known is of an affected release; None where none of them is known."""
    config, told = run.config, list[bool]()
    for package, (since, until) in issue.releases.items():
        version = config.container if package == "container" else config.version_text(package)
        if version is not None:
            told.append(
                numbers(since) <= numbers(version) and (not until or numbers(version) < numbers(until))
            )
    return all(told) if told else None


def _words(package: str, ends: tuple[str, str]) -> str:
    since, until = ends
    if not until:
        return say("rules.released", package=package, since=since)
    return say("rules.released-until", package=package, since=since, until=until)
