"""The page of a comparison: what stands first, two timelines on one zoom, nothing foreign that runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from msgspec import structs

from heuristics.comparison.comparison import compare
from heuristics.result.compared import Compared
from reports.content.blocks import Table, View
from reports.content.comparison.difference import waterfall
from reports.write.html.comparison import interval_of, waterfall_of, write_comparison_html
from tests.doubles.compared import Make, compared, many_rows, planted, typed
from tests.doubles.comparison import rank, result, row, timeline
from tests.doubles.comparison_document import (
    MS,
    by_logs,
    document_of,
    facts,
    not_comparable,
    regression,
    unchanged,
    undecided,
)
from tests.doubles.html import HOSTILE, Elements
from tests.read_back.browser import Browser, started
from traces.spelling import percent, signed, signed_ms

ALL = (regression, undecided, not_comparable, unchanged, by_logs, many_rows)
_VIEW = """const ends = one => [one.dataset.from, one.dataset.to].map(end => end - arguments[0]);
return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(
  () => done([...document.querySelectorAll('figure.timeline')].map(ends)))));"""


def written(one: Compared) -> str:
    return write_comparison_html(one, View())


def mixed() -> Compared:
    """Ten ms of GEMM and of waiting for launches against fourteen, eight steps each."""
    base, new = (
        result(
            rank(
                row("compute.gemm", *(6 * MS,) * 8, work_ns=48 * MS),
                row("idle.launch_starved.launch", *(launch_ms * MS,) * 8),
                timeline=timeline(("compute.gemm", launch_ms * MS, 6 * MS)),
                trace=f"{launch_ms}.sqlite",
            )
        )
        for launch_ms in (4, 8)
    )
    document = document_of(compare(base, new))
    document["new"]["timeline"]["end_ns"] += 4 * MS
    return typed(document)


@pytest.mark.parametrize("make", ALL)
def test_the_verdict_comes_first_and_ids_are_one_each(make: Make) -> None:
    page = Elements(written(compared(make)))
    assert next(one["id"] for one in page.all("h2")) == "verdict"
    ids = [one["id"] for _, one in page.found if one.get("id")]
    assert len(ids) == len({*ids})
    assert {(one["href"] or "")[1:] for one in page.all("a")} <= {*ids}


def test_rows_stand_beside_the_verdict_but_for_what_is_not_comparable() -> None:
    words = Elements(written(compared(regression))).words()
    assert words.index("SLOWER") < words.index("Where the difference lies") < words.index("LIKELY CAUSE")
    words = Elements(written(compared(not_comparable))).words()
    assert "Where the difference lies" not in words
    assert "NOT COMPARABLE" in words


@pytest.mark.parametrize("make", [regression, not_comparable])
def test_foreign_texts_are_texts_and_nothing_else(make: Make) -> None:
    wild, calm = (Elements(written(planted(make, text))) for text in (HOSTILE, "a name"))
    assert [tag for tag, _ in wild.found] == [tag for tag, _ in calm.found]
    attributes = {name for _, one in wild.found for name in one}
    assert not [name for name in attributes if name.startswith("on") or name in ("style", "src")]
    text = written(planted(make, HOSTILE))
    assert "{{ 7*7 }}" in text
    assert not {"\u202e", "\x1b", "\ud800"} & {*text}


def test_the_same_comparison_gives_the_same_page() -> None:
    assert written(compared(regression)) == written(compared(regression))


def test_two_timelines_as_long_as_they_may_be_fit_in_one_megabyte() -> None:
    many = timeline(*(("compute.gemm", 1_000_000_000 + place * 9_000, 8_765) for place in range(40_000)))
    told = facts()
    base, new = (
        structs.replace(side, ranks=tuple(structs.replace(one, timeline=many) for one in side.ranks))
        for side in (told.base.result, told.new.result)
    )

    def make() -> Compared:
        return regression(facts=facts(base=base, new=new))

    assert 400_000 < len(written(compared(make)).encode()) <= 1_000_000


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("chromium")) as one:
        yield one


def opened(browser: Browser, one: Compared) -> None:
    browser.open(written(one))
    browser.run(
        "return new Promise(done => { const look = () => document.body.dataset.ready ? done() "
        ": setTimeout(look, 10); look(); })"
    )


def test_a_browser_finds_no_error_and_asks_for_nothing(browser: Browser) -> None:
    for make in (regression, not_comparable):
        opened(browser, planted(make, HOSTILE))
        browser.run("document.querySelectorAll('button').forEach(one => one.click())")
        assert browser.console() == []
        assert len(browser.requests()) == 1
        assert browser.run("return document.querySelectorAll('.stage canvas').length") == 2


def test_both_timelines_zoom_together_on_the_longer_of_both_axes(browser: Browser) -> None:
    longer = mixed()
    opened(browser, longer)
    start_ns = longer.base.timeline.start_ns
    assert browser.run(_VIEW, start_ns) == [[0, 14 * MS]] * 2
    for figure, act in ((0, "in"), (1, "in"), (1, "right")):
        browser.run(f"document.querySelectorAll('[data-act={act}]')[{figure}].click()")
    first, second = browser.run(_VIEW, start_ns)
    assert first == second
    assert first[1] - first[0] == 14 * MS // 4
    browser.run("document.querySelector('[data-act=whole]').click()")
    assert browser.run(_VIEW, start_ns) == [[0, 14 * MS]] * 2


def test_the_page_fits_a_narrow_window_and_the_keyboard_reaches_all_of_it(browser: Browser) -> None:
    opened(browser, compared(regression))
    for width in (390, 700, 1100, 1280):
        browser.look(width)
        assert browser.scrolls_sideways() == 0
    stops = browser.tab_stops()
    assert stops[0].name == "Skip to the verdict"
    assert [one.html for one in stops if not one.visible or not one.name] == []


@pytest.mark.parametrize("make", [one for one in ALL if one is not unchanged])
def test_one_number_leads_the_page(make: Make) -> None:
    one = compared(make)
    words = Elements(written(one)).words()
    lead = signed(percent(one.size.delta_frac))
    assert words.index(lead) < words.index(signed_ms(one.size.delta_ns))
    others = [words.index(text) for text in ("Where the difference lies", "What changed") if text in words]
    assert words.index(lead) < min(others)


@pytest.mark.parametrize("make", [regression, by_logs, many_rows])
def test_the_waterfall_has_the_rows_of_the_text_and_its_bars_join(make: Make) -> None:
    one = compared(make)
    (table,) = (block for block in waterfall(one) if isinstance(block, Table))
    drawn = waterfall_of(one, table)
    assert [bar.change for bar in drawn.parts] == [getattr(row.cells[3], "text", "") for row in table.rows]
    assert all(bar.after == after.before for bar, after in pairwise(drawn.parts))
    assert drawn.parts[0].before == drawn.zero == drawn.total.before
    assert drawn.parts[-1].after == drawn.total.after
    for bar in (*drawn.parts, drawn.total):
        left, width = (float(text.removesuffix("%")) for text in (bar.left, bar.width))
        assert 0 <= left < left + width <= 100.001


def test_an_interval_is_drawn_on_the_side_of_zero_where_it_lies() -> None:
    slower, open_ = interval_of(compared(regression)), interval_of(compared(undecided))
    assert open_ is None
    assert slower is not None
    zero, low, at = (float(text.removesuffix("%")) for text in (slower.zero, slower.low, slower.at))
    assert 0 < zero < low < at < 100
    assert slower.label == "95 % interval +3.50 to +4.50 ms beside zero"


def test_no_text_of_the_first_screen_lies_on_another(browser: Browser) -> None:
    for make in (regression, many_rows, not_comparable):
        opened(browser, compared(make))
        for width in (390, 1440):
            browser.look(width)
            assert browser.run(_OVERLAPS) == []


_OVERLAPS = """
const seen = [], found = [];
const read = '.over, .number-first, .amount, .rests, .under, .strip-row *, .waterfall [scope=row], td.number';
for (const one of document.querySelectorAll(read)) {
  const range = document.createRange();
  range.selectNodeContents(one);
  const box = one.tagName === 'svg' ? one.getBoundingClientRect() : range.getBoundingClientRect();
  if (box.width > 2 && box.height > 2 && one.innerText !== '') seen.push([one, box]);
}
for (const [one, a] of seen) for (const [other, b] of seen) {
  const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  if (one !== other && !one.contains(other) && !other.contains(one) && wide > 1 && high > 4)
    found.push(`${one.textContent} | ${other.textContent} (${wide} x ${high})`);
}
return found;
"""
