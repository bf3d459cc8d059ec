"""Every number of every format is in the document; the walk that says so is seen to fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record
from bench.simulate.recording import Recording
from bench.simulate.run import run
from heuristics.result.compared import Compared
from reports.content.blocks import Detail
from reports.result.codec import Document
from tests.agreement.number_walk import PHRASES, Walk
from tests.configurations.check import log, script
from tests.doubles.comparison_document import (
    by_logs,
    document_of,
    not_comparable,
    regression,
    unchanged,
    undecided,
)
from tests.doubles.document import DISPATCH, exposed, graph_only
from tests.read_back.rendering import ANALYSIS, COMPARISON, rendered
from tests.read_back.visible_text import UNREAD, visible

Made = Callable[[], Recording]
MOE = Knobs(step_count=3, layer_count=2, dispatch_us=600, peer_late_us=30)
DENSE = Knobs(step_count=2, layer_count=2, dispatcher="none", recompute="full")


def simulated(knobs: Knobs) -> Recording:
    return record(run(knobs), View())


RECORDED: dict[str, Made] = {
    "configured": lambda: exposed(comm=DISPATCH),
    "graph_only": graph_only,
    "communication": lambda: simulated(MOE),
    "recompute": lambda: simulated(DENSE),
}
COMPARED: dict[str, Callable[[], Compared]] = {
    make.__name__: make for make in (regression, undecided, not_comparable, unchanged, by_logs)
}


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Walk]:
    """The walk over the document of one of the recordings, made once."""

    @cache
    def make(name: str) -> Walk:
        folder = tmp_path_factory.mktemp("numbers")
        path = folder / f"{name}.sqlite"
        write_export(path, RECORDED[name]())
        given: dict[str, Any] = {}
        if name == "configured":
            given = {"config": script(folder), "log": log(folder, step_ms=8.0), "about": {"gpu": "H100"}}
        return Walk(diagnoser.analyze(path, ask_megatron=False, **given).to_dict())

    return make


@pytest.fixture(scope="module")
def compared() -> Callable[[str], Walk]:
    return cache(lambda name: Walk(document_of(COMPARED[name]())))


def printed(document: Document, form: str, detail: Detail) -> str:
    """What a reader gets of a format."""
    written = rendered(document, form, detail)
    return visible(form, written if isinstance(written, str) else written.decode())


def of_text(forms: Iterable[str]) -> list[str]:
    return [form for form in forms if form not in UNREAD]


SELECTIVE = ("text", "markdown", "jira", "csv", "perfetto")
"""Formats that show more where all is asked for."""


def selections(forms: Iterable[str]) -> list[tuple[str, Detail]]:
    """Formats with what they show: some and all, or the one thing there is."""
    return [
        (form, detail)
        for form in of_text(forms)
        for detail in (Detail if form in SELECTIVE else (Detail.FULL,))
    ]


def test_every_format_is_walked_but_for_two_pictures_that_svg_draws_too() -> None:
    assert set(UNREAD) == {"png", "pdf"}
    assert {"svg", *UNREAD} <= {*ANALYSIS} & {*COMPARISON}


@pytest.mark.parametrize(("form", "detail"), selections(ANALYSIS))
@pytest.mark.parametrize("name", RECORDED)
def test_every_number_of_a_diagnosis_is_in_its_document(
    diagnosed: Callable[[str], Walk], name: str, form: str, detail: Detail
) -> None:
    walk = diagnosed(name)
    assert walk.strangers(printed(walk.document, form, detail)) == []


@pytest.mark.parametrize(("form", "detail"), selections(COMPARISON))
@pytest.mark.parametrize("name", COMPARED)
def test_every_number_of_a_comparison_is_in_its_document(
    compared: Callable[[str], Walk], name: str, form: str, detail: Detail
) -> None:
    walk = compared(name)
    assert walk.strangers(printed(walk.document, form, detail)) == []


REAL = (
    "a100_llm_2_7B_nvtx.sqlite",
    "nsysai_mfu_2gpu_before.sqlite",
    "hta_trace_diff_test_test.json.gz",
    "hta_df_index_resolver_df_index_resolver.json.gz",
    "tl_moe_03_top1_sparse.json.gz",
)


@pytest.mark.parametrize("name", REAL)
def test_every_number_of_a_real_recording_is_in_its_document(recordings: Path, name: str) -> None:
    walk = Walk(diagnoser.analyze(recordings / name).to_dict())
    found = {form: walk.strangers(printed(walk.document, form, Detail.FULL)) for form in of_text(ANALYSIS)}
    assert {form: strangers for form, strangers in found.items() if strangers} == {}


EXACT = re.compile(r"(?<![\w.,])\d{5,}(?![\w.,%])")
ROUNDED = re.compile(r"(?<![\w.,])(?:\d\.\d\d|\d\d\.\d)(?= ms|\s|$)")


def altered(text: str, figure: re.Pattern[str]) -> tuple[str, int]:
    """The text with the first digit of each such figure wrong, and how many of them there are."""
    places = [one.start() for one in figure.finditer(text)]
    chars = list(text)
    for place in places:
        chars[place] = str((int(chars[place]) + 4) % 9 + 1)
    return "".join(chars), len(places)


@pytest.mark.parametrize(
    ("form", "figure", "caught_frac"),
    [("csv", EXACT, 0.95), *((form, ROUNDED, 0.6) for form in ("text", "markdown", "jira", "html"))],
)
def test_wrong_digits_are_caught_wherever_they_are_planted(
    diagnosed: Callable[[str], Walk], form: str, figure: re.Pattern[str], caught_frac: float
) -> None:
    """Exact figures nearly always; of three digits a third are, by chance, those of another figure."""
    walk = diagnosed("communication")
    wrong, count = altered(printed(walk.document, form, Detail.FULL), figure)
    assert count >= 10
    assert len(walk.strangers(wrong)) >= caught_frac * count


def known(**fields: Any) -> Walk:
    """A document of a few figures."""
    plain: dict[str, Any] = {
        "step_ns": 42_038_709,
        "share_frac": 0.4956,
        "peak_bytes": 3 * 2**30,
        "steps": [1, 2, 3],
        "because": "2.13 % of a step",
        "kernels": ["nvjet_tst_128x256"],
    }
    return Walk({**plain, **fields})


@pytest.mark.parametrize(
    "text",
    [
        "42.038709 ms, 42.039 ms, 0.042038709s, 42038.709 us, 42,038,709 ns, +42.0",
        "49.6 % or 0.4956, not more than 50 %",
        "3.0 GiB, 3.2 GB",
        "3 steps",
        "Only\n  2.13 % of a\n  step.",
        "nvjet_tst_128x256 runs",
        "at <0.1 % (exit code 1)",
    ],
)
def test_a_figure_may_be_rounded_and_in_another_unit(text: str) -> None:
    assert known().strangers(text) == []


@pytest.mark.parametrize(
    ("text", "stranger"),
    [
        ("42.038708 ms", "42.038708 ms"),
        ("42.038 ms", "42.038 ms"),
        ("42.039 %", "42.039 %"),
        ("49.5 %", "49.5 %"),
        ("49.6 ms", "49.6 ms"),
        ("3.1 GiB", "3.1 GiB"),
        ("17 steps", "17"),
        ("2.14 % of a step", "2.14 %"),
        ("nvjet_tst_128x257", "nvjet_tst_128x257"),
        ("1,234", "1,234"),
    ],
)
def test_a_figure_that_is_none_of_the_documents_is_named(text: str, stranger: str) -> None:
    (found,) = known().strangers(text)
    assert found.startswith(f"{stranger} in: ")


def test_times_of_the_unix_epoch_are_told_apart_to_the_nanosecond() -> None:
    walk = known(start_ns=1_669_783_687_389_324_001)
    assert walk.strangers("1669783687.389324001s (1669783687389324001 ns)") == []
    assert len(walk.strangers("1669783687.389324002s (1669783687389324002 ns)")) == 2


def test_columns_of_a_timeline_are_no_home_for_a_number() -> None:
    columns = {"at_ns": [7_654_321], "length_ns": [1_234_567]}
    assert known(timeline=columns).strangers("7.654321 ms, 1.234567 ms") != []


def test_every_phrase_of_our_own_has_a_reason() -> None:
    assert all(len(why) > 4 for why in PHRASES.values())


def test_what_a_page_does_not_show_is_not_read_and_what_it_reads_aloud_is() -> None:
    page = (
        '<style>p{top:1px}</style><p aria-label="2 of 3">4<b>5</b></p><td>6</td><td>7</td><script>8</script>'
    )
    assert visible("html", page).split() == ["2", "of", "3", "45", "6", "7"]
    assert visible("markdown", "| a | b |\n| -- | -- |\n| 1 | `2` &#64;<span>x</span> |\n").split() == [
        *("a", "b", "1", "2", "@x"),
    ]
    assert visible("csv", 'a,"1,234",5\n').split() == ["a", "1,234", "5"]
    assert visible("perfetto", json.dumps({"otherData": {"n": 1}, "traceEvents": []})).split() == ["n", "1"]
