"""A fix in words: what it changes, its spellings, what it needs, what it gave elsewhere, how to verify."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib import import_module
from types import ModuleType

import heuristics.fixes
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.fix import Fix, Precondition
from heuristics.run import Run
from reports.explain_limits import item, limit_lines, limits_in
from reports.explain_wall import paragraphs
from reports.layout import wrap
from reports.sentences import SPELLINGS
from reports.words import kind_words, wall_words


def fix_lines(number: str) -> Iterator[str]:
    """Lines of the fix of that id (`COM-2`), its knobs and needs as for a run of which nothing is known."""
    fix, module, run = CATALOGUE[number], module_of(number), Run()
    yield f"{number} {fix.title} (fix)"
    yield from paragraphs(module)
    kinds = f", of its cost {', '.join(map(kind_words, fix.kinds))}" if fix.kinds else ""
    yield from ["", *wrap(f"Acts on the {wall_words(fix.wall)} wall{kinds}.", "  ")]
    yield from _knobs(fix, run)
    yield from _section("Versions", [fix.versions])
    yield from _section("Needs", map(_need, fix.preconditions(run)))
    yield from _section("Measured elsewhere", (f"{gain.text} ({gain.source})" for gain in fix.gains))
    yield from _section("Side effects", fix.side_effects)
    yield from _section("Not in one plan with", map(_titled, fix.excludes))
    yield from _section("The same change as", map(_titled, (fix.same_as,) if fix.same_as else ()))
    yield from _section("Verify in the next recording", [fix.verify])
    yield from limit_lines(limits_in(module.__name__), "Numbers in it")
    yield from _section("Sources", fix.sources)


def module_of(number: str) -> ModuleType:
    """The file of a fix: `heuristics/fixes/com_2_dispatcher.py` for COM-2."""
    start = number.lower().replace("-", "_") + "_"
    (name,) = (
        one.name for one in pkgutil.iter_modules(heuristics.fixes.__path__) if one.name.startswith(start)
    )
    return import_module(f"heuristics.fixes.{name}")


def _knobs(fix: Fix, run: Run) -> Iterator[str]:
    knobs = asdict(fix.knobs(run))
    spelled = [f"{name}: {' '.join(knobs[key])}" for key, name in SPELLINGS if knobs[key]]
    none = ["none for a run of which nothing is known: they depend on what is asked for below"]
    yield from _section("Knobs, as for a run of which nothing is known", spelled or none)


def _need(need: Precondition) -> str:
    if not need.cure:
        return need.text
    return f"{need.text} ({'to tell' if need.state == 'unknown' else 'to meet it'}: {need.cure})"


def _titled(number: str) -> str:
    return f"{number} {CATALOGUE[number].title}" if number in CATALOGUE else number


def _section(title: str, entries: Iterable[str]) -> Iterator[str]:
    """A title and its entries; nothing where there are none."""
    listed = [line for entry in entries for line in item(entry)]
    if listed:
        yield from ("", title, *listed)
