"""Figures of one run and of two: nothing is clipped, hidden by another text, or not in the document."""

from __future__ import annotations

import copy
import io
import re
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from reports.figures.paint import COLOURS, HATCHES, paint_of

import diagnoser
from reports.comparison.document import comparison_document
from reports.figures import analysis, comparison
from reports.figures.canvas import FigureForm, Header, Panel, draw_sheet, own_style, sheets
from reports.figures.lettering import fitted, harmless, inches, wrapped
from reports.write.html import looks as colours
from tests.comparison_document_doubles import (
    by_logs,
    not_comparable,
    regression,
    unchanged,
    undecided,
)
from tests.document_doubles import HOSTILE, exposed, graph_only
from tests.moe_pattern import moe_recording
from tests.number_walk import Walk
from traces.names.kinds import COMM_KINDS, compute_classes
from traces.simulate.export import write_export
from traces.simulate.recording import Recording

Document = dict[str, Any]
RUNS: dict[str, Callable[[], Recording]] = {
    "moe": lambda: moe_recording(steps=3, layers=2),
    "dense": exposed,
    "graph only": graph_only,
}
COMPARED = {
    "regression": regression,
    "undecided": undecided,
    "unchanged": unchanged,
    "not comparable": not_comparable,
    "by logs": by_logs,
}
ALL = [*RUNS, "two ranks", "crowded", "hostile", *COMPARED]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Document]:
    folder = tmp_path_factory.mktemp("figures")

    @cache
    def made(name: str) -> Document:
        if name in COMPARED:
            return comparison_document("0.2", COMPARED[name]())
        if name in RUNS:
            return _analyzed(RUNS[name](), folder / f"{name.replace(' ', '_')}.sqlite")
        return {"two ranks": _two_ranks, "crowded": _crowded, "hostile": _hostile}[name](made("moe"))

    return made


def _analyzed(recording: Recording, path: Path) -> Document:
    write_export(path, recording)
    return diagnoser.analyze([path]).to_dict()


def _two_ranks(document: Document) -> Document:
    other = copy.deepcopy(document["ranks"][0]) | {"device": 1, "rank": 1}
    return document | {"ranks": [document["ranks"][0] | {"rank": 0}, other]}


def _crowded(document: Document) -> Document:
    """12,000 activities of every kind on 20 streams."""
    made = copy.deepcopy(document)
    keys = [f"compute.{name}" for name in compute_classes()] + [f"comm.{kind}" for kind in COMM_KINDS]
    at_ns = list(range(0, 600 * 3_000, 3_000))
    lane = {"at_ns": at_ns, "length_ns": [2_000] * 600, "key": [n % len(keys) for n in range(600)]}
    lanes = [{"stream": stream, **lane, "name": [-1] * 600} for stream in range(20)]
    shown = made["ranks"][0]["timeline"]
    shown |= {"keys": keys, "lanes": lanes, "end_ns": shown["start_ns"] + 1_800_000, "left_out": 5}
    return made


def _hostile(document: Document) -> Document:
    """Every foreign text is as bad as can be."""
    made = copy.deepcopy(document)
    worst = HOSTILE + "\ud800 \x00 \u0e01\u4e2d $\\frac{" + "W" * 10_000
    made["traces"][0]["name"] = worst
    made["ranks"][0] |= {"trace": worst, "gpu": worst}
    for row in made["ranks"][0]["moe"]["rows"]:
        row["module"] += worst
    return made


def _drawn(document: Document, form: FigureForm) -> bytes:
    if document.get("kind") == "comparison":
        return comparison.draw_comparison(document, form)
    return analysis.draw_analysis(document, form)


def _parts(document: Document) -> tuple[Header, list[Panel]]:
    if document.get("kind") == "comparison":
        return comparison.comparison_header(document), comparison.comparison_panels(document)
    return analysis.analysis_header(document), analysis.analysis_panels(document)


def _texts(figure: Figure) -> Iterator[Text]:
    """Texts that are seen: ticks outside of their axis are not."""
    yield from figure.texts
    for axes in figure.axes:
        yield from axes.texts
        yield axes.xaxis.label
        yield from _ticks(axes)


def _ticks(axes: Axes) -> Iterator[Text]:
    low, high = axes.get_xlim()
    for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        if low <= place <= high:
            yield label


@pytest.mark.parametrize(("name", "form"), [*((name, "png") for name in ALL), ("crowded", "pdf")])
def test_no_text_leaves_the_sheet_or_lies_on_another(
    name: str, form: FigureForm, document: Callable[[str], Document]
) -> None:
    with own_style():
        for figure in sheets(*_parts(document(name)), form):
            figure.draw_without_rendering()
            seen = [(text.get_text(), text.get_window_extent()) for text in _texts(figure)]
            boxes = [(words, box) for words, box in seen if words]
            width, height = figure.get_size_inches() * figure.dpi
            for words, box in boxes:
                assert min(box.x0, box.y0) >= 8, words
                assert box.x1 <= width - 8, words
                assert box.y1 <= height - 8, words
            for (words, box), (other, beside) in combinations(boxes, 2):
                apart_x = max(box.x0, beside.x0) - min(box.x1, beside.x1)
                apart_y = max(box.y0, beside.y0) - min(box.y1, beside.y1)
                assert max(apart_x, apart_y) > -1.5, (words, other)


@pytest.mark.parametrize("name", ["hostile", "undecided"])
def test_the_outermost_pixels_are_blank(name: str, document: Callable[[str], Document]) -> None:
    pixels = imread(io.BytesIO(_drawn(document(name), "png")))[..., :3]
    for edge in (pixels[:10], pixels[-10:], pixels[:, :10], pixels[:, -10:]):
        assert np.all(edge == 1.0)


@pytest.mark.parametrize("name", [name for name in ALL if name not in ("hostile", "crowded")])
def test_every_number_is_in_the_document(name: str, document: Callable[[str], Document]) -> None:
    """But for those of a scale."""
    told = document(name)
    with own_style():
        (figure,) = sheets(*_parts(told), "png")
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    labels = [axes.xaxis.label for axes in figure.axes]
    said = "\n".join(text.get_text() for text in [*texts, *labels])
    walk = Walk(told)
    if "ranks" in told:
        for rank in told["ranks"]:
            walk.figures.times += _small_idle_sums(rank)
        walk.figures.close()
    assert walk.strangers(said) == []
    assert len(re.findall(r"\d", said)) > 20


def _small_idle_sums(rank: Document) -> list[float]:
    """Idle rows added up from the smallest, per step: the only sums that the walk does not know."""
    rows = [one for one in rank["ledger"] or () if one["row"].startswith("idle.")]
    lengths = sorted(sum(one["per_step_ns"]) for one in rows)
    return [sum(lengths[:count]) / (len(rank["steps"]["used"]) or 1) for count in range(2, len(lengths) + 1)]


@pytest.mark.parametrize(("name", "form"), [("dense", "svg"), ("regression", "png"), ("regression", "pdf")])
def test_the_same_document_gives_the_same_bytes_and_no_date(
    name: str, form: FigureForm, document: Callable[[str], Document]
) -> None:
    drawn = _drawn(document(name), form)
    assert _drawn(copy.deepcopy(document(name)), form) == drawn
    assert not re.search(rb"<dc:date>|CreationDate|Software|Producer|Creator\b", drawn)
    if form == "pdf":
        pages = re.findall(rb"/Type /Page\b", drawn)
        assert len(pages) == len(_parts(document(name))[1])


@pytest.mark.parametrize("name", ["crowded", "hostile"])
def test_the_svg_is_one_small_file_that_runs_and_loads_nothing(
    name: str, document: Callable[[str], Document]
) -> None:
    drawn = _drawn(document(name), "svg").decode("utf-8")
    root = ElementTree.fromstring(drawn)
    assert len(drawn) < 1_500_000
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not tags & {"script", "text", "a", "foreignObject"}
    links = {value for element in root.iter() for key, value in element.items() if key.endswith("href")}
    assert all(link.startswith(("#", "data:image/png;")) for link in links)


def test_a_dollar_sign_is_printed_and_not_read_as_mathematics() -> None:
    """As wide as its letters: read as mathematics it would be narrower, or an error."""
    words = "$\\frac{kernel}{name}$"
    panel = Panel("title", "about", 1.0, lambda area: area.text(0, 0.5, words, 10.0))
    with own_style():
        (figure,) = sheets(Header("", "", ()), [panel], "png")
        text = next(one for one in figure.texts if one.get_text() == words)
        figure.draw_without_rendering()
        wide = text.get_window_extent().width / figure.dpi
    assert wide == pytest.approx(inches(words, 10.0), rel=0.05)


def test_no_text_holds_what_cannot_be_printed(document: Callable[[str], Document]) -> None:
    with own_style():
        (figure,) = sheets(*_parts(document("hostile")), "png")
    texts = [text.get_text() for text in _texts(figure)]
    assert any("alert(1)" in text for text in texts)
    assert all(line.isprintable() for text in texts for line in text.split("\n"))


def test_what_a_run_cannot_fill_says_why_and_what_means_nothing_is_left_out(
    document: Callable[[str], Document],
) -> None:
    def titles(name: str) -> list[str]:
        return [panel.title.partition(":")[0] for panel in _parts(document(name))[1]]

    assert any(title.startswith("MoE layers") for title in titles("moe"))
    assert not any(title.startswith("MoE layers") for title in titles("dense"))
    with own_style():
        (figure,) = sheets(*_parts(document("graph only")), "png")
    said = " ".join(text.get_text() for text in figure.texts)
    assert "Not told: graph replays were recorded whole: their kernels are not in the trace." in said
    assert any(title.startswith("Communication") for title in titles("graph only"))


def test_every_panel_names_its_run_and_unit(document: Callable[[str], Document]) -> None:
    _, panels = _parts(document("two ranks"))
    assert panels[0].title == "Every rank beside the others"
    for panel in panels:
        assert panel.about.startswith("moe.sqlite")
        assert re.search(r"\bms\b|%", panel.about)
    assert "no. 1 of 2 ranks" in panels[1].about


def test_runs_that_cannot_be_compared_have_neither_interval_nor_waterfall(
    document: Callable[[str], Document],
) -> None:
    def heights(name: str) -> list[float]:
        return [panel.height for panel in _parts(document(name))[1]]

    assert max(heights("not comparable")[:2]) < 0.5 < min(heights("regression")[:2])
    assert heights("not comparable")[2] > 1


def test_the_bars_of_a_step_add_up_to_it(document: Callable[[str], Document]) -> None:
    """30 ms of three steps, from the ledger: what is drawn is as long as the axis."""
    told = document("dense")
    panel = next(one for one in _parts(told)[1] if one.title.startswith("Where the step goes"))
    with own_style():
        (figure,) = sheets(Header("", "", ()), [panel], "png")
    (axes,) = figure.axes
    step_ms = axes.get_xlim()[1]
    widths = [patch.get_width() for patch in axes.patches if isinstance(patch, Rectangle)]
    assert sum(widths) == pytest.approx(2 * step_ms)  # by bucket, and by row
    budget = told["ranks"][0]["budget_ns"]
    assert step_ms == budget["window"] / len(told["ranks"][0]["steps"]["used"]) / 1e6


def test_the_users_own_style_changes_nothing(document: Callable[[str], Document]) -> None:
    import matplotlib

    plain = _drawn(document("regression"), "svg")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "text.parse_math": True}):
        assert _drawn(document("regression"), "svg") == plain
        assert matplotlib.rcParams["font.size"] == 30


def test_what_looks_alike_to_a_colour_blind_reader_differs_in_its_pattern() -> None:
    """All keys against each other, in colours as seen by everybody, with protanopia and with deuteranopia."""
    keys = [f"compute.{name}" for name in compute_classes()]
    keys += [f"exposed_comm.{kind}" for kind in COMM_KINDS]
    keys += ["exposed_copy.memcpy_h2d", "exposed_copy.memcpy_d2h", "exposed_copy.memset", "idle"]
    keys += ["launch_starved.launch", "launch_starved.python", "launch_starved.sync", "dependency_stalled"]
    paints = {paint_of(key) for key in keys}
    for (colour, hatch), (other, beside) in combinations(sorted(paints), 2):
        if hatch == beside:
            assert _least_distance(colour, other) > 12, (colour, other, hatch)


def test_neighbours_in_a_figure_can_be_told_apart(document: Callable[[str], Document]) -> None:
    ledger = document("moe")["ranks"][0]["ledger"]
    rows = [one["row"] for one in ledger if one["group"] == "budget"]
    for one, other in pairwise(rows):
        (colour, hatch), (next_colour, next_hatch) = paint_of(one), paint_of(other)
        assert hatch != next_hatch or _least_distance(colour, next_colour) > 12, (one, other)


def test_every_look_of_the_page_has_a_paint() -> None:
    looks = {colours.look(key) for key in ("", "compute", *(f"compute.{one}" for one in compute_classes()))}
    looks |= {colours.look(f"{head}.x") for head in ("comm", "copy", "launch_starved", "blocking")}
    assert {look.colour for look in looks} <= set(COLOURS)
    assert {look.pattern for look in looks} <= set(HATCHES)


_SEEN = tuple(
    np.array(seen).reshape(3, 3)
    for seen in (
        [1, 0, 0, 0, 1, 0, 0, 0, 1],
        [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
        [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881],
    )
)
"""Linear RGB as most see it, with protanopia and with deuteranopia (Machado and others 2009, severity 1)."""


def _least_distance(colour: str, other: str) -> float:
    """Of all three: the distance in CIELAB, where 2.3 is just noticeable."""
    return min(float(np.linalg.norm(_lab(colour, seen) - _lab(other, seen))) for seen in _SEEN)


def _lab(colour: str, seen: np.ndarray) -> np.ndarray:
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(seen @ linear, 0, 1) / np.array([0.9505, 1.0, 1.089])
    root = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def test_the_colours_are_those_of_the_page() -> None:
    style = (Path(colours.__file__).parent / "page.css").read_text(encoding="utf-8")
    light = style.partition("@media")[0]
    page = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", light))
    assert {name: colour.lower() for name, colour in COLOURS.items()}.items() <= page.items()


@given(st.text(max_size=300), st.floats(0.3, 5.0), st.floats(6.0, 14.0), st.booleans())
@settings(max_examples=60)
def test_a_text_takes_no_more_room_than_it_is_given(text: str, width: float, size: float, bold: bool) -> None:
    assert inches(fitted(text, width, size, bold=bold), size, bold=bold) <= width
    assert all(inches(line, size, bold=bold) <= width for line in wrapped(text, width, size, bold=bold))


def test_long_names_are_cut_in_the_middle_and_glyphs_that_are_not_there_replaced() -> None:
    cut = fitted("begin" + "x" * 200 + "end", 1.0, 8.5)
    assert cut.startswith("begin")
    assert cut.endswith("end")
    assert "..." in cut
    assert harmless("a\u4e2d\x1b[31m\u202eb\n\ud800") == "a\ufffd [31m b  "


def test_a_panel_that_needs_more_than_a_page_gets_a_higher_one() -> None:
    tall = Panel("title", "about", 20.0, lambda area: area.text(0, 19.9, "last"))
    with own_style():
        (page,) = sheets(Header("", "verdict", ()), [tall], "pdf")
    assert page.get_size_inches()[1] > 20
    assert draw_sheet(Header("", "verdict", ()), [tall], "pdf").startswith(b"%PDF")


def test_the_pdf_holds_no_link_and_no_action(document: Callable[[str], Document]) -> None:
    drawn = _drawn(document("hostile"), "pdf")
    streams = re.findall(rb"stream\r?\n(.*?)endstream", drawn, re.DOTALL)
    opened = b"\n".join([drawn, *map(_inflated, streams)])
    assert not re.search(rb"/(JavaScript|JS|URI|OpenAction|Launch|AA)\b", opened)


def _inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(stream)
    except zlib.error:
        return stream
