"""The page of one run as text: what it says and where, what hostile names cannot do, how large it gets."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import diagnoser
from bench.simulate.export import write_export
from heuristics.result.result import Result
from reports.content.blocks import Bar, Code, Hue, Page, Piece, Sentence, Term, View, words
from reports.content.names import kernel_code
from reports.result.codec import Document, decode
from reports.write.html.environment import assemble, embedded, pieces
from reports.write.html.page import write_html
from reports.write.lanes import Stretch, lanes_of
from tests.doubles.document import DISPATCH, exposed, graph_only
from tests.doubles.html import HOSTILE, Elements, foreign, long, page_of
from traces.spelling import percent

Export = Callable[..., Path]
ROOM = 1_000_000


def content(page: str, tag: str) -> list[str]:
    """What stands in every element of that name, as it is."""
    return re.findall(rf"<{tag}(?:\s[^>]*)?>(.*?)</{tag}>", page, re.DOTALL)


def drawn(page: str) -> Document:
    """What the script of the timeline reads."""
    found = re.search(r'id="timeline-data">(.*?)</script>', page)
    assert found
    read: Document = json.loads(found[1])
    return read


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """Four steps of 10 ms: 6 of GEMM, 3 of DeepEP's dispatch, 1 of another kernel."""
    path = tmp_path_factory.mktemp("run") / "run.sqlite"
    write_export(path, exposed(comm=DISPATCH))
    return diagnoser.analyze(path).to_dict()


@pytest.fixture
def document(made: Document) -> Document:
    return copy.deepcopy(made)


def test_headline_saving_bar_walls_and_plan_stand_in_this_order(document: Document) -> None:
    text = Elements(page_of(document)).words()
    first = document["fixes"][0]
    wanted = (
        "SLOWED BY",
        "up to 30",
        "How sure, and why",
        "One step",
        "Communication",
        "DO THIS",
        first["title"],
    )
    places = [text.index(said) for said in wanted]
    assert places == sorted(places)


def test_each_wall_is_a_card_with_the_share_of_the_document_the_largest_first(document: Document) -> None:
    page = page_of(document)
    cards = re.findall(r'<article class="wall (\w+)">(.*?)</article>', page, re.DOTALL)
    costs = [wall["cost_frac"] for wall in document["walls"] if wall["cost_frac"] is not None]
    shares = [re.sub(r"\s", " ", content(card, "b")[0]) for _, card in cards]
    assert shares[0] == percent(max(costs))
    assert {*shares} - {"unknown"} <= {percent(one) for one in costs}
    assert cards[0][0] == "severe"
    assert len(cards) == 4


def test_every_heading_is_at_most_one_level_below_the_one_before(document: Document) -> None:
    levels = [int(tag[1]) for tag, _ in Elements(page_of(document)).found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_table_is_named_and_scoped_and_every_link_has_an_end(document: Document) -> None:
    page = Elements(page_of(document))
    assert len(page.all("table")) > 5
    assert all(one["aria-label"] for one in page.of_class("scroll"))
    assert {cell["scope"] for cell in page.all("th")} == {"col", "row"}
    ids = [one["id"] for _, one in page.found if one.get("id")]
    assert len(ids) == len(set(ids))
    ends = {(one["href"] or "")[1:] for one in page.all("a")}
    in_timeline = {one for one in ends if re.fullmatch(r"t=\d+-\d+", one)}
    assert ends - in_timeline <= set(ids)
    assert not in_timeline or page.of_class("timeline")
    named = {
        one[key] for _, one in page.found for key in ("aria-labelledby", "aria-describedby") if key in one
    }
    assert named <= set(ids)


def test_how_sure_it_is_stands_once_on_the_first_screen(document: Document) -> None:
    top = Elements(page_of(document)).words().partition("One step")[0]
    assert top.count("Confidence") == 1


def test_a_name_that_was_cut_has_the_whole_in_a_title() -> None:
    page = Page(words("a page"), (), (Sentence(words(kernel_code("a" * 60), kernel_code("short"))),))
    found = Elements(write_html(page, View())).all("code")
    assert [one.get("title") for one in found] == ["a" * 60, None]


def test_a_term_is_shown_by_its_name_and_the_page_says_what_it_means() -> None:
    page = Page(words("a page"), (), (Sentence(words(Term("exposed_comm"), " and ", Term("exposed_comm"))),))
    found = Elements(write_html(page, View()))
    first, second = found.of_class("term")
    assert (first["href"], first.get("tabindex")) == ("#word-exposed_comm", None)
    assert second["tabindex"] == "-1"
    assert [one["id"] for one in found.all("dt")] == ["word-exposed_comm"]
    assert "exposed_comm" in content(write_html(page, View(keys=True)), "p")[0]


def test_code_and_text_of_a_block_are_escaped() -> None:
    page = Page(words(Code("<b>")), (), (Sentence(words("a < b & ", Code("<i>c</i>"))),))
    assert "a &lt; b &amp; <code>&lt;i&gt;c&lt;/i&gt;</code>" in write_html(page, View())


def test_the_pieces_of_a_bar_lie_side_by_side_and_only_wide_ones_are_labelled() -> None:
    bar = Bar("One step", "10 ms", (Piece("a", 0.95, "9.5", Hue.COMPUTE), Piece("b", 0.05, "0.5", Hue.COPY)))
    assert [(left, label) for _, left, label in pieces(bar)] == [("0.0000%", "a 95 %"), ("95.0000%", "")]


def test_a_replay_recorded_whole_is_called_busy(export: Export) -> None:
    assert "busy" in Elements(page_of(diagnoser.analyze(export(graph_only())).to_dict())).words()


def test_other_ranks_are_folded_and_their_timelines_can_be_chosen(document: Document) -> None:
    document["ranks"].append(copy.deepcopy(document["ranks"][0]) | {"rank": 7})
    page = page_of(document)
    assert "All of rank 7, GPU 0" in Elements(page).words()
    assert {one["place"] for one in drawn(page)["stretches"]} == {"GPU 0", "rank 7, GPU 0"}


def test_a_result_without_a_timeline_has_no_canvas(document: Document) -> None:
    document["ranks"][0]["timeline"]["lanes"] = []
    document["ranks"][0]["other_steps"] = []
    page = Elements(page_of(document))
    assert not page.all("canvas")
    assert not [one for one in page.all("a") if "data-wall" in one]


def test_lanes_are_named_by_what_they_are_for_and_the_host_stands_above(document: Document) -> None:
    timeline = decode(document, Result).ranks[0].timeline
    kinds = [lane.kind for lane in lanes_of(Stretch("GPU 0", "step 1", timeline, timeline))]
    assert kinds == sorted(kinds, key=("ranges", "calls", "why", "stream").index)
    assert {"ranges", "calls", "stream"} <= {*kinds}
    titles = [lane.title for lane in lanes_of(Stretch("", "", timeline, timeline)) if lane.kind == "stream"]
    assert titles == ["Compute, communication"]


def test_keys_of_a_timeline_belong_to_the_walls_of_the_ledger(document: Document) -> None:
    walls = {look[1]: look[4] for look in drawn(page_of(document))["looks"]}
    assert walls["compute.gemm"] == "compute"
    assert walls["comm.ep_dispatch"] == "communication"


def test_only_what_was_replayed_can_be_ticked_to_a_figure(document: Document) -> None:
    ids = [one["id"] for one in document["fixes"][:2]]
    document["combined"] = [{"ids": ids, "gain_frac": [0.1, 0.2]}]
    page = page_of(document)
    found = re.search(r'id="plan-data">(.*?)</script>', page)
    assert found
    *alone, together = json.loads(found[1])
    assert together == [ids, 0.1, 0.2, "10-20 %"]
    assert all(len(one[0]) == 1 for one in alone)


def test_the_policy_allows_this_style_and_this_script_and_nothing_else(document: Document) -> None:
    text = page_of(document)
    page = Elements(text)
    (policy,) = (one["content"] or "" for one in page.all("meta") if one.get("http-equiv"))
    hashes = re.findall(r"'sha256-([^']+)'", policy)
    (style,) = content(text, "style")
    *_, script = content(text, "script")
    wanted = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (style, script)]
    assert hashes == wanted
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert not [name for _, one in page.found for name in one if name.startswith("on") or name == "style"]
    assert not {"link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in page.found}
    assert "eval(" not in script
    assert "http" not in script.replace("http://www.w3.org/2000/svg", "")


def test_hostile_names_change_neither_the_elements_nor_what_runs(document: Document) -> None:
    calm = foreign(document, "name")
    wild = foreign(document, HOSTILE)
    shapes = [[tag for tag, _ in Elements(page_of(one)).found] for one in (calm, wild)]
    assert shapes[0] == shapes[1]
    text = page_of(wild)
    text.encode()
    assert not set(text) & {"\u202e", "\x1b", "\ud800"}
    assert "{{ 7*7 }}" in text
    assert len(text) < ROOM


@given(st.text() | st.sampled_from(["</script>", "<!--<script>", "]]>", "\u2028"]))
def test_embedded_data_reads_back_and_cannot_end_its_element(text: str) -> None:
    said = embedded({"names": [text]})
    assert not set("<>&") & set(said)
    assert said.isascii()
    assert json.loads(said) == {"names": [text]}


def test_a_script_that_would_end_its_element_is_refused() -> None:
    with pytest.raises(ValueError, match="end its own element"):
        assemble("analysis.html.j2", {}, scripts=("templates/base.html.j2",), styles=())


def test_the_same_document_gives_the_same_bytes(document: Document) -> None:
    assert page_of(copy.deepcopy(document)) == page_of(document)


@pytest.mark.parametrize(("steps", "streams", "count"), [(50, 8, 300), (3, 8, 12_000)])
def test_whatever_the_trace_a_page_stays_below_one_megabyte_and_says_what_it_leaves_out(
    document: Document, steps: int, streams: int, count: int
) -> None:
    page = page_of(long(document, steps, streams, count))
    data = drawn(page)
    assert 300_000 < len(page.encode()) <= ROOM
    first = data["stretches"][0]
    host = sum(len(lane["at_ns"]) for lane in document["ranks"][0]["timeline"].get("host", ()))
    assert sum(len(lane["at"]) for lane in first["lanes"]) + first["left_out"] == (streams + 1) * count + host
    assert data["left_out"] + len(data["stretches"]) == steps
    assert f"{data['left_out']} other steps are left out" in page or not data["left_out"]
