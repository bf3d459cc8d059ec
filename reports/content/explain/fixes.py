"""A fix in words: what it changes, its spellings, what it needs, what it gave elsewhere, how to
verify it.

With what NVIDIA's guides choose by: each rule, and the table of a choice in one of their editions.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec.structs import replace

from heuristics.config.about import Given, Guidance
from heuristics.facts.groups import FEW_CHOICES, SMALL_EXPERT
from heuristics.fixes.catalogue import CATALOGUE, fixes_of
from heuristics.fixes.change import sentences as sentences_of
from heuristics.fixes.fix import Fix
from heuristics.fixes.needs import limit_place
from heuristics.guides import dispatcher
from heuristics.guides.modules import MODULES
from heuristics.guides.situation import LARGE_EP, SMALL_EP
from heuristics.guides.table import GuideRow, facts_of, table
from heuristics.incidents.incident import known_issues
from heuristics.recipes import RECIPES
from heuristics.run.run import Run
from reports.content.blocks import Blocks, Code, Sentence, Term, Words, items, words
from reports.content.explain.topic import Topic, paragraphs, sentence, sentences
from reports.content.explain.walls import limit_items
from reports.content.names import around, codes, ended, issue_sentence, joined, name_of, optional
from reports.measures import words_of
from reports.rows import each

_EP: Final = 64
"""An example that every row of the tables on all-to-all allows."""
_SMALL_EXPERTS: Final = (
    f"experts up to {SMALL_EXPERT.value:,.0f} wide, {FEW_CHOICES.value:.0f} a token"
)


def guide_topics(edition: Guidance) -> Iterator[Topic]:
    """Tables and rules of one edition, and rules that the other alone has."""
    for name, about in words_of("guide_table").items():
        yield Topic(name, f"table of the guide on {about}", partial(_table, name, edition))
        editions, seen = table(name), set()
        for each_edition in dict.fromkeys((edition, *editions)):
            kind = f"rule of the guide on {about}, {each_edition}"
            for row in editions[each_edition]:
                if row.id not in seen:
                    yield Topic(row.id, kind, partial(_row, row))
            seen.update(each(editions[each_edition], "id"))
    text = ("", _NOT_FIRST), ("Source", table("dispatcher")["seed"][0].source)
    yield Topic(dispatcher.NOT_FIRST, "rule of the guide on dispatchers", partial(sentences, *text))


_NOT_FIRST: Final = (
    "Expert all-to-all costs too little of the step for another dispatcher to be the first "
    "change, so the dispatcher that runs is kept."
)


def _table(name: str, edition: Guidance) -> Blocks:
    other = next((other_edition for other_edition in table(name) if other_edition != edition), None)
    how_to_read = (
        f"Edition {edition}: the first row that holds decides; what is unknown is passed over "
        f"and asked for."
    )
    yield from sentence(how_to_read + optional(" Another edition: --guidance {}.", other), "Guide")
    rows = []
    for row in table(name)[edition]:
        how_to_read = f": {_answer(row)}, {_when(row)}. Why: {ended(row.reason)}"
        rows.append(words(Code(row.id), how_to_read))
    yield from items("", rows)
    if name == "recompute":
        needs = [
            f"{label}: needs {module.needs}{optional('; not recommended: {}', module.avoid)}"
            for label, module in MODULES.items()
        ]
        yield from items("Modules", needs)


def _when(row: GuideRow) -> str:
    if not row.when:
        return "otherwise"
    conditions, fact_names = [], {**words_of("guide_fact"), "small_experts": _SMALL_EXPERTS}
    for name, values in facts_of(row.when):
        values_text = " or ".join(map(_called, map(str, values)))
        conditions.append(f"{fact_names[name]}: {values_text}")
    return f"where {'; '.join(conditions)}"


def _called(value: str) -> str:
    return _SIZES.get(value) or words_of("guide_value").get(value, value)


_SIZES: Final = {
    "small": f"up to {SMALL_EP.value:.0f}",
    "medium": f"{SMALL_EP.value + 1:.0f} to {LARGE_EP.value - 1:.0f}",
    "large": f"{LARGE_EP.value:.0f} or more",
}


def _answer(row: GuideRow) -> str:
    if not row.winner:
        return f"measure {' against '.join(row.answer)}"
    if row.how:
        return f"{row.how} {' '.join(row.answer)}".strip()
    return row.answer[0] + optional(", then {}", row.answer[1:], ", ".join)


def _row(row: GuideRow) -> Blocks:
    yield from sentences(
        ("", ended(row.reason)),
        ("Chooses", ended(f"{_answer(row)}, {_when(row)}")),
        ("Then, one at a time", " ".join(row.then)),
        ("Never", " ".join(row.never)),
    )
    yield from items("With it", row.settings)
    yield from sentence(row.source, "Source")


def fix_topics(edition: Guidance) -> Iterator[Topic]:
    for number, fix in fixes_of("megatron").items():
        yield Topic(number, "fix", partial(_fix, fix, edition), fix.title)


def _fix(fix: Fix, edition: Guidance) -> Blocks:
    """What matters first stands first: a short page ends where its room does.

    Its knobs and needs are those for a run of which nothing is known.
    """
    run = Run()
    if fix.doc:
        yield from paragraphs(f"{fix.id}: {fix.doc}")
    kinds = around(", of its cost ", joined(map(Term, fix.kinds)))
    yield Sentence(words(f"For the wall {name_of(fix.wall)}", kinds, "."))
    if guide := words_of("table_of_fix").get(
        fix.id
    ):  # row by row; when and why stands with the table
        rows = joined(
            (words(Code(row.id), f": {_answer(row)}") for row in table(guide)[edition]), "; "
        )
        start = f"Edition {edition}, the first rule that holds: "
        end = f". When and why: moe-diag explain {guide}."
        yield Sentence(words(start, rows, end), "Guide", whole=True)
    yield from _knobs(fix, run)
    needs = []
    for need in fix.preconditions(run):
        how = "to check" if need.state == "unknown" else "to meet it"
        needs.append(need.text + optional(f" ({how}: {{}})", need.cure))
    issues = (issue_sentence(issue, of_a_run=False) for issue in known_issues(fix.id, {}, Run()))
    limits, numbers = [], []
    for limit in fix.limits:
        if number := RECIPES.get(limit):
            numbers.append(f"{number.value:g} {number.unit}: {number.source}")
        else:
            limits.append(":".join(limit_place(limit)))
    change_names = words_of("replayed_change")
    lists = {
        "Needs": needs,
        "Side effects": fix.side_effects,
        "Known issues": issues,
        "Verify in the next recording": [fix.verify],
        "Versions": [fix.versions],
        "Replayed as": [change_names.get(change, change) for change in fix.changes(run)],
        "Measured elsewhere": [f"{gain.text} ({gain.source})" for gain in fix.gains],
        "Not in one plan with": map(_titled, fix.excludes),
        "The same change as": map(_titled, filter(None, (fix.same_as,))),
    }
    for title, entries in lists.items():
        yield from items(title, entries)
    yield from limit_items(limits, "Limits in it")
    yield from items("Numbers in it", numbers)
    yield from items("Sources", fix.sources)


def _knobs(fix: Fix, run: Run) -> Blocks:
    """As a plan types them, where the GPU decides; else as for a run of which nothing is known."""
    if words_of("table_of_fix").get(fix.id) in ("dispatcher", "precision"):
        for gpu in ("H100", "GB200"):
            given = Given(gpu=gpu, ep=_EP, etp=1, stage="tuned", flex_package=True)
            yield from items(f"Knobs, as on {gpu} with EP {_EP}", _spelled(fix, Run(given=given)))
        return
    none = [
        words("none for a run of which nothing is known: they depend on what is asked for below")
    ]
    how = dict.fromkeys(sentences_of(fix.change(run), run))
    if fix.pytorch:
        how |= dict.fromkeys(fix.pytorch.change(run).how)
    known = (*_spelled(fix, run), *map(words, how))
    yield from items("Knobs, as for a run of which nothing is known", known or none)


def _spelled(fix: Fix, run: Run) -> Iterator[Words]:
    knobs = fix.knobs(run)
    if fix.pytorch:
        knobs = replace(knobs, pytorch=fix.pytorch.change(run).pytorch)
    for field, name in words_of("change_spelling").items():
        if lines := getattr(knobs, field):
            yield words(f"{name}: ", codes(lines))


def _titled(number: str) -> str:
    if number in CATALOGUE:
        return f"{number} {CATALOGUE[number].title}"
    return number
