"""Pages as GitHub markdown: what is open, what is folded, and what a foreign name cannot do."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reports.content.blocks import BlockRow, CodeBlock, Column, Fold, Sentence, Table
from reports.content.page import Page, View
from reports.write.github import LENGTH, harmless, write_github
from tests.doubles.blocks import full_page
from tests.doubles.document import HOSTILE
from tests.places import GOLDEN, Reviewed
from tests.read_back.markdown import GITHUB, is_ours_alone, pieces, shown

WORSE = ("- x", "1. x", "+ x", "---", "=", "    x", "> x", "```", "<!--", "</details>", "&#42;x&#42;", "|")


def paragraph(text: str) -> Page:
    return Page(("t",), (), (Sentence((text,)),))


def test_every_block_reads_as_reviewed(reviewed: Reviewed) -> None:
    text = write_github(full_page(), View())
    assert text == reviewed(GOLDEN / "blocks.md", text)


@pytest.mark.parametrize("hostile", [HOSTILE, *WORSE])
def test_no_foreign_text_can_harm_the_page_or_add_a_block(hostile: str) -> None:
    calm, harmed = (write_github(full_page(text), View(keys=True)) for text in ("x", hostile))
    assert is_ours_alone(harmed)
    assert len(calm.splitlines()) == len(harmed.splitlines())
    assert [one.type for one in GITHUB.parse(calm)] == [one.type for one in GITHUB.parse(harmed)]
    assert not {"\u202e", "\x1b", "\r"} & set(harmed)


@given(st.text())
@example("1) x")
@example("--")
@example("before")
def test_plain_text_reads_as_itself_whatever_it_is(text: str) -> None:
    inside, written = f"before {harmless(text)} after", write_github(paragraph(f"{text} after"), View())
    for line, before in ((inside, "before "), (written, "")):
        assert is_ours_alone(line)
        said = "".join(char if char.isprintable() else " " for char in text)
        assert f"{said} after".split() == shown(line).removeprefix("t").removeprefix(before).split()
    assert [one.type for one in GITHUB.parse(line)].count("paragraph_open") == 1


@given(st.text())
@example("```\n# x")
def test_lines_to_copy_end_no_fence(text: str) -> None:
    page = Page(("t",), (), (CodeBlock((text, "end")),))
    (fence,) = [one for one in GITHUB.parse(write_github(page, View())) if one.type == "fence"]
    assert fence.content.endswith("\nend\n")


@given(st.text(), st.text())
def test_a_cell_stays_one_cell_whatever_is_in_it(first: str, second: str) -> None:
    table = Table("", (Column("a"), Column("b")), (BlockRow(((first,), (second,))),))
    page = Page(("t",), (), (table,))
    assert [one.type for one in pieces(write_github(page, View()))].count("td_open") == 2


def test_what_no_ticket_takes_is_left_out_whole_and_named() -> None:
    folds = tuple(Fold(f"part {place}", (Sentence(("x" * 600,)),) * 50) for place in range(4))
    text = write_github(Page(("t",), (), folds, more="end"), View())
    assert len(text) <= LENGTH.value
    assert re.findall("<summary>(.*?)</summary>", text) == ["part 0", "part 1"]
    assert text.endswith(
        "\nLeft out, as a ticket takes 65,536 characters: part 2; part 3. See the report with -f html.\n"
    )


def test_mentions_references_and_addresses_are_taken_apart() -> None:
    assert harmless("@all #12 www.e.vil http://e.vil") == (
        "<span>@</span>all <span>#</span>12 www&#46;e.vil http&#58;//e.vil"
    )
    assert harmless("moe_router_dtype: fp32") == "moe_router_dtype: fp32"
