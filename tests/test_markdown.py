"""The document as GitHub markdown: what is open, what is folded, and what a foreign name cannot do."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import diagnoser
from reports.document import Document
from reports.markdown import render_markdown
from reports.markdown_marks import code, plain, table
from tests.document_doubles import DISPATCH, HOSTILE, exposed, graph_only
from traces.simulate.recording import Recording

Export = Callable[..., Path]
GOLDEN = Path(__file__).parent / "golden"
GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OURS = {"<code>", "</code>", "<span>", "</span>"}
BLOCK = re.compile(r"<details><summary>[^<>]*</summary>\n|</details>\n")


@pytest.fixture
def document(export: Export) -> Document:
    return diagnoser.analyze(export(exposed())).to_dict()


@pytest.fixture
def with_fixes(export: Export) -> Document:
    return diagnoser.analyze(export(exposed(comm=DISPATCH))).to_dict()


def pieces(text: str) -> Iterator[Any]:
    """What a reader of the page gets: every token, those within lines too."""
    for token in GITHUB.parse(text):
        yield token
        yield from token.children or ()


def shown(text: str) -> str:
    return "".join(one.content for one in pieces(text) if one.type == "text")


def is_ours_alone(text: str) -> bool:
    """No link, image, code of its own, emphasis within foreign text, nor any tag but ours."""
    found = list(pieces(text))
    tags = {one.content for one in found if one.type == "html_inline"}
    blocks = "".join(one.content for one in found if one.type == "html_block")
    foreign = {"link_open", "image", "code_inline", "fence", "code_block", "em_open", "s_open", "hr"}
    return tags <= OURS and not BLOCK.sub("", blocks).strip() and not foreign & {one.type for one in found}


def open_lines(text: str) -> list[str]:
    folded = re.compile(r"<details>.*?</details>\n", re.DOTALL)
    return [line for line in folded.sub("", text).splitlines() if line]


def replaced(value: Any, text: str, kept: tuple[str, ...]) -> Any:
    """The document with every string that is not one of our own keywords replaced."""
    if isinstance(value, dict):
        return {key: part if key in kept else replaced(part, text, kept) for key, part in value.items()}
    if isinstance(value, list):
        return [replaced(part, text, kept) for part in value]
    return text if isinstance(value, str) else value


@pytest.mark.parametrize("everything", [False, True])
def test_the_markdown_reads_as_reviewed(
    document: Document, everything: bool, request: pytest.FixtureRequest
) -> None:
    text = render_markdown(document, everything)
    assert text.endswith(".\n")
    assert text == render_markdown(copy.deepcopy(document), everything)
    if not everything:
        golden = GOLDEN / "exposed.md"
        if request.config.getoption("--update-golden"):
            golden.write_text(text, encoding="utf-8")
        assert text == golden.read_text(encoding="utf-8")


def test_verdict_why_and_next_come_first_and_about_sixty_lines_are_open(document: Document) -> None:
    text = render_markdown(document)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "Verdict",
        "Why",
        "Next",
        "Where the time goes",
        "How to reproduce",
    ]
    assert len(open_lines(text)) <= 60
    assert text.count("<details>") == text.count("</details>") >= 5


def test_times_are_per_step_and_exact_and_ranges_are_in_seconds_and_ns(document: Document) -> None:
    text = render_markdown(document)
    assert "n = 4 steps" in text
    assert "ms per step: median 10.000, min 10.000, max 10.000" in text
    assert "0.001000000s to 0.041000000s (1000000 to 41000000 ns)" in text
    assert "| exposed_comm | 3.000 | 30.0 % | 12,000,000 |" in text
    assert "| communication | finding | 3.000 | 30.0 % |" in text


def test_what_could_not_be_told_is_said_and_never_zero(export: Export) -> None:
    text = render_markdown(diagnoser.analyze(export(graph_only())).to_dict())
    assert "| exposed_comm | not told | not told | not told |" in text
    assert "| busy | 0.000 | 90.0 % | 90 |" in text
    assert "| communication | not measurable: " in text


def test_a_finding_whose_cost_is_not_told_is_no_zero(document: Document) -> None:
    wall = next(one for one in document["walls"] if one["id"] == "communication")
    wall |= {"cost_ns": None, "cost_frac": None, "cost_by_kind_ns": None}
    text = render_markdown(document)
    assert "| communication | finding | not told | not told |" in text
    assert "**communication (all reduce). " in text
    assert "Without it the run" not in text


def test_numbers_are_right_aligned(document: Document) -> None:
    lines = render_markdown(document).splitlines()
    heads = [place for place, line in enumerate(lines) if line.startswith("| :--")]
    assert "--:" in lines[heads[0]]
    for place in heads:
        assert lines[place].count("|") == lines[place - 1].count("|") == lines[place + 1].count("|")


def test_it_ends_with_the_command_and_both_versions(document: Document) -> None:
    text = render_markdown(document)
    assert "<code>moe-diag analyze run.sqlite -f markdown</code>" in text
    assert f"moe-diag {diagnoser.__version__}, guidance {document['tool']['guidance']}, document 1.0." in text


def test_all_shows_more_fixes_and_the_refused_ones(with_fixes: Document) -> None:
    some, every = render_markdown(with_fixes), render_markdown(with_fixes, everything=True)
    assert len(open_lines(some)) <= 60
    assert some.count("<summary>More about ") == min(3, len(with_fixes["fixes"])) > 1
    assert "with <code>--all</code>" in some
    assert "--all</code>" not in every
    for one in [*with_fixes["fixes"], *with_fixes["refused"]]:
        assert f"**{one['id']}**" in every


def test_several_ranks_stand_in_a_table_and_fold_one_by_one(document: Document) -> None:
    document["ranks"] = [{**document["ranks"][0], "rank": number} for number in range(10)]
    text = render_markdown(document)
    assert text.count("<details><summary>rank ") == 8
    assert "2 more ranks are in the JSON document." in text
    assert len(open_lines(text)) <= 60
    assert "| Wall | Outcome | At most, ms of all windows | Share |" in text


def test_a_hostile_kernel_name_reads_as_itself(export: Export) -> None:
    recording: Recording = exposed(kernel=HOSTILE)
    text = render_markdown(diagnoser.analyze(export(recording)).to_dict())
    assert is_ours_alone(text)
    assert "<script" not in text
    assert not {"\u202e", "\x1b", "\r"} & set(text)
    assert "a|b`c`<script>alert(1)</script> # head turned [31m*x* _y_ [z](http://e.vil) @all #1" in shown(
        text
    )


KEYWORDS = ("id", "wall", "path", "kind", "bound", "outcome", "unit", "source", "state")


@pytest.mark.parametrize("everything", [False, True])
def test_no_string_of_a_document_can_harm_the_page(with_fixes: Document, everything: bool) -> None:
    assert is_ours_alone(render_markdown(replaced(with_fixes, HOSTILE, KEYWORDS), everything))


def test_no_string_of_a_document_adds_a_line_or_a_table(with_fixes: Document) -> None:
    texts = [
        render_markdown(replaced(with_fixes, text, KEYWORDS), everything=True) for text in ("x", HOSTILE)
    ]
    plain_lines, hostile_lines = (text.splitlines() for text in texts)
    assert len(plain_lines) == len(hostile_lines)
    kinds = [[one.type for one in GITHUB.parse(text)] for text in texts]
    assert kinds[0] == kinds[1]


def test_the_hostile_tests_can_fail() -> None:
    for harm in ("[z](http://e.vil)", "<script>", "`x`", "*x*", "~~x~~", "![z](x)"):
        assert not is_ours_alone(f"| {harm} |\n")


@given(st.text())
def test_plain_text_reads_as_itself_whatever_it_is(text: str) -> None:
    line = f"before {plain(text)} after"
    assert is_ours_alone(line)
    assert "\n" not in line
    wanted = " ".join(
        f"before {''.join(' ' if not one.isprintable() else one for one in text)} after".split()
    )
    assert " ".join(shown(line).split()) == wanted


@given(st.text(), st.text())
def test_a_cell_stays_one_cell_whatever_is_in_it(first: str, second: str) -> None:
    text = "\n".join(table(["a", "b"], [[code(first), code(second)]]))
    assert [one.type for one in pieces(text)].count("td_open") == 2


def test_mentions_references_and_addresses_are_taken_apart() -> None:
    assert plain("@all #12 www.e.vil http://e.vil") == (
        "<span>@</span>all <span>#</span>12 www&#46;e.vil http&#58;//e.vil"
    )
    assert plain("moe_router_dtype: fp32") == "moe_router_dtype: fp32"
