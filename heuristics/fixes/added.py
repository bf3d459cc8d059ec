"""Fixes of plug-ins: each names its plug-in among its sources, and none can end a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from heuristics.fixes.change import Change, without_row
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.plugins import WrongPlugin, left_out_if_wrong, name_of, note, offered
from heuristics.run.run import WALL_IDS, Run

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS: Final = ("MEM", "COM", "HST", "CMP", "CFG", "ENV", "CAP")
"""What ids of this program begin with, now and later: ids of others begin otherwise."""
_ID: Final = re.compile(r"([A-Z]{2,8})-\d{1,4}")
_FAILED: Final = Precondition("its plug-in can judge this run", "unmet")


@cache
def added_fixes() -> Mapping[str, Fix]:
    """By id, in the order of their plug-ins."""
    found: dict[str, Fix] = {}
    for entry in offered("moe_diag.fixes"):
        with left_out_if_wrong(entry):
            loaded = entry.load()
            several = {fix.id: fix for fix in ([loaded] if isinstance(loaded, Fix) else loaded)}
            for fix in several.values():
                _check(fix, found)
            found |= {number: _guarded(_named(fix, entry), entry) for number, fix in several.items()}
    return found


def _check(fix: object, found: Mapping[str, Fix]) -> None:
    """Raises `WrongPlugin` for what is no fix of its own, and what the fix raises for an unknown run."""
    if not isinstance(fix, Fix):
        raise WrongPlugin(f"{type(fix).__name__} is no Fix")
    family = _ID.fullmatch(fix.id)
    if not family or family[1] in OURS:
        raise WrongPlugin(f"{fix.id!r} is no id for it: give letters of its own and a number, as ACME-1")
    if fix.id in found:
        raise WrongPlugin(f"{fix.id} is another plug-in's")
    if fix.wall not in WALL_IDS:
        raise WrongPlugin(f"{fix.id} is for {fix.wall!r}, which is no wall")
    if unknown := without_row(fix.change(Run())):
        raise WrongPlugin(f"{fix.id} sets {', '.join(unknown)}, which no row of knobs.toml has")
    fix.knobs(Run())
    fix.preconditions(Run())


def _named(fix: Fix, entry: EntryPoint) -> Fix:
    return replace(fix, sources=(name_of(entry), *fix.sources))


def _guarded(fix: Fix, entry: EntryPoint) -> Fix:
    """The fix; where it raises for a run it is refused there, and a warning names its plug-in."""

    def advice(run: Run) -> tuple[Precondition, ...]:
        try:
            fix.of_run(fix, run)
            fix.change(run)
            fix.changes(run)
            fix.arms(run)
            return fix.advice(run)
        except Exception as error:  # code of others may raise anything
            note(entry, error, f"has no {fix.id} for this run")
            return (_FAILED,)

    def change(run: Run) -> Change:
        try:
            return fix.change(run)
        except Exception:  # `advice` names it
            return Change()

    def changes(run: Run) -> tuple[str, ...]:
        try:
            return fix.changes(run)
        except Exception:
            return ()

    def arms(run: Run) -> Mapping[str, Change]:
        try:
            return fix.arms(run)
        except Exception:
            return {}

    def of_run(same: Fix, run: Run) -> Fix:
        try:
            own = fix.of_run(fix, run)
        except Exception:
            return same
        return replace(own, advice=advice, change=change, changes=changes, arms=arms)

    return replace(fix, advice=advice, change=change, changes=changes, arms=arms, of_run=of_run)
