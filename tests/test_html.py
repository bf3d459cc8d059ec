"""The page of one run: what it says, what hostile names cannot do, what a browser makes of it."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import diagnoser
from reports.document import Document
from reports.html.colours import look
from reports.html.environment import assemble, embedded
from reports.html.findings import findings
from reports.html.page import render_html
from reports.html.step_bar import step_picture
from reports.html.timeline import legend_of
from tests.browser import Browser, started
from tests.document_doubles import DISPATCH, exposed, graph_only
from tests.html_doubles import HOSTILE, Elements, foreign, long
from traces.simulate.export import write_export

Export = Callable[..., Path]
MS = 10**6


def content(page: str, tag: str) -> list[str]:
    """What stands in every element of that name, as it is."""
    return re.findall(rf"<{tag}(?:\s[^>]*)?>(.*?)</{tag}>", page, re.DOTALL)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """Four steps of 10 ms: 6 of GEMM, 3 of DeepEP's dispatch, 1 of another kernel."""
    path = tmp_path_factory.mktemp("run") / "run.sqlite"
    write_export(path, exposed(comm=DISPATCH))
    return diagnoser.analyze(path).to_dict()


@pytest.fixture
def document(made: Document) -> Document:
    return copy.deepcopy(made)


def test_verdict_why_and_next_stand_on_top(document: Document) -> None:
    page = Elements(render_html(document))
    words = page.words()
    places = [words.index(said) for said in ("Verdict", "Why", "Next", "The step adds up", "The timeline")]
    assert places == sorted(places)
    assert "Communication (expert all-to-all)" in words
    first = document["fixes"][0]
    assert f"First: {first['id']} {first['title']}" in words
    assert words.index("How to check:") < words.index("The step adds up")


def test_every_heading_is_at_most_one_level_below_the_one_before(document: Document) -> None:
    levels = [int(tag[1]) for tag, _ in Elements(render_html(document)).found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_table_has_a_caption_and_scopes_and_every_link_an_end(document: Document) -> None:
    text = render_html(document, everything=True)
    page = Elements(text)
    assert len(page.all("table")) == len(page.all("caption")) > 5
    assert {cell["scope"] for cell in page.all("th")} == {"col", "row"}
    ids = [one["id"] for _, one in page.found if one.get("id")]
    assert len(ids) == len(set(ids))
    assert {(one["href"] or "")[1:] for one in page.all("a")} <= set(ids)
    named = {
        one[key] for _, one in page.found for key in ("aria-labelledby", "aria-describedby") if key in one
    }
    assert named <= set(ids)


def test_the_step_adds_up_to_the_nanosecond_in_parts_and_buckets(document: Document) -> None:
    picture = step_picture(document["ranks"][0])
    *rows, total = picture.table.rows
    assert total[3] == f"{document['ranks'][0]['budget_ns']['window'] / 1e6:.6f}"
    for column in (1, 3):
        shown = [int(row[column].replace(".", "").replace(",", "")) for row in rows]
        assert sum(shown) == int(total[column].replace(".", ""))
    one = picture.bars[-1]
    assert [part.key for part in one.buckets][:2] == ["compute", "exposed_comm"]
    for parts in (one.buckets, one.parts):
        assert sum(float(part.percent.rstrip("%")) for part in parts) == pytest.approx(100, abs=0.01)


def test_an_earlier_result_without_a_ledger_still_gets_its_bars(document: Document) -> None:
    rank = document["ranks"][0]
    for key in ("ledger", "timeline", "moe", "kernel_table"):
        rank.pop(key)
    page = Elements(render_html(document))
    assert "compute.gemm" in page.words()
    assert not page.all("canvas")


def test_a_replay_recorded_whole_is_called_busy_and_tells_no_communication(export: Export) -> None:
    page = Elements(render_html(diagnoser.analyze(export(graph_only())).to_dict()))
    assert "busy" in page.words()
    assert "Communication: exposed against blocking" not in page.words()


def test_of_several_ranks_the_first_is_shown_and_all_stand_in_a_table(document: Document) -> None:
    document["ranks"].append(copy.deepcopy(document["ranks"][0]) | {"rank": 7})
    words = Elements(render_html(document)).words()
    assert "the first of 2 ranks" in words
    assert "rank 7" in words


def test_evidence_of_another_step_says_which_and_does_not_pretend(document: Document) -> None:
    timeline = document["ranks"][0]["timeline"]
    start_ns, end_ns = timeline["start_ns"], timeline["end_ns"]
    wall = next(one for one in document["walls"] if one["evidence"])
    kept = wall["evidence"][0] | {"measure": "seen_ns", "value": 5, "unit": "ns", "rank": 0}
    within = kept | {"start_ns": start_ns + 5, "end_ns": start_ns + 10, "step": timeline["step"]}
    other = kept | {"start_ns": end_ns + 5, "end_ns": end_ns + 10, "step": 99}
    wall["evidence"] = [within, other]
    here, there = (one for one in findings(document) if "seen_ns" in one.what)
    assert (here.at_ns, here.length_ns, here.elsewhere) == (5, 5, "")
    assert there.elsewhere == f"step 99 (shown is step {timeline['step']})"


def test_the_policy_allows_this_style_and_this_script_and_nothing_else(document: Document) -> None:
    text = render_html(document)
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
    assert "http" not in script


def test_hostile_names_change_neither_the_elements_nor_what_runs(document: Document) -> None:
    calm = foreign(document, "name")
    wild = foreign(document, HOSTILE)
    shapes = [[tag for tag, _ in Elements(render_html(one)).found if tag != "wbr"] for one in (calm, wild)]
    assert shapes[0] == shapes[1]
    text = render_html(wild)
    text.encode()
    assert not set(text) & {"\u202e", "\x1b", "\ud800"}
    assert "{{ 7*7 }}" in text
    assert len(text) < 600_000


@given(st.text() | st.sampled_from(["</script>", "<!--<script>", "]]>", "\u2028"]))
def test_embedded_data_reads_back_and_cannot_end_its_element(text: str) -> None:
    said = embedded({"names": [text]})
    assert not set("<>&") & set(said)
    assert said.isascii()
    assert json.loads(said) == {"names": [text]}


def test_a_script_that_would_end_its_element_is_refused(document: Document) -> None:
    with pytest.raises(ValueError, match="end its own element"):
        assemble("analysis.html.j2", {}, scripts=("templates/base.html.j2",))


def test_the_same_document_gives_the_same_bytes(document: Document) -> None:
    assert render_html(copy.deepcopy(document)) == render_html(document)


def test_what_looks_alike_is_named_once_and_an_unknown_class_has_a_look() -> None:
    assert legend_of(["comm.tp", "blocking.tp", "launch_starved.sync"]) == (
        ("comm.tp", "tp"),
        ("launch_starved.sync", "launch_starved.sync"),
    )
    assert look("blocking.tp") == look("comm.tp") == look("exposed_comm.tp")
    assert look("idle.launch_starved.sync") == look("launch_starved.sync")
    assert look("compute.of_tomorrow").colour == "grey"


def test_fifty_steps_and_as_many_activities_as_are_kept_stay_under_two_megabytes(document: Document) -> None:
    size = len(render_html(long(document, 12_000), everything=True).encode())
    assert 500_000 < size < 2_000_000


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("chromium")) as one:
        yield one


def view(browser: Browser) -> tuple[int, int]:
    """What the timeline shows, in ns of the recording's clock, once it is drawn."""
    drawn = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    figure = "document.querySelector('figure.timeline')"
    seen = browser.run(f"return {drawn}.then(() => [{figure}.dataset.from, {figure}.dataset.to])")
    return int(seen[0]), int(seen[1])


def told(browser: Browser) -> str:
    return str(browser.run("return document.querySelector('figure.timeline .told').textContent"))


def test_in_a_browser_nothing_fails_and_nothing_is_asked_for(browser: Browser, document: Document) -> None:
    for one in (document, foreign(document, HOSTILE)):
        browser.open(render_html(one, everything=True))
        browser.run("document.querySelectorAll('button').forEach(one => one.click())")
        assert browser.console() == []
        assert len(browser.requests()) == 1
        assert browser.run("return document.title").startswith("moe-diag: ")


def test_a_click_on_a_finding_moves_the_timeline_to_it_and_says_so(
    browser: Browser, document: Document
) -> None:
    browser.open(render_html(document))
    shown = document["ranks"][0]["timeline"]
    assert view(browser) == (shown["start_ns"], shown["end_ns"])
    place, one = next((at, one) for at, one in enumerate(findings(document)) if not one.elsewhere)
    browser.run(f"document.querySelectorAll('button.find')[{place}].click()")
    from_ns, to_ns = view(browser)
    start_ns = shown["start_ns"] + one.at_ns
    assert from_ns <= start_ns < start_ns + one.length_ns <= to_ns
    assert to_ns - from_ns < shown["end_ns"] - shown["start_ns"]
    assert told(browser).startswith(f"The timeline moved to {one.what}")


def test_a_click_on_a_finding_of_another_step_moves_nothing_and_says_where_it_is(
    browser: Browser, document: Document
) -> None:
    wall = next(one for one in document["walls"] if one["evidence"])
    wall["evidence"][0] |= {"start_ns": 1, "end_ns": 5, "step": 99, "rank": 0}
    browser.open(render_html(document))
    before = view(browser)
    place = next(at for at, one in enumerate(findings(document)) if "step 99" in one.elsewhere)
    browser.run(f"document.querySelectorAll('button.find')[{place}].click()")
    assert view(browser) == before
    assert "is in step 99" in told(browser)
    assert "has not moved" in told(browser)


def test_keys_zoom_pan_and_name_the_next_activity(browser: Browser, document: Document) -> None:
    browser.open(render_html(document))
    whole = view(browser)
    browser.run("document.querySelector('canvas').focus()")
    browser.press("+")
    near = view(browser)
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2, abs=2)
    browser.press("ArrowRight")
    assert view(browser)[0] > near[0]
    browser.press("0")
    assert view(browser) == whole
    browser.press("ArrowDown")
    assert "stream" in told(browser)
    browser.run("document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', {key: 'n'}))")
    assert re.search(r"\d ms \([\d,]+ ns\)", told(browser))


def test_the_wheel_scrolls_the_page_until_the_timeline_was_chosen(
    browser: Browser, document: Document
) -> None:
    browser.open(render_html(document))
    turn = "new WheelEvent('wheel', {deltaY: -300, cancelable: true})"
    scrolls = f"return document.querySelector('canvas').dispatchEvent({turn})"
    whole = view(browser)
    assert browser.run(scrolls) is True
    assert view(browser) == whole
    browser.run("document.querySelector('canvas').focus()")
    assert browser.run(scrolls) is False
    assert view(browser)[1] - view(browser)[0] < whole[1] - whole[0]


def test_the_clock_keeps_nanoseconds_that_a_double_cannot(browser: Browser, document: Document) -> None:
    later_ns = 1_661_938_466_265_584_001
    timeline = document["ranks"][0]["timeline"]
    length_ns = timeline["end_ns"] - timeline["start_ns"]
    timeline |= {"start_ns": later_ns, "end_ns": later_ns + length_ns}
    browser.open(render_html(document))
    assert view(browser) == (later_ns, later_ns + length_ns)


def test_tab_goes_from_the_skip_link_down_the_page_and_shows_where_it_is(
    browser: Browser, document: Document
) -> None:
    browser.look()
    browser.open(render_html(document))
    stops = browser.tab_stops()
    names = [one.name for one in stops]
    assert names[0] == "Skip to the verdict"
    assert (
        names.index("Timeline")
        < names.index("Zoom in")
        < names.index(f"Copy {document['fixes'][1]['id']} for Megatron-LM")
    )
    assert [one.html for one in stops if not one.visible or not one.name] == []


def test_copy_tells_what_it_copied_or_selects_it(browser: Browser, document: Document) -> None:
    browser.open(render_html(document))
    browser.run("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    browser.run("document.execCommand = () => false; document.querySelector('button.copy').click()")
    later = "new Promise(done => setTimeout(done, 60))"
    knobs = " ".join(document["fixes"][0]["knobs"]["megatron_lm"])
    assert browser.run(f"return {later}.then(() => String(getSelection()))") == knobs
    assert "Selected" in browser.run("return document.getElementById('said').textContent")


def test_a_narrow_window_scrolls_down_only(browser: Browser, document: Document) -> None:
    for one in (document, foreign(document, "n" * 3_000)):
        for width in (390, 320):
            browser.look(width, 800)
            browser.open(render_html(one, everything=True))
            assert browser.scrolls_sideways() == 0
    browser.look()


def test_a_timeline_of_twelve_thousand_activities_draws_within_a_frame_or_few(
    browser: Browser, document: Document
) -> None:
    browser.look()
    browser.open(render_html(long(document, 12_000)))
    browser.run("document.querySelector('[data-act=in]').click()")
    view(browser)
    click = "document.querySelector('[data-act=out]').click()"
    frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    took_ms = browser.run(
        f"const start = performance.now(); {click}; return {frames}.then(() => performance.now() - start)"
    )
    assert took_ms < 1_000


def test_printed_on_paper_what_is_folded_is_there(browser: Browser, document: Document) -> None:
    browser.open(render_html(document))
    assert browser.printed().startswith(b"%PDF")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("return document.querySelectorAll('details:not([open])').length") == 0
