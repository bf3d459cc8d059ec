"""A simulated run with a slow GPU, as a reader of its reports sees it."""

from __future__ import annotations

import pytest

import diagnoser
from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.recorded import Capture, write_ranks
from reports.content.page import Detail
from reports.result.codec import Document
from tests.agreement.number_walk import Walk
from tests.doubles.html import Elements, page_of
from tests.doubles.pages import first_screen, flat
from tests.read_back.rendering import text
from tests.read_back.visible_text import visible


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    truth = draw_run(21, Cause.SLOW_DEVICE)
    folder = tmp_path_factory.mktemp("ranks")
    written = write_ranks(truth.done, folder, draw_clocks(truth.run), Capture(mpi=True))
    found = diagnoser.analyze([one.path for one in written], ask_megatron=False).to_dict()
    assert found["run"]["late"]["rank"] == truth.late_rank
    return found


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_first_screen_names_the_slow_gpu_and_fits(document: Document, width: int) -> None:
    screen = first_screen(document, width)
    assert len(screen.splitlines()) <= 40
    place = document["run"]["late"]["rank"]
    assert f"Straggler rank {place}, GPU" in flat(screen)
    assert "of all waiting; repair saves" in flat(screen)


@pytest.mark.parametrize(
    ("form", "detail"),
    [
        ("text", Detail.FULL),
        ("markdown", Detail.FULL),
        ("html", Detail.FULL),
        ("jira", Detail.FIRST),  # a whole ticket also counts the parts that it has no room for
    ],
)
def test_every_number_of_the_ranks_is_in_the_document(document: Document, form: str, detail: Detail) -> None:
    shown = visible(form, text(document, form, detail))
    assert Walk(document).strangers(shown) == []


def test_the_page_draws_every_rank_in_each_row(document: Document) -> None:
    page = Elements(page_of(document))
    assert len(page.of_class("heat-row")) == 4
    assert len(page.of_class("cell")) == 4 * len(document["ranks"])
