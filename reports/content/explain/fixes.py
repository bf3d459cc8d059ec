"""A fix in words: what it changes, its spellings, what it needs, what it gave elsewhere, how to verify."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from heuristics.fixes.catalogue import CATALOGUE, fixes_of
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.rules.known_issues import known_issues
from heuristics.run.run import Run
from reports.content.blocks import Block, Code, Sentence, Term, words
from reports.content.explain.guides import table_of
from reports.content.explain.limits import limit_items
from reports.content.explain.topic import Topic, listed, paragraphs
from reports.content.known_issues import issue_sentence
from reports.content.names import name_of
from reports.content.wording import joined

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


def fix_topics() -> Iterator[Topic]:
    """Every fix of the catalogue, then those of plug-ins."""
    for number, fix in fixes_of("megatron").items():
        yield Topic(number, "fix", partial(_fix, fix), fix.title)


def _fix(fix: Fix) -> Iterator[Block]:
    """Its knobs and needs are those for a run of which nothing is known."""
    run = Run()
    if fix.doc:
        yield from paragraphs(f"{fix.id}: {fix.doc}")
    kinds = words(", of its cost ", joined([(Term(kind),) for kind in fix.kinds])) if fix.kinds else ()
    yield Sentence(words(f"Acts on the wall {name_of(fix.wall)}", kinds, "."))
    yield from _knobs(fix, run)
    yield from listed("Versions", [fix.versions])
    yield from table_of(fix.id)
    yield from listed("Needs", map(_need, fix.preconditions(run)))
    yield from listed("Replayed as", (_CHANGES.get(change, change) for change in fix.changes(run)))
    yield from listed("Measured elsewhere", (f"{gain.text} ({gain.source})" for gain in fix.gains))
    yield from listed("Side effects", fix.side_effects)
    yield from listed(
        "Known issues", (issue_sentence(one, of_a_run=False) for one in known_issues(fix.id, {}, Run()))
    )
    yield from listed("Not in one plan with", map(_titled, fix.excludes))
    yield from listed("The same change as", map(_titled, (fix.same_as,) if fix.same_as else ()))
    yield from listed("Verify in the next recording", [fix.verify])
    yield from limit_items(
        (f"heuristics.fixes.{one.replace('.', ':')}" for one in fix.limits), "Numbers in it"
    )
    yield from listed("Sources", fix.sources)


def _knobs(fix: Fix, run: Run) -> Iterator[Block]:
    knobs = fix.knobs(run)
    spelled = (
        ("Megatron-LM", knobs.megatron_lm),
        ("Bridge", knobs.megatron_bridge),
        ("Bridge's scripts/performance", knobs.bridge_harness),
        ("environment", knobs.environment),
        ("PyTorch, where the run is not Megatron's", fix.pytorch.code if fix.pytorch else ()),
    )
    known = [words(f"{name}: ", joined([(Code(one),) for one in lines])) for name, lines in spelled if lines]
    none = [words("none for a run of which nothing is known: they depend on what is asked for below")]
    yield from listed("Knobs, as for a run of which nothing is known", known or none)


def _need(need: Precondition) -> str:
    if not need.cure:
        return need.text
    return f"{need.text} ({'to check' if need.state == 'unknown' else 'to meet it'}: {need.cure})"


def _titled(number: str) -> str:
    return f"{number} {CATALOGUE[number].title}" if number in CATALOGUE else number
