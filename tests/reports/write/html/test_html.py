"""The page of one run as text: names, links, policy, what hostile names cannot do, how large it gets."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.content.blocks import Code, Sentence, Term, words
from reports.content.page import Page, View
from reports.result.codec import Document
from reports.write.html.environment import assemble, embedded
from reports.write.html.page import write_html
from tests.doubles.html import Elements, long, page_of

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


def test_other_ranks_are_folded_and_their_timelines_can_be_chosen(document: Document) -> None:
    document["ranks"].append(copy.deepcopy(document["ranks"][0]) | {"rank": 7})
    page = page_of(document)
    assert "All of rank 7, GPU 0" in Elements(page).words()
    assert {one["place"] for one in drawn(page)["stretches"]} == {"GPU 0", "rank 7, GPU 0"}


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


@given(st.text() | st.sampled_from(["</script>", "<!--<script>", "]]>", "\u2028"]))
def test_embedded_data_reads_back_and_cannot_end_its_element(text: str) -> None:
    said = embedded({"names": [text]})
    assert not set("<>&") & set(said)
    assert said.isascii()
    assert json.loads(said) == {"names": [text]}


def test_a_script_that_would_end_its_element_is_refused() -> None:
    with pytest.raises(ValueError, match="end its own element"):
        assemble("analysis.html.j2", {}, scripts=("templates/base.html.j2",), styles=())


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
