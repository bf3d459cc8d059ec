"""The page of one run in a browser: tabs, ticks, the timeline, the keyboard, narrow windows."""

from __future__ import annotations

import pytest

from reports.result.codec import Document
from tests.doubles.html import foreign, page_of
from tests.read_back.browser import Browser

_READY = """return new Promise(done => {
  const drawn = () => requestAnimationFrame(() => done(true));
  const look = () => { if (document.body.dataset.ready) drawn(); else setTimeout(look, 10); };
  look();
})"""
_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_FIGURE = "document.querySelector('figure.timeline')"
_WON = """const won = document.querySelector('.strip .won');
return won ? Math.round(won.getBoundingClientRect().width) : 0;"""


def opened(browser: Browser, document: Document, tab: str = "") -> None:
    """The page, read and drawn, at one of its tabs."""
    browser.open(page_of(document))
    browser.run(_READY)
    if tab:
        browser.run(f"document.getElementById('tab-panel-{tab}').click()")


def click(browser: Browser, query: str) -> None:
    browser.run(f"document.querySelector({query!r}).click()")


def view(browser: Browser) -> tuple[int, int]:
    """What the timeline shows, in ns of the recording's clock, once it is drawn."""
    seen = browser.run(f"return {_FRAMES}.then(() => [{_FIGURE}.dataset.from, {_FIGURE}.dataset.to])")
    return int(seen[0]), int(seen[1])


def says(browser: Browser) -> str:
    return str(browser.run(f"return {_FIGURE}.querySelector('.says').textContent"))


def test_ticks_shrink_the_bar_by_what_was_replayed_together_and_never_add(
    browser: Browser, document: Document
) -> None:
    first, second, third = (one["id"] for one in document["fixes"][:3])
    document["combined"] = [{"ids": [second, first], "gain_frac": [0.25, 0.5]}]
    opened(browser, document)
    told = "return document.querySelector('.after-ticks').textContent"
    whole = browser.run("return document.querySelector('.strip').getBoundingClientRect().width")
    for one in (first, second):
        click(browser, f"[data-tick={one}]")
    assert "25-50\u00a0% shorter (replayed together)" in browser.run(told).replace(" %", "\u00a0%")
    assert browser.run(_WON) == pytest.approx(whole / 4, abs=2)
    click(browser, f"[data-tick={third}]")
    assert "not replayed together" in browser.run(told)
    assert browser.run(_WON) == 0


def test_a_link_leads_to_its_moment_on_a_clock_beyond_a_double(browser: Browser, document: Document) -> None:
    later_ns = 1_661_938_466_265_584_001
    timeline = document["ranks"][0]["timeline"]
    length_ns = timeline["end_ns"] - timeline["start_ns"]
    timeline |= {"start_ns": later_ns, "end_ns": later_ns + length_ns}
    document["ranks"][0]["other_steps"] = []
    opened(browser, document, "timeline")
    assert view(browser) == (later_ns, later_ns + length_ns)
    browser.run(f"location.hash = 't={later_ns + 1_000_000}-{later_ns + 3_000_000}'")
    assert view(browser) == (later_ns + 1_000_000, later_ns + 3_000_000)
    browser.run("location.hash = 't=5-7'")
    browser.run(f"return {_FRAMES}")
    assert "left out" in says(browser)


def test_tab_goes_down_the_page_and_shows_where_it_is(browser: Browser, document: Document) -> None:
    browser.look()
    opened(browser, document)
    stops = browser.tab_stops()
    names = [one.name for one in stops]
    assert names[0] == "Skip to the verdict"
    first = document["fixes"][0]["id"]
    order = (
        "Communication",
        "Summary",
        f"Apply {first} to the bar of the step",
        f"Copy {first} for Megatron-LM",
    )
    places = [names.index(one) for one in order]
    assert places == sorted(places)
    assert [one.html for one in stops if not one.visible or not one.name] == []


@pytest.mark.parametrize("width", [1440, 1280, 390, 320])
def test_no_window_has_to_be_scrolled_sideways(browser: Browser, document: Document, width: int) -> None:
    browser.look(width, 900)
    try:
        for one in (document, foreign(document, "n" * 3_000)):
            opened(browser, one)
            for tab in ("summary", "timeline", "kernels", "recording"):
                click(browser, f"#tab-panel-{tab}")
                browser.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
                assert browser.scrolls_sideways() == 0
    finally:
        browser.look()
