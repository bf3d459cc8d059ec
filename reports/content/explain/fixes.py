"""A fix in words: what it changes, its spellings, what it needs, what it gave elsewhere, how to verify it.

With what NVIDIA's guides choose by: each rule, and the table of a choice in one of their editions.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from heuristics.config.about import Given, Guidance
from heuristics.facts.groups import FEW_CHOICES, SMALL_EXPERT
from heuristics.fixes.catalogue import CATALOGUE, fixes_of
from heuristics.fixes.change import sentences
from heuristics.fixes.fix import Fix
from heuristics.fixes.needs import limit_place
from heuristics.fixes.precondition import Precondition
from heuristics.guides import dispatcher
from heuristics.guides.modules import MODULES
from heuristics.guides.situation import LARGE_EP, SMALL_EP
from heuristics.guides.table import Row, facts_of, table
from heuristics.incidents.incident import known_issues
from heuristics.recipes import RECIPES
from heuristics.run.run import Run
from reports.content.blocks import Block, Code, Sentence, Term, items, words
from reports.content.explain.topic import Topic, paragraphs, sentence
from reports.content.explain.walls import limit_items
from reports.content.names import codes, ended, issue_sentence, joined, name_of

_TABLES: Final = {
    "dispatcher": "dispatchers",
    "precision": "precision",
    "recompute": "recompute",
    "cuda_graphs": "CUDA graphs",
}
"""Table -> what its guide is on."""
_OF_FIXES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("COM-2", "MEM-5"), "dispatcher"),
    **dict.fromkeys(("CMP-3", "MEM-4"), "precision"),
    **dict.fromkeys(("MEM-2", "MEM-9"), "recompute"),
    **dict.fromkeys(("HST-3", "HST-7"), "cuda_graphs"),
}
"""Fix -> the table that decides what it sets."""
_BY_GPU: Final = tuple(id for id, name in _OF_FIXES.items() if name in ("dispatcher", "precision"))
"""What such a table sets depends on the GPU."""
_GPUS: Final = ("H100", "GB200")
_EP: Final = 64
"""An example that every row of the tables on all-to-all allows."""
_FACTS: Final[Mapping[str, str]] = {
    "package": "package of DeepEP or HybridEP",
    "stage": "stage",
    "stage_now": "stage",
    "hardware": "GPU",
    "architecture": "GPU",
    "family": "model",
    "ep_size": "EP",
    "crosses": "EP leaves the NVLink domain",
    "runs_low_precision": "FP8 or FP4",
    "memory_tight": "memory tight",
    "fp8_runs": "runs in FP8 already",
    "pressure": "memory pressure",
    "beyond_capacity": "the estimate is more than the GPU has",
    "more_than_there_is": "the run needs more memory than there is",
    "layers_recomputed": "whole layers recomputed",
    "exhausted": "all modules recomputed",
    "moe_recomputed": "whole MoE layer recomputed",
    "selective": "modules recomputed",
    "no_memory_error": "the run fits",
    "graphs_run": "CUDA graphs run already",
    "host_visible": "launch overhead visible",
    "experts_run": "experts",
    "routing": "routing",
    "sync_free": "no sync of expert sizes",
    "packed": "packed sequences",
    "flex_runs": "DeepEP or HybridEP runs, tuned",
    "small_experts": f"experts up to {SMALL_EXPERT.value:,.0f} wide, {FEW_CHOICES.value:.0f} a token",
}
"""Facts of the tables, as people read them."""
_VALUES: Final[Mapping[object, str]] = {
    True: "yes",
    False: "no",
    "hopper": "H100, H200",
    "blackwell_nvl8": "B200, B300",
    "nvl72": "GB200, GB300 (NVL72)",
    "blackwell": "Blackwell",
    "ampere": "A100",
    "volta": "V100 and older",
    "bring_up": "bring-up",
    "small": f"up to {SMALL_EP.value:.0f}",
    "medium": f"{SMALL_EP.value + 1:.0f} to {LARGE_EP.value - 1:.0f}",
    "large": f"{LARGE_EP.value:.0f} or more",
    "dsv3": "DeepSeek-V3",
    "qwen3_235b": "Qwen3 235B",
    "qwen3_30b": "Qwen3 30B",
    "qwen3_next": "Qwen3-Next",
    "vlm": "vision-language",
}


def guide_topics(edition: Guidance) -> Iterator[Topic]:
    """Tables and rules of one edition, and rules that the other alone has."""
    for name, about in _TABLES.items():
        yield Topic(name, f"table of the guide on {about}", partial(_table, name, edition))
        editions = table(name)
        others = (one for one in editions if one != edition)
        seen = set[str]()
        for one in (edition, *others):
            for row in editions[one]:
                if row.id not in seen:
                    yield Topic(row.id, f"rule of the guide on {about}, {one}", partial(_row, row))
            seen |= {row.id for row in editions[one]}
    yield Topic(dispatcher.NOT_FIRST, "rule of the guide on dispatchers", _not_first)


def _table(name: str, edition: Guidance) -> Iterator[Block]:
    others = [one for one in table(name) if one != edition]
    older = f" Another edition: --guidance {others[0]}." if others else ""
    said = (
        f"Edition {edition}: the first row that holds decides; what is unknown is passed over and asked for."
    )
    yield from sentence(f"{said}{older}", "Guide")
    rows = table(name)[edition]
    yield from items(
        "", (words(Code(row.id), f": {_answer(row)}, {_when(row)}. Why: {ended(row.reason)}") for row in rows)
    )
    if name == "recompute":
        needs = (
            f"{label}: needs {one.needs}" + (f"; not recommended: {one.avoid}" if one.avoid else "")
            for label, one in MODULES.items()
        )
        yield from items("Modules", needs)


def _guide(name: str, edition: Guidance) -> Sentence:
    """What the table chooses, row by row; when and why stands with the table."""
    rows = joined([words(Code(row.id), f": {_answer(row)}") for row in table(name)[edition]], "; ")
    start, end = (
        f"Edition {edition}, the first rule that holds: ",
        f". When and why: moe-diag explain {name}.",
    )
    return Sentence(words(start, rows, end), "Guide", whole=True)


def _when(row: Row) -> str:
    if row.when is None:
        return "otherwise"
    known = (
        f"{_FACTS[name]}: {' or '.join(_VALUES.get(value, str(value)) for value in values)}"
        for name, values in facts_of(row.when)
    )
    return f"where {'; '.join(known)}"


def _answer(row: Row) -> str:
    if not row.winner:
        return f"measure {' against '.join(row.answer)}"
    if row.how:
        return f"{row.how} {' '.join(row.answer)}".strip()
    first, *others = row.answer
    return f"{first}, then {', '.join(others)}" if others else first


def _row(row: Row) -> Iterator[Block]:
    yield from sentence(ended(row.reason))
    yield from sentence(ended(f"{_answer(row)}, {_when(row)}"), "Chooses")
    yield from sentence(" ".join(row.then), "Then, one at a time")
    yield from sentence(" ".join(row.never), "Never")
    yield from items("With it", row.settings)
    yield from sentence(row.source, "Source")


def _not_first() -> Iterator[Sentence]:
    yield from sentence(
        "Expert all-to-all costs too little of the step for another dispatcher to be the first change, so "
        "the dispatcher that runs is kept."
    )
    yield from sentence(table("dispatcher")["seed"][0].source, "Source")


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


def fix_topics(edition: Guidance) -> Iterator[Topic]:
    for number, fix in fixes_of("megatron").items():
        yield Topic(number, "fix", partial(_fix, fix, edition), fix.title)


def _fix(fix: Fix, edition: Guidance) -> Iterator[Block]:
    """What matters first stands first: a short page ends where its room does.

    Its knobs and needs are those for a run of which nothing is known.
    """
    run = Run()
    if fix.doc:
        yield from paragraphs(f"{fix.id}: {fix.doc}")
    kinds = words(", of its cost ", joined([(Term(kind),) for kind in fix.kinds])) if fix.kinds else ()
    yield Sentence(words(f"For the wall {name_of(fix.wall)}", kinds, "."))
    if fix.id in _OF_FIXES:
        yield _guide(_OF_FIXES[fix.id], edition)
    if fix.id in _BY_GPU:
        yield from _knobs_by_gpu(fix)
    else:
        yield from _knobs(fix, run)
    yield from items("Needs", map(_need, fix.preconditions(run)))
    yield from items("Side effects", fix.side_effects)
    yield from items(
        "Known issues", (issue_sentence(one, of_a_run=False) for one in known_issues(fix.id, {}, Run()))
    )
    yield from items("Verify in the next recording", [fix.verify])
    yield from items("Versions", [fix.versions])
    yield from items("Replayed as", (_CHANGES.get(change, change) for change in fix.changes(run)))
    yield from items("Measured elsewhere", (f"{gain.text} ({gain.source})" for gain in fix.gains))
    yield from items("Not in one plan with", map(_titled, fix.excludes))
    yield from items("The same change as", map(_titled, (fix.same_as,) if fix.same_as else ()))
    limits = [":".join(limit_place(one)) for one in fix.limits if one not in RECIPES]
    yield from limit_items(limits, "Limits in it")
    recipes = (RECIPES[one] for one in fix.limits if one in RECIPES)
    yield from items("Numbers in it", (f"{one.value:g} {one.unit}: {one.source}" for one in recipes))
    yield from items("Sources", fix.sources)


def _knobs_by_gpu(fix: Fix) -> Iterator[Block]:
    """As a plan types them, where the GPU decides."""
    for gpu in _GPUS:
        given = Given(gpu=gpu, ep=_EP, etp=1, stage="tuned", flex_package=True)
        known = [words(f"{name}: ", codes(lines)) for name, lines in _spelled(fix, Run(given=given)) if lines]
        yield from items(f"Knobs, as on {gpu} with EP {_EP}", known)


def _knobs(fix: Fix, run: Run) -> Iterator[Block]:
    known = [words(f"{name}: ", codes(lines)) for name, lines in _spelled(fix, run) if lines]
    none = [words("none for a run of which nothing is known: they depend on what is asked for below")]
    how = [words(one) for one in dict.fromkeys((*sentences(fix.change(run), run), *_in_pytorch(fix, run)))]
    yield from items("Knobs, as for a run of which nothing is known", (*known, *how) or none)


def _in_pytorch(fix: Fix, run: Run) -> tuple[str, ...]:
    return fix.pytorch.change(run).how if fix.pytorch else ()


def _spelled(fix: Fix, run: Run) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Lines of a change by whose they are."""
    knobs = fix.knobs(run)
    return (
        ("Megatron-LM", knobs.megatron_lm),
        ("Bridge", knobs.megatron_bridge),
        ("Bridge's scripts/performance", knobs.bridge_harness),
        ("environment", knobs.environment),
        ("PyTorch, where the run is not Megatron's", fix.pytorch.change(run).pytorch if fix.pytorch else ()),
    )


def _need(need: Precondition) -> str:
    if not need.cure:
        return need.text
    return f"{need.text} ({'to check' if need.state == 'unknown' else 'to meet it'}: {need.cure})"


def _titled(number: str) -> str:
    return f"{number} {CATALOGUE[number].title}" if number in CATALOGUE else number
