"""Pages in Jira's markup: they keep the grammar, hold what the markdown holds, and fit a field."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from reports.content.blocks import BlockRow, Code, CodeBlock, Column, Command, Fold, Items, Sentence, Table
from reports.content.page import Page, View
from reports.write.github import write_github
from reports.write.jira import LENGTH, harmless, jira_size, write_jira
from tests.doubles.blocks import full_page
from tests.doubles.document import HOSTILE
from tests.places import GOLDEN, Reviewed
from tests.read_back.jira_grammar import read, words
from tests.read_back.visible_text import of_markdown

WORSE = HOSTILE + " {code} {{ x }} !y! COM-2 http://e.vil (x) :) -- --- -z- +z+ ??z?? h1. bq. \\ [~all] ~q~"


def seen(text: str) -> str:
    return " ".join(" ".join(part.cells) for part in read(text))


def test_every_block_reads_as_reviewed(reviewed: Reviewed) -> None:
    text = write_jira(full_page(), View())
    assert text == reviewed(GOLDEN / "blocks.jira.txt", text)


def test_it_says_what_the_markdown_says() -> None:
    jira = seen(write_jira(full_page(), View()))
    markdown = of_markdown(write_github(full_page(), View()))
    words_of = [sorted(re.findall(r"[\w%-]+", said)) for said in (jira, markdown)]
    assert words_of[0] == words_of[1]
    assert len(words_of[0]) > 100


def test_lines_to_copy_stand_alone_as_they_are_typed() -> None:
    page = Page(("t",), (), (CodeBlock(("--a b", "--c")),))
    assert "{noformat}\n--a b\n--c\n{noformat}\n" in write_jira(page, View())
    page = Page(("t",), (), (CodeBlock(("--a '{noformat}'",)), Command("", "x '{noformat}'")))
    assert seen(write_jira(page, View())) == "t --a '{noformat}' x '{noformat}'"


def test_no_foreign_text_can_break_the_grammar_or_add_a_line() -> None:
    calm, hostile = (read(write_jira(full_page(text), View())) for text in ("x", WORSE.replace("{", "(")))
    assert [(part.mark, len(part.cells)) for part in calm] == [
        (part.mark, len(part.cells)) for part in hostile
    ]
    text = write_jira(full_page(WORSE), View())
    assert len(read(text)) > 30
    assert not {"\u202e", "\x1b", "\r"} & set(text)


@given(st.text())
def test_plain_text_reads_as_itself_whatever_it_is(text: str) -> None:
    wanted = "".join(char if char.isprintable() else " " for char in text)
    assert words(f"before {harmless(text)} after").split() == f"before {wanted} after".split()


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_cell_stays_one_cell_whatever_is_in_it(first: str, second: str) -> None:
    table = Table("", (Column("a"), Column("b")), (BlockRow(((Code(f"c{first}"),), (second,))),))
    rows = [part for part in read(write_jira(Page(("t",), (), (table,)), View())) if part.mark == "|"]
    assert [len(row.cells) for row in rows] == [2]


@given(st.text(min_size=1))
@example(" #")
@example(" h1.")
def test_a_line_and_an_item_stay_one_whatever_they_say(text: str) -> None:
    page = Page(("t",), (), (Sentence((f"{text} end",)), Items(((f"{text} end",),), numbered=True)))
    assert [part.mark for part in read(write_jira(page, View()))] == ["h2", "", "#"]


def test_a_field_of_jira_holds_it_however_long_its_names_are() -> None:
    folds = tuple(Fold(f"part {place}", (Sentence(("\U0001f600{" * 300,)),) * 20) for place in range(4))
    text = write_jira(Page(("t",), (), (Sentence(("open",)), *folds)), View())
    assert jira_size(text) <= LENGTH.value
    assert re.findall("^h3. (.*)$", text, re.MULTILINE) == ["part 0"]
    assert "Left out, as a ticket takes 32,767 characters: part 1; part 2; part 3." in text
    assert "\nopen\n" in text
