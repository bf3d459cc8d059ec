"""The sheets of one run and of two: nothing is clipped or hidden by another text."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from heuristics.result.compared import Compared
from heuristics.result.result import Result
from reports.content.blocks import Hue
from reports.content.page import PLAIN
from reports.result.codec import Document, decode
from reports.write.figures import analysis, comparison
from reports.write.figures.canvas import FigureForm, drawn, new_sheet, own_style
from reports.write.figures.lettering import MONO, fitted, inches, mono_inches, wrapped
from reports.write.figures.timeline import pixels
from reports.write.lanes import Drawn
from tests.doubles.comparison_document import (
    by_logs,
    document_of,
    not_comparable,
    regression,
    unchanged,
    undecided,
)
from tests.doubles.document import HOSTILE, exposed, graph_only
from tests.recordings.moe_pattern import moe_recording
from traces.names.kernels import COMM_KINDS, compute_classes

RUNS: dict[str, Callable[[], Recording]] = {
    "moe": lambda: moe_recording(steps=3, layers=2),
    "dense": exposed,
    "graph only": graph_only,
}
COMPARED = {
    "regression": regression, "undecided": undecided, "unchanged": unchanged,
    "not comparable": not_comparable, "by logs": by_logs,
}  # fmt: skip
ALL = [*RUNS, "two ranks", "crowded", "hostile", *COMPARED]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Document]:
    folder = tmp_path_factory.mktemp("figures")

    @cache
    def made(name: str) -> Document:
        if name in COMPARED:
            return document_of(COMPARED[name]())
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


def _typed(document: Document) -> Result | Compared:
    if document.get("kind") == "comparison":
        return decode(document, Compared)
    return decode(document, Result)


def _drawn(document: Document, form: FigureForm) -> bytes:
    found = _typed(document)
    if isinstance(found, Compared):
        return drawn(comparison.draw_comparison, found, form, PLAIN)
    return drawn(analysis.draw_analysis, found, form, PLAIN)


def _sheet(document: Document) -> Figure:
    """Within `own_style`."""
    found, area = _typed(document), new_sheet()
    if isinstance(found, Compared):
        comparison.draw_comparison(area, found, PLAIN)
    else:
        analysis.draw_analysis(area, found, PLAIN)
    return area.figure


@pytest.mark.parametrize("name", ALL)
def test_no_text_leaves_the_sheet_or_lies_on_another(name: str, document: Callable[[str], Document]) -> None:
    with own_style():
        figure = _sheet(document(name))
        figure.draw_without_rendering()
        boxes = [(text.get_text(), text.get_window_extent()) for text in figure.texts if text.get_text()]
        width, height = figure.get_size_inches() * figure.dpi
        for words, box in boxes:
            assert min(box.x0, box.y0) >= 8, words
            assert box.x1 <= width - 8, words
            assert box.y1 <= height - 8, words
        for (words, box), (other, beside) in combinations(boxes, 2):
            apart_x = max(box.x0, beside.x0) - min(box.x1, beside.x1)
            apart_y = max(box.y0, beside.y0) - min(box.y1, beside.y1)
            assert max(apart_x, apart_y) > -1.5, (words, other)


@pytest.mark.parametrize(("name", "form"), [("dense", "svg"), ("regression", "png"), ("regression", "pdf")])
def test_the_same_result_gives_the_same_bytes_and_no_date(
    name: str, form: FigureForm, document: Callable[[str], Document]
) -> None:
    drawn_once = _drawn(document(name), form)
    assert _drawn(copy.deepcopy(document(name)), form) == drawn_once
    assert not re.search(rb"<dc:date>|CreationDate|Software|Producer|Creator\b", drawn_once)
    if form == "pdf":
        assert len(re.findall(rb"/Type /Page\b", drawn_once)) == 1


@pytest.mark.parametrize("name", ["crowded", "hostile"])
def test_the_svg_is_one_small_file_that_runs_and_loads_nothing(
    name: str, document: Callable[[str], Document]
) -> None:
    text = _drawn(document(name), "svg").decode("utf-8")
    root = ElementTree.fromstring(text)
    assert len(text) < 1_500_000
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not tags & {"script", "text", "a", "foreignObject"}
    links = {value for element in root.iter() for key, value in element.items() if key.endswith("href")}
    assert all(link.startswith(("#", "data:image/png;")) for link in links)


@pytest.mark.parametrize(("family", "wide"), [("DejaVu Sans", inches), (MONO, None)])
def test_a_text_is_as_wide_as_measured_and_a_dollar_sign_is_no_mathematics(
    family: str, wide: Callable[[str, float], float] | None
) -> None:
    """Read as mathematics it would be narrower, or an error."""
    words = "$\\frac{kernel}{name}$"
    with own_style():
        area = new_sheet()
        area.text(0, 0.5, words, 10.0, family=family)
        (text,) = area.figure.texts
        area.figure.draw_without_rendering()
        found = text.get_window_extent().width / area.figure.dpi
    assert found == pytest.approx(wide(words, 10.0) if wide else len(words) * mono_inches(10.0), rel=0.05)


def test_no_text_holds_what_cannot_be_printed(document: Callable[[str], Document]) -> None:
    with own_style():
        texts = [text.get_text() for text in _sheet(document("hostile")).texts]
    assert any("WWW" in text for text in texts)
    assert all(text.isprintable() for text in texts)


def lane(*activities: tuple[int, int, str]) -> Drawn:
    columns = zip(*activities, strict=True) if activities else ((), (), ())
    at_ns, length_ns, key = (list(column) for column in columns)
    return Drawn("stream", "Compute", "stream 7", at_ns, length_ns, key, [""] * len(key))


@given(
    st.lists(
        st.tuples(st.integers(0, 999), st.integers(0, 400), st.sampled_from(["compute.gemm", "comm.dp"])),
        min_size=1,
        max_size=8,
    )
)
def test_a_pixel_of_the_timeline_is_as_full_as_its_activities(activities: list[tuple[int, int, str]]) -> None:
    """Of 1,000 ns in 10 pixels, against single nanoseconds."""
    cut = [(at, min(length, 1000 - at), key) for at, length, key in activities]
    found = pixels(lane(*cut), 1000, 10)
    hues = tuple(Hue)
    for hue, key in ((Hue.COMPUTE, "compute.gemm"), (Hue.COMMUNICATION, "comm.dp")):
        told = [0] * 10
        for at, length, kind in cut:
            for ns in range(at, at + length if kind == key else at):
                told[ns // 100] += 1
        assert found[hues.index(hue)] * 100 == pytest.approx(told)


@given(st.text(max_size=300), st.floats(0.3, 5.0), st.floats(6.0, 14.0), st.booleans())
@settings(max_examples=60)
def test_a_text_takes_no_more_room_than_it_is_given(text: str, width: float, size: float, bold: bool) -> None:
    assert inches(fitted(text, width, size, bold=bold), size, bold=bold) <= width
    assert all(inches(line, size, bold=bold) <= width for line in wrapped(text, width, size, bold=bold))
