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
from reports.markdown import analysis_page, render_markdown
from reports.markdown_blocks import Code, Fold, Line, Page, Section, table
from reports.markdown_marks import github, plain
from reports.markdown_room import GITHUB_LENGTH, within
from tests.document_doubles import DISPATCH, HOSTILE, exposed, graph_only
from tests.planted import replaced
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
    """Lines with something on them that no fold holds."""
    found, depth = [], 0
    for line in text.splitlines():
        depth += line.startswith("<details>")
        if line and not depth:
            found.append(line)
        depth -= line == "</details>"
    assert depth == 0
    return found


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
    document = diagnoser.analyze(export(graph_only())).to_dict()
    text = render_markdown(document)
    assert "| exposed_comm | not told | not told | not told |" in text
    assert "| busy | 0.000 | 90.0 % | 90 |" in text
    assert "| communication | not measurable | not told | not told |" in text
    reasons = {"; ".join(wall["missing"]) for wall in document["walls"] if wall["missing"]}
    assert reasons
    assert all(f"{reason[1:]}." in shown(text) for reason in reasons)


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


def test_it_ends_with_the_command_the_versions_and_whether_it_is_redacted(document: Document) -> None:
    text = render_markdown({**document, "command": "moe-diag analyze run.sqlite --ep 16"})
    assert "<code>moe-diag analyze run.sqlite --ep 16</code>" in text
    assert "To make this report again" not in render_markdown(without(document, "command"))
    rules = f"moe-diag {diagnoser.__version__} and the rules of that version"
    assert f"{rules}, guidance {document['tool']['guidance']}, document 1.0." in text
    assert text.splitlines()[-1].startswith("Redacted: ")
    assert render_markdown({**document, "redacted": False}).splitlines()[-1].startswith("Not redacted: ")


def without(document: Document, key: str) -> Document:
    return {name: value for name, value in document.items() if name != key}


def test_a_ticket_holds_every_fix_and_refusal_and_all_opens_them(with_fixes: Document) -> None:
    some, every = render_markdown(with_fixes), render_markdown(with_fixes, everything=True)
    assert len(open_lines(some)) <= 60
    assert some.count("<summary>More about ") == min(3, len(with_fixes["fixes"])) > 1
    for one in [*with_fixes["fixes"], *with_fixes["refused"]]:
        assert f"**{one['id']}**" in some
        assert any(f"**{one['id']}**" in line for line in open_lines(every))


def test_the_first_fix_is_whole_and_its_environment_stands_with_each(with_fixes: Document) -> None:
    first, second = with_fixes["fixes"][:2]
    second["knobs"] = {key: ["X=1"] if key == "environment" else ["--x", "y"] for key in second["knobs"]}
    lines = open_lines(render_markdown(with_fixes))
    start, end = (
        next(place for place, line in enumerate(lines) if line.startswith(f"{number}. **"))
        for number in (1, 2)
    )
    whole, short = " ".join(lines[start:end]), " ".join(lines[end : end + 3])
    assert all(plain(knob) in whole for knob in first["knobs"]["megatron_bridge"])
    assert f"check next time: {plain(first['verify'])}" in whole
    assert "Megatron-LM: <code>--x</code> <code>y</code>" in short
    assert "environment: <code>X=1</code>" in short
    assert "Bridge" not in short


def test_walls_that_cannot_be_measured_for_one_reason_are_named_together(document: Document) -> None:
    for wall in document["walls"]:
        wall |= {"outcome": "unmeasurable", "missing": ["no clock"], "cost_ns": None, "cost_frac": None}
    text = render_markdown(document)
    assert [line for line in open_lines(text) if line.startswith("- Not measurable")] == [
        "- Not measurable: memory, communication, host overhead and compute. No clock."
    ]


def test_the_fullest_ticket_has_sixty_open_lines(with_fixes: Document) -> None:
    text = render_markdown(fullest(with_fixes))
    assert len(open_lines(text)) <= 60
    assert "<summary>Where the time goes</summary>" in text
    assert "1. **COM-1**" in text


def fullest(document: Document) -> Document:
    """Everything that can be said, said as often as it can be."""
    full = copy.deepcopy(document)
    evidence = next(one for wall in full["walls"] for one in wall["evidence"])
    for wall in full["walls"]:
        wall |= {"outcome": "finding", "cost_ns": 10, "cost_frac": 0.2, "cost_by_kind_ns": {"sync": 10}}
        wall["evidence"] = [{**evidence, "start_ns": 1, "end_ns": 2}] * 3
    full["verdict"] |= {"tied_with": ["memory"], "next_because": "x"}
    full["fixes"] = [{**fix, "room": {"because": "it fits"}} for fix in full["fixes"] * 3]
    open_ = {"text": "x", "state": "unmet", "cure": "y"}
    for fix in full["fixes"]:
        fix["knobs"] = {key: ["x"] for key in fix["knobs"]}
        fix["preconditions"] = [open_] * 5
        fix["shares_with"] = [one["id"] for one in full["fixes"]]
    full["traces"], full["warnings"] = full["traces"] * 9, ["w"] * 9
    full["refused"] *= 3
    return {**full, "command": "moe-diag analyze"}


def test_several_ranks_stand_in_a_table_and_fold_one_by_one(document: Document) -> None:
    document["ranks"] = [{**document["ranks"][0], "rank": number} for number in range(10)]
    text = render_markdown(document)
    assert text.count("<details><summary>rank ") == 8
    assert "2 more ranks are in the JSON document." in text
    assert len(open_lines(text)) <= 60
    assert "| Wall | Outcome | At most, ms of all windows | Share |" in text
    assert any(line.startswith("| rank 7, process 1000") for line in open_lines(text))


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
        github(analysis_page(replaced(with_fixes, text, KEYWORDS), everything=True))
        for text in ("x", HOSTILE)
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
    page = Page("x", (Section("", tuple(table(["a", "b"], [[(Code(first),), second]]))),))
    assert [one.type for one in pieces(github(page))].count("td_open") == 2


def test_a_name_of_ten_kilobytes_is_cut(export: Export) -> None:
    text = render_markdown(diagnoser.analyze(export(exposed(kernel="k" * 10_000))).to_dict())
    assert max(map(len, text.splitlines())) < 1_000
    assert "kkk...kkk" in text


def test_what_no_ticket_takes_is_left_out_whole_and_named() -> None:
    row = tuple(Fold(f"part {place}", (Line("x" * 600),) * 50) for place in range(4))
    text = within(Page("t", (Section("", row), Section("", (Line("end"),)))), github, GITHUB_LENGTH)
    assert len(text) <= 65_536
    assert re.findall("<summary>(.*?)</summary>", text) == ["part 0", "part 1"]
    assert "Left out, as a ticket takes 65,536 characters: part 2; part 3." in text
    assert text.endswith("\nend\n")


def test_mentions_references_and_addresses_are_taken_apart() -> None:
    assert plain("@all #12 www.e.vil http://e.vil") == (
        "<span>@</span>all <span>#</span>12 www&#46;e.vil http&#58;//e.vil"
    )
    assert plain("moe_router_dtype: fp32") == "moe_router_dtype: fp32"
