"""A fix in words: what it changes, its spellings, what it needs, what it gave elsewhere, how to verify."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib import import_module
from types import ModuleType
from typing import Final

import heuristics.fixes
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.fix import Fix, Precondition
from heuristics.run import Run
from reports.explain_limits import item, limit_lines, limits_in
from reports.explain_wall import paragraphs
from reports.layout import wrap
from reports.sentences import SPELLINGS, between
from reports.words import kind_words, wall_words

_CHANGES: Final = {
    "graph_attn": "attention's launches become one call",
    "graph_moe_router": "the router's launches become one call",
    "graph_moe_preprocess": "the launches of preprocessing become one call",
    "graph_scopes": "launches of attention, router and preprocessing become one call each",
    "fused_kernels": "of each row of router, permute, or norm and quantisation kernels only one is launched",
    "collection_at_edges": "each step that collected does so once, as it begins",
    "token_counts_stay": "nothing waits for token counts",
    "expert_overlap": "exchanges hide under the compute of the other microbatch, slowed as measured here",
    "faster_dispatcher": "what moves takes less time by the published factors, waiting for peers does not",
    "recompute_dropped": "recomputed stretches are gone, with their launches and collectives",
    "recompute_narrowed": "of recomputed stretches only norms and activations are left",
    "no_retries": "allocator calls after the first step are gone",
    "grouped_experts": "GEMMs of the experts in a row are one, by whole waves of blocks",
}
"""How kinds of change are called where people read."""


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
    yield from _section("Replayed as", (_CHANGES[change] for change in fix.changes(run)))
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
    spelled = [f"{name}: {between(name).join(knobs[key])}" for key, name in SPELLINGS if knobs[key]]
    if fix.pytorch:
        spelled.append(f"PyTorch, where the run is not Megatron's: {'; '.join(fix.pytorch.code)}")
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
