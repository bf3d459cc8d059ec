"""The ranks of a run in a browser: two of them chosen, maps on a narrow window."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import diagnoser
from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.recorded import Capture, write_ranks
from reports.result.codec import Document
from tests.doubles.html import page_of
from tests.read_back.browser import Browser, started

_READY = """return new Promise(done => {
  const look = () => { if (document.body.dataset.ready) done(true); else setTimeout(look, 10); };
  look();
})"""
_CHOOSE = """const choice = document.querySelectorAll('.pair select')[arguments[0]];
choice.value = String(arguments[1]);
choice.dispatchEvent(new Event('change'));"""
_COLUMN = """const cells = document.querySelectorAll(`.pair td[data-side="${arguments[0]}"]`);
return [...cells].map(one => one.textContent);"""
_WIDE = """return [...document.querySelectorAll('#panel-ranks svg, #panel-ranks select')]
  .filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1).length"""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    truth = draw_run(21, Cause.SLOW_DEVICE, 4, step_count=3)
    folder = tmp_path_factory.mktemp("ranks")
    written = write_ranks(truth.done, folder, draw_clocks(truth.run), Capture(mpi=True))
    return diagnoser.analyze([one.path for one in written], ask_megatron=False).to_dict()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("chromium")) as one:
        yield one


def opened(browser: Browser, document: Document) -> None:
    browser.open(page_of(document))
    browser.run(_READY)
    browser.run("document.getElementById('tab-panel-ranks').click()")


def test_a_choice_fills_its_column_with_the_figures_of_that_rank(
    browser: Browser, document: Document
) -> None:
    opened(browser, document)
    first, second = (browser.run(_COLUMN, side) for side in (0, 1))
    assert first != second
    browser.run(_CHOOSE, 1, document["run"]["late"]["index"])
    assert browser.run(_COLUMN, 1) == first
    assert browser.run(_COLUMN, 0) == first


def test_maps_and_choices_fit_a_phone(browser: Browser, document: Document) -> None:
    browser.look(390, 844)
    opened(browser, document)
    assert browser.run(_WIDE) == 0
