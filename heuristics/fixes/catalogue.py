"""All fixes by id: the tables beside this file, in the order to try them, as each framework takes them."""

import tomllib
from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from typing import Any, Final

from msgspec import convert
from msgspec.structs import replace

from heuristics.fixes.added import added_fixes
from heuristics.fixes.change import Change, without_row
from heuristics.fixes.fix import Changing, Fix, Form, Needing, the_same
from heuristics.fixes.needs import Need, shared_needs
from heuristics.fixes.precondition import Precondition
from heuristics.run.run import WALL_IDS, Run
from traces.names.frameworks import Framework
from traces.sections.tables import WallId

_LIKE: Final = ("versions", "gains", "side_effects", "sources")
"""What a row with `like` has of another row, where it does not say it itself."""


class WrongFix(ValueError):
    """A row that is no fix; the message names its file and id, and says what is wrong with it."""


def _read() -> dict[WallId, list[Fix]]:
    rows = {wall: _rows(wall) for wall in WALL_IDS}
    by_id = {row.get("id", ""): row for several in rows.values() for row in several}
    return {wall: [_fix(wall, row, by_id) for row in several] for wall, several in rows.items()}


def _rows(wall: WallId) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(_text(wall))["fix"]
    return found


def _text(wall: WallId) -> str:
    return files("heuristics.fixes").joinpath(f"{wall}.toml").read_text(encoding="utf-8")


def _fix(wall: WallId, row: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> Fix:
    """A row as a fix. Raises `WrongFix`."""
    own = {name: value for name, value in row.items() if name != "like"}
    try:
        other = by_id[row["like"]] if "like" in row else {}
        same = {name: other[name] for name in _LIKE if name in other}
        return convert({**same, **own, "wall": wall}, Fix, dec_hook=_asks_a_run)
    except (ValueError, KeyError, AttributeError, ImportError) as error:
        named = row.get("id", "a row without an id")
        raise WrongFix(f"heuristics/fixes/{wall}.toml, {named}: {error}") from error


def _asks_a_run(kind: object, written: Any) -> object:
    """What a field that asks a run is, as a table writes it."""
    if isinstance(written, str):
        return _function(written)
    if kind == Changing:
        return _constant(written)
    return _needing([_need(one) for one in written]) if kind == Needing else lambda run: tuple(written)


def _function(name: str) -> Any:
    """`graphs.partial`: a function of a file beside this one."""
    module, _, own = name.partition(".")
    return getattr(import_module(f"heuristics.fixes.{module}"), own)


def _constant(written: Mapping[str, Any]) -> Changing:
    """The same change in every run; a value may be `{ limit = "host.WORKERS" }`, a number by its name."""
    values = written.get("set", {}).items()
    named = {knob: _function(one["limit"]).value if isinstance(one, dict) else one for knob, one in values}
    change = convert({**written, "set": named}, Change)
    if unknown := without_row(change):
        raise ValueError(f"no row of traces/settings/knobs.toml has {', '.join(unknown)}: no line sets it")
    return lambda run: change


def _need(written: object) -> Needing:
    """A need by its name in `needs.toml`, as a row of its own, or as a function."""
    if isinstance(written, str) and "." in written:
        found: Needing = _function(written)
        return found
    return (shared_needs()[written] if isinstance(written, str) else convert(written, Need)).of


def _needing(several: list[Needing]) -> Needing:
    def advice(run: Run) -> tuple[Precondition, ...]:
        return tuple(need for one in several for need in one(run))

    return advice


_FIXES: Final = _read()
WALL_ORDER: Final[Mapping[WallId, tuple[str, ...]]] = {
    wall: tuple(fix.id for fix in several) for wall, several in _FIXES.items()
}
"""Fix ids by wall, in the order to try them."""
CATALOGUE: Final[Mapping[str, Fix]] = {
    fix.id: fix
    for several in _FIXES.values()
    for fix in sorted(several, key=lambda fix: int(fix.id.partition("-")[2]))
}
"""Fix id (COM-2) -> fix, by wall and number."""


def fixes_of(framework: Framework) -> Mapping[str, Fix]:
    """The catalogue, with fixes of plug-ins, as a framework takes it: without what it has no words for."""
    every = {**CATALOGUE, **added_fixes()}
    if framework == "megatron":
        return every
    found = {}
    for number, fix in every.items():
        if framework == "pytorch" and fix.pytorch:
            found[number] = _in_pytorch(fix, fix.pytorch)
        elif fix.any_framework:
            found[number] = _without_flags(fix)
    return found


def _in_pytorch(fix: Fix, form: Form) -> Fix:
    """The fix in PyTorch's words; what was measured of it is Megatron's and left out."""
    same = form.kinds is None
    return replace(
        fix,
        title=form.title or fix.title,
        kinds=fix.kinds if form.kinds is None else form.kinds,
        direct=fix.direct if same else None,
        wins=fix.wins if same else None,
        change=lambda run: Change(pytorch=form.code_for(run), launch=form.environment),
        advice=form.advice,
        versions=form.versions,
        gains=(),
        side_effects=form.side_effects,
        excludes=(),
        verify=form.verify or fix.verify,
        sources=form.sources or fix.sources,
        changes=form.changes,
        of_run=the_same,
    )


def _without_flags(fix: Fix) -> Fix:
    def change(run: Run) -> Change:
        return Change(launch=fix.knobs(run).environment)

    return replace(fix, change=change, versions="any: no matter of the framework", gains=(), excludes=())
