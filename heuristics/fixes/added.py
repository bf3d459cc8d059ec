"""Fixes of plug-ins: each names its plug-in among its sources, and none can end a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from heuristics.fixes.change import Change, without_row
from heuristics.fixes.fix import Catalogue, Fix
from heuristics.fixes.precondition import Needs, Precondition
from heuristics.plugins import WrongPlugin, left_out_if_wrong, name_of, note, offered
from heuristics.run.run import WALL_IDS, Run
from heuristics.words import say
from traces.patterns import compiled

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS: Final = ("MEM", "COM", "HST", "CMP", "CFG", "ENV", "CAP")
"""What ids of this program begin with, now and later: ids of others begin otherwise."""
_ID: Final = compiled(r"([A-Z]{2,8})-\d{1,4}")
T = TypeVar("T")


@cache
def added_fixes() -> Catalogue:
    fixes = dict[str, Fix]()
    for entry in offered("moe_diag.fixes"):
        with left_out_if_wrong(entry):
            loaded = entry.load()
            own_fixes = {fix.id: fix for fix in ([loaded] if isinstance(loaded, Fix) else loaded)}
            for fix in own_fixes.values():
                _check(fix, fixes)
            fixes |= {
                number: _guarded(replace(fix, sources=(name_of(entry), *fix.sources)), entry)
                for number, fix in own_fixes.items()
            }
    return fixes


def _check(fix: object, fixes: Catalogue) -> None:
    """Raises `WrongPlugin` for what is no fix of its own, and what the fix raises for an unknown
    run.
    """
    if not isinstance(fix, Fix):
        raise WrongPlugin(f"{type(fix).__name__} is no Fix")
    family = _ID.fullmatch(fix.id)
    if not family or family[1] in OURS:
        raise WrongPlugin(
            f"{fix.id!r} is no id for it: give letters of its own and a number, as ACME-1"
        )
    if fix.id in fixes:
        raise WrongPlugin(f"{fix.id} is another plug-in's")
    if fix.wall not in WALL_IDS:
        raise WrongPlugin(f"{fix.id} is for {fix.wall!r}, which is no wall")
    if unknown := without_row(fix.change(Run())):
        raise WrongPlugin(
            f"{fix.id} sets {', '.join(unknown)}, which is no knob: give its line in `launch`"
        )
    fix.knobs(Run())
    fix.preconditions(Run())


def _guarded(fix: Fix, entry: EntryPoint) -> Fix:
    """The fix; where it raises for a run it is refused there, and a warning names its plug-in."""

    def safe(function: Callable[..., T], otherwise: T) -> Callable[..., T]:
        def answer(*of: object) -> T:
            try:
                return function(*of)
            except Exception as error:  # code of others may raise anything
                note(entry, error, f"has no {fix.id} for this run")
                return otherwise

        return answer

    def advice(run: Run) -> Needs:
        fix.of_run(fix, run)
        for function in (fix.change, fix.changes, fix.arms):
            function(run)
        return fix.advice(run)

    own: dict[str, Any] = {
        "advice": safe(advice, (Precondition(say("fixes.plugin-judges"), "unmet"),)),
        "change": safe(fix.change, Change()),
        "changes": safe(fix.changes, ()),
        "arms": safe(fix.arms, {}),
    }
    of_run = safe(lambda same, run: replace(fix.of_run(fix, run), **own), replace(fix, **own))
    return replace(fix, **own, of_run=of_run)
