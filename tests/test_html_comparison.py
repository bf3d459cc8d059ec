"""The page of a comparison: pictures that add up, both timelines on one zoom, nothing foreign that runs."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

import pytest
from msgspec import structs

from heuristics.comparison.comparison import Comparison, compare
from reports.comparison.sentences import headline
from reports.document import Document
from reports.html.comparison_interval import interval_line
from reports.html.comparison_page import render_comparison_html
from reports.html.comparison_steps import both_steps
from reports.html.comparison_waterfall import Cells, waterfall
from tests.browser import Browser, started
from tests.comparison_document_doubles import (
    GRAPHS,
    MS,
    by_logs,
    document_of,
    facts,
    moved,
    not_comparable,
    regression,
    unchanged,
    undecided,
)
from tests.comparison_doubles import rank, result, row, timeline
from tests.document_doubles import HOSTILE
from tests.planted import replaced
from tests.test_comparison_text import KEYWORDS, many_rows

ALL = (regression, undecided, not_comparable, unchanged, by_logs, many_rows)
VOID = {"meta", "rect", "line", "circle", "path", "wbr", "br"}
EVIL = f'{HOSTILE}</script><script>alert(2)</script>"><img src=x onerror=alert(3)>{{{{ 7 * 7 }}}}\ud800'


def page_of(make: Callable[[], Comparison], everything: bool = False) -> str:
    return render_comparison_html(document_of(make()), everything)


@dataclass
class Page(HTMLParser):
    """What a page holds: its tags with attributes, its visible text, the cells of the waterfall by row."""

    text: str
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & {*self._open}:
            self.seen.append(data)
            if {"td", "th"} & {*self._open}:
                self.rows[-1][-1] += data.strip()

    def fall(self) -> list[list[str]]:
        """Cells of the waterfall: name, picture, new - base, share, base, new, how often, three effects."""
        start = next(place for place, cells in enumerate(self.rows) if cells[-1:] == ["overlap"])
        count = next(
            place for place, cells in enumerate(self.rows[start:]) if cells and cells[0].endswith(" of new")
        )
        return self.rows[start + 1 : start + count + 1]


def ns(cell: str) -> int:
    sign, whole, part = re.fullmatch(r"([+-]?)([\d,]+)\.(\d{6})", cell).groups()  # type: ignore[union-attr]
    return int(f"{sign}{whole.replace(',', '')}{part}")


@pytest.mark.parametrize("make", [regression, undecided, by_logs, many_rows])
def test_the_printed_waterfall_goes_from_the_step_of_base_to_that_of_new(
    make: Callable[[], Comparison],
) -> None:
    (_, *first), *rows, (_, *last) = Page(page_of(make)).fall()
    base_ns, new_ns = ns(first[3]), ns(last[4])
    assert base_ns == 40 * MS
    assert base_ns + sum(ns(cells[2]) for cells in rows) == new_ns
    assert sum(ns(cells[4]) for cells in rows) == base_ns
    for _, _, delta, _, base, new, *_ in rows:
        assert ns(base) + ns(delta) == ns(new)


@pytest.mark.parametrize("make", [regression, many_rows])
@pytest.mark.parametrize("everything", [False, True])
def test_each_bar_begins_where_the_last_one_ended(make: Callable[[], Comparison], everything: bool) -> None:
    told = waterfall(document_of(make()), everything)
    assert told is not None
    assert [one.after for one in told.bars[:-1]] == [one.before for one in told.bars[1:]]
    for one in told.bars[1:-1]:
        ends = {one.left, f"{float(one.left[:-1]) + float(one.width[:-1]):.2f}"}
        assert {f"{float(str(one.before)[:-1]):.2f}", one.before} & ends
    assert len(told.bars) == (23 if everything and make is many_rows else 14 if make is many_rows else 6)


def test_a_row_that_is_slower_is_drawn_to_the_right_and_one_that_is_faster_to_the_left() -> None:
    told = waterfall(document_of(regression()), everything=False)
    assert told is not None
    kinds = [(one.name, one.kind) for one in told.bars]
    assert kinds[1:3] == [("launch_starved.launch", "slower"), ("exposed_comm.ep_dispatch", "faster")]
    launch, dispatch = told.bars[1:3]
    assert (launch.left, dispatch.left) == (launch.before, dispatch.after)
    assert kinds[-2:] == [("noise", "noise"), ("step of new", "new")]


def test_a_small_difference_is_not_drawn_from_zero_and_a_large_one_is() -> None:
    assert "do not begin at zero" in page_of(regression)
    grown = (moved("compute.gemm", 20, 60), moved("noise", 20, 20, low_ns=None, high_ns=None))
    told = facts().attribution
    large = facts(attribution=replace(told, step_delta_ns=40 * MS, rows=grown))
    assert "do not begin at zero" not in page_of(lambda: regression(facts=large))


@pytest.mark.parametrize(
    ("make", "low", "value", "gate"),
    [(regression, 0.35, 0.4, 0.03), (unchanged, 0, 0, 0.03)],
)
def test_the_interval_lies_right_of_zero_where_the_step_is_slower(
    make: Callable[[], Comparison], low: float, value: float, gate: float
) -> None:
    line = interval_line(document_of(make()))
    assert line is not None
    assert line.gate is not None
    places = [float(one.percent[:-1]) for one in (line.zero, line.value, line.gate)]
    zero, at, limit = places
    assert all(0 < one < 100 for one in places)
    assert (at - zero) * gate * 10 == pytest.approx((limit - zero) * value * 2.5, abs=0.01)
    assert line.gate.words == "gate +3.0 %"


def test_without_an_interval_the_line_says_so_and_what_is_not_comparable_has_no_line() -> None:
    line = interval_line(document_of(undecided()))
    assert line is not None
    assert line.interval is None
    assert "no interval" in line.said
    assert interval_line(document_of(not_comparable())) is None
    assert 'class="interval"' not in page_of(not_comparable)


def mixed() -> tuple[Document, Document]:
    """Ten ms of GEMM and of waiting for launches against fourteen, eight steps each, and the other way."""
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
    there, back = (document_of(compare(*sides)) for sides in ((base, new), (new, base)))
    return there, back


def moved_cells(document: Document) -> Cells:
    told = waterfall(document, everything=True)
    assert told is not None
    return told.bars[1].cells


def test_swapped_sides_mirror_each_number_of_the_pictures() -> None:
    there, back = mixed()
    assert (there["base"], there["new"]) == (back["new"], back["base"])
    one, other = (moved_cells(document) for document in (there, back))
    assert (one.delta, other.delta) == ("+4.000000", "-4.000000")
    assert (one.base, one.new) == (other.new, other.base)
    first, second = both_steps(there).bars
    assert [bar.ms for bar in (first, second)] == ["10.000000", "14.000000"]
    assert [part.percent for part in first.parts] == [part.percent for part in both_steps(back).bars[1].parts]


def test_bars_of_both_steps_have_one_scale_and_one_order() -> None:
    steps = both_steps(mixed()[0])
    base, new = ([(part.name, float(part.percent[:-1])) for part in bar.parts] for bar in steps.bars)
    assert sum(width for _, width in new) == pytest.approx(100, abs=0.01)
    assert sum(width for _, width in base) == pytest.approx(100 * 10 / 14, abs=0.01)
    names = ["compute.gemm", "launch_starved.launch"]
    assert [name for name, _ in base] == [name for name, _ in new] == names
    assert base[0] == new[0]
    assert [(line.name, line.base, line.new) for line in steps.lines] == [
        ("compute", "6.000000", "6.000000"),
        ("compute.gemm", "6.000000", "6.000000"),
        ("nothing on the GPU", "4.000000", "8.000000"),
        ("launch_starved.launch", "4.000000", "8.000000"),
        ("step", "10.000000", "14.000000"),
    ]


def test_rows_of_the_budget_add_up_where_means_fall_between_two_nanoseconds() -> None:
    base, new = (
        result(rank(row("compute.gemm", 10, 11, 11), row("exposed_comm.tp", 3, 3, tp), row("idle", 1, 1, 0)))
        for tp in (4, 5)
    )
    there, back = (document_of(compare(*sides)) for sides in ((base, new), (new, base)))
    for side in (there["base"], there["new"]):
        assert sum(one["mean_ns"] for one in side["budget_rows"]) == side["step_ns"]
    assert there["base"]["budget_rows"] == back["new"]["budget_rows"]


def test_a_result_of_an_earlier_version_has_its_bars_from_the_attribution_and_no_timeline() -> None:
    document = document_of(regression())
    for side in ("base", "new"):
        del document[side]["budget_rows"]
        document[side]["timeline"] = None
    page = render_comparison_html(document)
    assert "No timeline of either side: its result was made by an earlier version." in page
    assert "<canvas" not in page
    assert both_steps(document).lines[-1].base == "40.000000"


@pytest.mark.parametrize("make", ALL)
def test_the_verdict_why_and_next_come_first(make: Callable[[], Comparison]) -> None:
    page = Page(page_of(make))
    text = " ".join(" ".join(page.seen).split())
    assert headline(document_of(make())) in text
    ids = [one["id"] for tag, one in page.tags if tag == "h2"]
    forbidden = make is not_comparable
    first = ["verdict", "limits", "why", "next"] if forbidden else ["verdict", "why", "next"]
    assert ids[: len(first)] == first
    targets = {one["href"] for tag, one in page.tags if tag == "a"}
    assert targets <= {f"#{one['id']}" for _, one in page.tags if "id" in one}


def test_rows_of_what_is_not_comparable_are_folded() -> None:
    page = page_of(not_comparable)
    folded = page.index("Rows, though the runs are not comparable")
    assert page.index("<details>", folded - 60) < folded < page.index('<table class="fall')


def test_a_suspect_leads_to_its_rows_and_each_row_stands_there_once() -> None:
    tags = Page(page_of(many_rows)).tags
    assert [one["href"] for tag, one in tags if tag == "a" and "row" in str(one["href"])] == []
    suspect = structs.replace(GRAPHS, rows=("launch_starved.launch", "compute.norm"))
    page = Page(page_of(lambda: regression(suspects=(suspect,))))
    assert [one["href"] for tag, one in page.tags if tag == "a" and "row" in str(one["href"])] == ["#row-0"]
    ids = [one["id"] for _, one in page.tags if "id" in one]
    assert len(ids) == len({*ids})
    assert "row-0" in ids


@pytest.mark.parametrize("make", [regression, not_comparable])
def test_foreign_texts_are_texts_and_nothing_else(make: Callable[[], Comparison]) -> None:
    document = replaced(document_of(make()), EVIL, (*KEYWORDS, "reasons", "keys"))
    for side in ("base", "new"):
        document[side]["timeline"]["keys"] = [EVIL]
        document[side]["timeline"]["reasons"]["reasons"] = [EVIL]
    evil, tame = Page(render_comparison_html(document, True)), Page(page_of(make, True))
    assert {tag for tag, _ in evil.tags} <= {tag for tag, _ in tame.tags}
    assert len([tag for tag, _ in evil.tags if tag == "script"]) == 3
    attributes = {name for _, one in evil.tags for name in one}
    assert not [name for name in attributes if name.startswith("on") or name in ("style", "src")]
    text = " ".join(evil.seen)
    assert "{{ 7 * 7 }}" in text
    assert not {"\u202e", "\x1b", "\ud800"} & {*evil.text}


def test_the_same_document_gives_the_same_page_and_is_left_as_it_is() -> None:
    document = document_of(regression())
    before = copy.deepcopy(document)
    assert render_comparison_html(document) == render_comparison_html(before)
    assert document == before


def test_two_timelines_as_long_as_they_may_be_fit_in_two_megabytes() -> None:
    many = timeline(*(("compute.gemm", 1_000_000_000 + place * 9_000, 8_765) for place in range(12_000)))
    told = facts()
    base, new = (
        structs.replace(side, ranks=tuple(structs.replace(one, timeline=many) for one in side.ranks))
        for side in (told.base, told.new)
    )
    page = page_of(lambda: regression(facts=facts(base=base, new=new)))
    assert 400_000 < len(page.encode()) < 2_000_000


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("chromium")) as one:
        yield one


def test_a_browser_finds_no_error_and_asks_for_nothing(browser: Browser) -> None:
    for make in (regression, not_comparable):
        document = replaced(document_of(make()), EVIL.replace("\ud800", ""), KEYWORDS)
        for side in ("base", "new"):
            document[side]["timeline"]["keys"] = [EVIL.replace("\ud800", "")]
        browser.open(render_comparison_html(document, True))
        assert browser.console() == []
        assert len(browser.requests()) == 1
        assert browser.run("return document.querySelectorAll('canvas').length") == 2


_VIEW = """return [...document.querySelectorAll('figure.timeline')].map(one =>
  [one.dataset.from, one.dataset.to].map(end => end - arguments[0]))"""


def test_both_timelines_zoom_together_on_the_longer_of_both_axes(browser: Browser) -> None:
    longer = mixed()[0]
    longer["new"]["timeline"]["end_ns"] += 4 * MS
    browser.open(render_comparison_html(longer))
    start_ns = longer["base"]["timeline"]["start_ns"]
    assert browser.run(_VIEW, start_ns) == [[0, 14 * MS]] * 2
    for figure, act in ((0, "in"), (1, "in"), (1, "right")):
        browser.run(f"document.querySelectorAll('[data-act={act}]')[{figure}].click()")
    browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    first, second = browser.run(_VIEW, start_ns)
    assert first == second
    assert first[1] - first[0] == 14 * MS // 4
    browser.run("document.querySelector('[data-act=whole]').click()")
    browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert browser.run(_VIEW, start_ns) == [[0, 14 * MS]] * 2


def test_the_page_fits_a_narrow_window_and_the_keyboard_reaches_all_of_it(browser: Browser) -> None:
    browser.open(page_of(regression, True))
    for width in (390, 700, 1100, 1280):
        browser.look(width)
        assert browser.scrolls_sideways() == 0
    stops = browser.tab_stops()
    assert stops[0].name == "Skip to the verdict"
    assert all(one.visible and one.name for one in stops)
    names = [one.name for one in stops]
    assert names.index("Why") < names.index("launch_starved.launch") < names.index("Zoom in, both")
