"""Whatever a page calls something, `explain` knows it: labels, titles, heads, keys, and names in capitals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

import diagnoser
from diagnoser.demo import RECORDINGS, SEVERAL
from heuristics.result.result import Result
from reports.content import analysis
from reports.content.blocks import (
    Bar,
    Block,
    Command,
    Fold,
    Headline,
    Items,
    Part,
    Plan,
    Sentence,
    Table,
    Term,
    Words,
)
from reports.content.explain.page import explain_page
from reports.content.page import Detail, Page, View
from reports.formats import page_of
from reports.result.codec import decode
from reports.write.text import write_text
from tests.recordings.simulated import scenario
from traces.errors import UsageError

CAPITALS = re.compile(r"\b(?:[A-Z]{2,}|[A-Z][a-z]+[A-Z])[A-Za-z0-9]*\b")
"""Abbreviations, and names with a capital within."""
CODE = re.compile(r"[\w.]+\.[\w.]+|\w+[=(_]\w*|\w*_\w+|--[\w-]+|\S+/\S+|<[^>]*>|\bPG509|\b[A-Z]+-\d+")
"""Lines to type, files and ids within a sentence."""
FOREIGN = frozenset(
    {"SKILL", "README", "MAP", "CSV", "BASE", "NEW", "LOG", "FILE", "FOLDER", "AC", "LM", "REGEX", "OR"}
)
"""What stands for the user's own files, and parts of names of GPUs and threads."""
NOTES = ("Sources:", "Elsewhere:", "Verify:", "Known issue", "Side effect:", "Versions:")
"""Notes of the whole plan that quote publications and settings."""


@cache
def explained(word: str) -> bool:
    try:
        explain_page(word)
    except UsageError:
        return False
    return True


def said(several: Words) -> Iterator[str]:
    text = "".join(one if isinstance(one, str) else " " for one in several)
    if not text.startswith(NOTES):
        yield from (one for one in CAPITALS.findall(CODE.sub(" ", text)) if one not in FOREIGN)
    yield from (one.key for one in several if isinstance(one, Term))


def words_of(block: Block) -> Iterator[str]:
    yield from filter(None, (getattr(block, "title", ""), getattr(block, "label", "")))
    match block:
        case Headline(said=one, under=under):
            for each in (one, *under):
                yield from said(each)
        case Sentence(said=one):
            yield from said(one)
        case Command(said=text):
            yield from said((text,))
        case Items(items=several):
            for each in several:
                yield from said(each)
        case Table(columns=columns, rows=rows, note=note):
            yield from (one.title for one in columns if one.title)
            for each in (note, *(cell for row in rows for cell in row.cells if isinstance(cell, tuple))):
                yield from said(each)
        case Bar(pieces=pieces, note=note):
            yield from (one.name for one in pieces)
            yield from said(note)
        case Plan(steps=steps, together=together):
            for step in steps:
                yield from filter(None, (step.id, step.saves, *(one.name for one in step.spellings)))
                for each in (step.title, together, *step.notes):
                    yield from said(each)
        case Part(blocks=inner) | Fold(blocks=inner):
            for part in inner:
                yield from words_of(part)


def unexplained(page: Page) -> set[str]:
    return {one for block in page.blocks for one in words_of(block) if not explained(one)}


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("name", [name for name in RECORDINGS if name not in SEVERAL])
def test_every_word_of_a_diagnosis_is_explained(name: str, detail: Detail) -> None:
    assert unexplained(analysis.page(decode(scenario(name), Result), detail)) == set()


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize(
    ("base", "new"),
    [("communication", "deepep"), ("healthy", "host_overhead"), ("healthy", "healthy"), ("compute", "dense")],
)
def test_every_word_of_a_comparison_is_explained(base: str, new: str, detail: Detail) -> None:
    one, other = scenario(base), scenario(new)
    assert unexplained(page_of(diagnoser.compare(one, other).result, detail)) == set()


@pytest.mark.parametrize(
    "word",
    [
        "straggler", "bubble", "launch-bound", "com2", "rest", "CUDA_DEVICE_MAX_CONNECTIONS",
        "DO THIS, in this order", "8 of 8 ranks", "EP32", "targets 49 %",
    ],
)  # fmt: skip
def test_words_of_the_field_and_lines_as_they_are_printed_are_explained(word: str) -> None:
    assert explained(word)


@pytest.mark.parametrize(
    "word", ["memory", "COM-2", "dispatcher", "host_overhead", "HST-3", "ledger", "CMP-3"]
)
@pytest.mark.parametrize("width", [80, 120])
def test_an_explanation_is_one_screen_and_says_where_the_rest_stands(word: str, width: int) -> None:
    whole = write_text(explain_page(word), View(width))
    first = write_text(explain_page(word, detail=Detail.FIRST), View(width))
    assert len(first.splitlines()) <= 40
    assert (first == whole) == (f"moe-diag explain {word} --full" not in first)


def test_a_choice_is_told_by_one_edition_of_the_guides_the_newest_unless_asked() -> None:
    newest, seed = (
        write_text(explain_page("COM-2", edition), View(4000)) for edition in ("main-2026-08", "seed")
    )
    assert ("nvl8:" in newest, "blackwell-nvl8:" in newest) == (True, False)
    assert ("blackwell-nvl8:" in seed, "; nvl8:" in seed) == (True, False)
