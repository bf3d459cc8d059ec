"""Every number of every format is in the document; the walk that says so is seen to fail."""

from __future__ import annotations

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
from reports.content.page import Detail
from reports.result.codec import Document
from tests.agreement.number_walk import Walk
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


SELECTIVE = ("text", "markdown", "jira", "perfetto")
"""Formats that show more where all is asked for."""


def selections(forms: Iterable[str]) -> list[tuple[str, Detail]]:
    """Formats with what they show: some and all, or the one thing there is."""
    return [
        (form, detail)
        for form in of_text(forms)
        for detail in (Detail if form in SELECTIVE else (Detail.FULL,))
    ]


@pytest.mark.parametrize(
    ("name", "form", "detail"),
    [(name, *how) for names, forms in ((RECORDED, ANALYSIS), (COMPARED, COMPARISON))
        for name in names for how in selections(forms)],
)  # fmt: skip
def test_every_number_of_a_diagnosis_and_of_a_comparison_is_in_its_document(
    request: pytest.FixtureRequest, name: str, form: str, detail: Detail
) -> None:
    walk = request.getfixturevalue("compared" if name in COMPARED else "diagnosed")(name)
    assert walk.strangers(printed(walk.document, form, detail)) == []


REAL = (
    "a100_llm_2_7B_nvtx.sqlite", "nsysai_mfu_2gpu_before.sqlite", "hta_trace_diff_test_test.json.gz",
    "hta_df_index_resolver_df_index_resolver.json.gz", "tl_moe_03_top1_sparse.json.gz",
)  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_every_number_of_a_real_recording_is_in_its_document(recordings: Path, name: str) -> None:
    walk = Walk(diagnoser.analyze(recordings / name).to_dict())
    found = {form: walk.strangers(printed(walk.document, form, Detail.FULL)) for form in of_text(ANALYSIS)}
    assert {form: strangers for form, strangers in found.items() if strangers} == {}


ROUNDED = re.compile(r"(?<![\w.,])(?:\d\.\d\d|\d\d\.\d)(?= ms|\s|$)")


def altered(text: str, figure: re.Pattern[str]) -> tuple[str, int]:
    """The text with the first and the last digit of each such figure wrong, and how many there are."""
    figures, chars = [*figure.finditer(text)], list(text)
    for place in [at for one in figures for at in (one.start(), one.end() - 1)]:
        chars[place] = str((int(chars[place]) + 4) % 9 + 1)
    return "".join(chars), len(figures)


@pytest.mark.parametrize("form", ["text", "markdown", "jira", "html"])
def test_wrong_digits_are_caught_wherever_they_are_planted(
    diagnosed: Callable[[str], Walk], form: str
) -> None:
    """Of three digits some are, by chance, those of another figure."""
    walk = diagnosed("communication")
    wrong, count = altered(printed(walk.document, form, Detail.FULL), ROUNDED)
    assert count >= 10
    assert len(walk.strangers(wrong)) >= 0.6 * count
