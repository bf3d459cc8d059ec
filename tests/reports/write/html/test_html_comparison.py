"""The page of a comparison: what stands first, two timelines on one zoom, bars that join."""

from __future__ import annotations

from itertools import pairwise

import pytest

from heuristics.comparison.comparison import compare
from heuristics.result.compared import Compared
from reports.content.blocks import Table
from reports.content.comparison.difference import waterfall
from reports.content.page import PLAIN, View
from reports.write.html.comparison import waterfall_of, write_comparison_html
from tests.doubles.compared import Make, compared, many_rows, typed
from tests.doubles.comparison import rank, result, row, timeline
from tests.doubles.comparison_document import (
    MS,
    by_logs,
    document_of,
    not_comparable,
    regression,
    unchanged,
    undecided,
)
from tests.doubles.html import Elements
from tests.read_back.browser import Browser

ALL = (regression, undecided, not_comparable, unchanged, by_logs, many_rows)
_VIEW = """const ends = one => [one.dataset.from, one.dataset.to].map(end => end - arguments[0]);
return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(
  () => done([...document.querySelectorAll('figure.timeline')].map(ends)))));"""


def written(one: Compared) -> str:
    return write_comparison_html(one, View(), PLAIN)


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


def opened(browser: Browser, one: Compared) -> None:
    browser.open(written(one))
    browser.run(
        "return new Promise(done => { const look = () => document.body.dataset.ready ? done() "
        ": setTimeout(look, 10); look(); })"
    )


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
