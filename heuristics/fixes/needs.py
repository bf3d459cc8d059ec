"""What fixes need, by name: `needs.toml`."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import UNSET, UnsetType, convert

from heuristics.config.versions import PACKAGE_NAMES, Package, numbers
from heuristics.fixes.precondition import Needs, Precondition, Release, holds
from heuristics.rules.condition import RUNS
from heuristics.run.run import Run
from traces.cures import cure
from traces.toml_tables import TableRow, written


class Need(TableRow, kw_only=True):
    """A need as it is written; `needs.toml` says what its fields are. ValueError: no such name in
    it.
    """

    text: str = ""
    holds: str = ""
    met_by: str = ""
    told_by: str = ""
    blocks: bool = False
    already: str = ""
    when: str = ""
    record: str = ""
    release: str = ""
    absent: bool = False

    def __post_init__(self) -> None:
        for text in filter(None, (self.holds, self.when or self.already)):
            RUNS.condition(text)

    def of(
        self,
        run: Run,
        fact: bool | UnsetType | None = UNSET,
        words: Mapping[str, str] | None = None,
    ) -> Needs:
        """As a run has it; nothing where it asks for nothing. `fact`: whether it holds, if code
        tells.
        """
        condition = self.when or self.already
        if condition and RUNS.condition(condition).holds(run) is not True:
            return ()
        if self.already:
            return needed("not_set_yet", run, False, knob=self.already)
        if self.release:
            package, version = RUNS.filled(self.release, run).split()
            return (release(run, package, version, self.text),)  # type: ignore[arg-type]
        if fact is UNSET:
            fact = RUNS.condition(self.holds).holds(run) if self.holds else None
        record_line = cure(self.record, run.active.recorder) if self.record else ""
        known = {**(words or {}), "record": record_line}
        text, met_by, told_by = (
            RUNS.filled(template, run, known)
            for template in (self.text, self.met_by, self.told_by or record_line)
        )
        return (replace(holds(text, fact, met_by, told_by, self.blocks), absent=self.absent),)


def limit_place(name: str) -> tuple[str, str]:
    """Module and name of `graphs.ROOM`, of a file beside this one, or of `MOST`, a word that many
    share.
    """
    room, _, own = name.rpartition(".")
    if room:
        return f"heuristics.fixes.{room}", own
    return "traces.limits", own


def named(name: str) -> Any:
    """`graphs.partial`: of a file beside this one; `walls.compute.LAYOUT`: of another room."""
    module, _, own = name.rpartition(".")
    return getattr(import_module(f"heuristics.{'' if '.' in module else 'fixes.'}{module}"), own)


def need_of(row: Mapping[str, Any]) -> Need:
    fields = dict(row)
    if "like" in fields:
        other = _rows()[fields.pop("like")]
        whens = [entry["when"] for entry in (other, fields) if "when" in entry]
        fields = {**other, **fields, "when": " and ".join(f"({when})" for when in whens)}
    return convert(fields, Need)


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    return written("heuristics.fixes", "needs.toml")


@cache
def shared_needs() -> Mapping[str, Need]:
    return {name: need_of(row) for name, row in _rows().items()}


def needed(name: str, run: Run, fact: bool | UnsetType | None = UNSET, **words: str) -> Needs:
    """A need of `needs.toml`; `words`: what stands in its braces."""
    return shared_needs()[name].of(run, fact, words)


def release(run: Run, package: Package, version: str, beside: str = "") -> Precondition:
    """A package from a version such as "2.8.0" on; letters after the numbers do not count."""
    known = run.config.version_text(package)
    fact = None if known is None else numbers(known) >= numbers(version)
    name = PACKAGE_NAMES[package]
    (need,) = needed(
        "release", run, fact, package=name, beside=beside, version=version, option=package
    )
    return replace(need, release=Release(package, version))
