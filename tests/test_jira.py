"""The ticket in Jira's markup: it keeps the grammar, holds what the markdown holds, and fits a field."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import diagnoser
from reports.comparison.jira import render_comparison_jira
from reports.comparison.markdown import comparison_page
from reports.document import Document
from reports.jira import render_jira
from reports.jira_marks import jira, jira_plain, jira_size
from reports.markdown import analysis_page
from reports.markdown_blocks import Code, Command, Fold, Item, Items, Line, Page, Section, Strong, table
from reports.markdown_room import JIRA_LENGTH, within
from tests.comparison_document_doubles import document_of, not_comparable, regression, undecided
from tests.document_doubles import DISPATCH, HOSTILE, exposed, graph_only
from tests.jira_grammar import Broken, read, words
from tests.planted import replaced
from tests.test_markdown import KEYWORDS, open_lines

Export = Callable[..., Path]
GOLDEN = Path(__file__).parent / "golden"
COMPARED = ("verdict", "state", "source", "change", "kind", "wall", "by", "confidence", "row")
WORSE = HOSTILE + " {code} {{ x }} !y! COM-2 http://e.vil (x) :) -- --- -z- +z+ ??z?? h1. bq. \\ [~all] ~q~"


@pytest.fixture
def document(export: Export) -> Document:
    found = diagnoser.analyze(export(exposed(comm=DISPATCH))).to_dict()
    return {**found, "command": "moe-diag analyze run.sqlite --ep 16"}


def compared(make: Callable[..., object] = regression) -> Document:
    return document_of(make())  # type: ignore[arg-type]


def seen(text: str) -> str:
    return " ".join(" ".join(part.cells) for part in read(text))


def test_the_ticket_reads_as_reviewed(document: Document, request: pytest.FixtureRequest) -> None:
    text, golden = render_jira(document), GOLDEN / "dispatch.jira.txt"
    if request.config.getoption("--update-golden"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_verdict_why_and_next_come_first_and_details_last(document: Document) -> None:
    headings = [(part.mark, part.cells[0]) for part in read(render_jira(document)) if part.mark[0:1] == "h"]
    assert headings[:4] == [
        ("h2", "moe-diag: where the step goes"),
        ("h3", "Verdict"),
        ("h3", "Why"),
        ("h3", "Next"),
    ]
    last = headings.index(("h3", "Details"))
    assert all(mark in ("h4", "h5") for mark, _ in headings[last + 1 :])
    assert ("h4", "Evidence of each wall") in headings[last:]


def test_it_says_what_the_markdown_says(document: Document) -> None:
    said = seen(render_jira(document))
    first = document["fixes"][0]
    assert f"{first['id']} {first['title']}" in said
    assert all(knob in said for knob in first["knobs"]["megatron_lm"])
    assert first["verify"] in said
    assert "moe-diag analyze run.sqlite --ep 16" in said
    assert "n = 4 steps" in said
    assert "0.001000000s to 0.041000000s (1000000 to 41000000 ns)" in said
    assert "exposed_comm 3.000 30.0 % 12,000,000" in said


def test_the_command_stands_alone_as_it_is_typed(document: Document) -> None:
    assert "{noformat}\nmoe-diag analyze run.sqlite --ep 16\n{noformat}\n" in render_jira(document)
    text = render_jira({**document, "command": "moe-diag analyze '{noformat}.sqlite'"})
    assert "moe-diag analyze '{noformat}.sqlite'" in seen(text)


@pytest.mark.parametrize("everything", [False, True])
def test_every_ticket_keeps_the_grammar(document: Document, everything: bool) -> None:
    assert len(read(render_jira(document, everything))) > 30
    for make in (regression, undecided, not_comparable):
        assert len(read(render_comparison_jira(compared(make), everything))) > 30


def test_a_ticket_without_kernels_keeps_the_grammar(export: Export) -> None:
    parts = read(render_jira(diagnoser.analyze(export(graph_only())).to_dict()))
    assert ("communication", "not measurable", "not told", "not told") in [part.cells for part in parts]


@pytest.mark.parametrize("everything", [False, True])
def test_no_string_of_a_document_can_break_the_grammar_or_add_a_line(
    document: Document, everything: bool
) -> None:
    del document["command"]  # one with a brace is written in another way
    pages: list[Callable[[str], Page]] = [
        (lambda text: analysis_page(replaced(document, text, KEYWORDS), everything)),
        (lambda text: comparison_page(replaced(compared(), text, COMPARED), everything)),
    ]
    for page in pages:
        calm, hostile = (read(jira(page(text))) for text in ("x", WORSE))
        assert [(part.mark, len(part.cells)) for part in calm] == [
            (part.mark, len(part.cells)) for part in hostile
        ]
    assert not {"\u202e", "\x1b", "\r"} & set(render_jira(replaced(document, WORSE, KEYWORDS), everything))


def test_a_hostile_kernel_name_reads_as_itself(export: Export) -> None:
    text = render_jira(diagnoser.analyze(export(exposed(kernel=HOSTILE))).to_dict())
    assert "a|b`c`<script>alert(1)</script> # head turned [31m*x* _y_ [z](http://e.vil) @all #1" in seen(text)


@given(st.text())
def test_plain_text_reads_as_itself_whatever_it_is(text: str) -> None:
    wanted = "".join(char if char.isprintable() else " " for char in text)
    assert words(f"before {jira_plain(text)} after").split() == f"before {wanted} after".split()


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_cell_stays_one_cell_whatever_is_in_it(first: str, second: str) -> None:
    page = Page("x", (Section("", tuple(table(["a", "b"], [[(Code(f"c{first}"),), second]]))),))
    rows = [part for part in read(jira(page)) if part.mark == "|"]
    assert [len(row.cells) for row in rows] == [2]


@given(st.text(min_size=1))
@example(" #")
@example(" h1.")
def test_a_line_and_an_item_stay_one_whatever_they_say(text: str) -> None:
    listed = Items((Item((Strong("s"), f" {text}"), (f"u {text}",)),), numbered=True)
    page = Page("x", (Section("", (Line(f"{text} end"), listed)),))
    assert [part.mark for part in read(jira(page))] == ["h2", "", "#", "#*"]


def test_folds_within_folds_go_one_heading_deeper() -> None:
    page = Page("t", (Section("s", (Fold("a", (Line("x"), Fold("b", (Line("y"),)))), Line("z"))),))
    assert [(part.mark, part.cells[0]) for part in read(jira(page))] == [
        ("h2", "t"),
        ("h3", "s"),
        ("", "z"),
        ("h3", "Details"),
        ("h4", "a"),
        ("", "x"),
        ("h5", "b"),
        ("", "y"),
    ]


def test_a_field_of_jira_holds_it_whatever_the_run(document: Document) -> None:
    document["ranks"] = [{**document["ranks"][0], "rank": number} for number in range(12)]
    for one in (document, replaced(document, "\U0001f600{" * 400, KEYWORDS)):
        text = render_jira(one, everything=True)
        assert jira_size(text) <= 32_767
        assert "Left out, as a ticket takes 32,767 characters: " in text
        assert "\nh3. Verdict\n" in text
        read(text)
    assert len(open_lines(render_jira(document).split("h3. Details")[0])) <= 60


def test_sections_are_left_out_whole_and_said_by_name() -> None:
    folds = tuple(Fold(f"part {place}", (Line("x" * 600),) * 20) for place in range(4))
    page = Page("t", (Section("", folds), Section("", (Line("end"), Command("again")))))
    text = within(page, jira, JIRA_LENGTH, jira_size)
    assert re.findall("^h4. (.*)$", text, re.MULTILINE) == ["part 0", "part 1"]
    assert text.count("x" * 600) == 40
    assert "characters: part 2; part 3. It is in the report with \\-f html." in text


def test_a_character_is_counted_as_jira_counts_it() -> None:
    assert jira_size("ab\n") == 4
    assert jira_size("\U0001f600") == 2


@pytest.mark.parametrize(
    "harm",
    [
        *("[z|http://e.vil]", "!x.png!", "{code}", "*x* *", "_x_ y", "-x- y", "+x+ y", "^x^", "~x~", "??x??"),
        *("a -- b", "(x)", "hi :)", "http://e.vil", "COM-2", "||a||b", "|a|b|", "# x\n### y", "a|b", "a\\b"),
        *("||a||b||\n|a|", "||a||\n|a||b|", "{noformat}\nx", "h1.x", "||a||\n|h1. b|", "a {{b} c"),
    ],
)
def test_the_grammar_refuses_what_would_harm(harm: str) -> None:
    with pytest.raises(Broken):
        read(harm)


def test_the_grammar_reads_what_it_allows() -> None:
    text = "h2. A\n\n*b c* {{d}} \\{e\\}\n\n# f\n#* g_h\n\n||i||j||\n|k\\|l| |\n"
    text += "\n{noformat}\n*x [y]\n{noformat}\n"
    assert [(part.mark, part.cells) for part in read(text)] == [
        ("h2", ("A",)),
        ("", ("b c d {e}",)),
        ("#", ("f",)),
        ("#*", ("g_h",)),
        ("||", ("i", "j")),
        ("|", ("k|l", "")),
        ("{noformat}", ("*x [y]",)),
    ]
