"""The site: a page has one place, made pages equal what `explain` and the schemas hold, none fetches more."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reports.content.explain.page import explain_page, explained
from reports.content.page import View
from reports.write.text import write_text
from tests.read_back.visible_text import of_markdown
from tests.site.build import navigation, written
from tests.site.reference import SCHEMAS, WORDS, entry, keys, made


def test_every_page_has_one_place_in_the_navigation() -> None:
    placed = sorted(page for section in navigation() for page in section.pages)
    assert placed == sorted([*written(), *made()])


def test_every_kind_of_word_that_explain_knows_has_one_page() -> None:
    for kind in explained():
        assert len([name for name, page in WORDS.items() if kind.startswith(page.kinds)]) == 1, kind


@pytest.mark.parametrize("page", WORDS)
def test_a_page_of_words_has_what_explain_prints(page: str) -> None:
    """Word for word, in the same order; a heading that repeats the kind is left out."""
    for name in WORDS[page].names():
        found = explain_page(name)
        printed = write_text(found, View(width=200))
        if len(found.blocks) == 1:
            kind = "".join(map(str, found.facts))
            printed = printed.replace(f"\n{kind.upper()}\n", "\n")
        assert plain(of_markdown(entry(name))) == plain(printed), name


@pytest.mark.parametrize("file", SCHEMAS, ids=[file.name for file in SCHEMAS])
def test_a_page_of_keys_has_every_key_of_its_schema_with_its_meaning(file: Path) -> None:
    text = keys(file)
    for name, section in json.loads(file.read_text(encoding="utf-8"))["$defs"].items():
        (own,) = re.findall(rf"^## {name}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
        rows = re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", own, re.MULTILINE)
        properties = section.get("properties", {})
        assert [key for key, _ in rows] == [*properties]
        for key, meaning in rows:
            assert plain(of_markdown(meaning)) == plain(properties[key].get("description", ""))


def plain(text: str) -> str:
    """Words and numbers alone: no marks, capitals or line breaks."""
    return " ".join(re.findall(r"\w+", text.lower()))
