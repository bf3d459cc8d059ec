"""Whose time it is, as people read it: one line under the wall, a table behind it, a picture on the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import diagnoser
from diagnoser.cli import run
from reports.write.html.icicle import icicle_of
from tests.read_back.browser import Browser, started
from tests.recordings.kineto import event, late_host, write

DOTTED = "megatron.core.transformer.moe.token_dispatcher.dispatch_preprocess"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "run.json", late_host())


def shown(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert run(["analyze", str(path), *options]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_the_whole_report_lists_every_address_and_what_is_missing(
    tmp_path: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shown(path, capsys, "--full")
    assert f"Whose time it is address kind late, ms blocking, ms share {DOTTED} function" in out
    operators = [one for one in late_host() if one["cat"] != "python_function"]
    out = shown(write(tmp_path / "operators.json", operators), capsys, "--full")
    assert "no frame recorded" in out
    assert "with_stack=True, with_modules=True" in out


def test_the_picture_has_the_shares_of_the_table(tmp_path: Path) -> None:
    events = [*late_host(), event("user_annotation", "forward", 1_000, 400)]
    result = diagnoser.analyze(write(tmp_path / "run.json", events)).result
    drawn = icicle_of(result.ranks[0])
    assert drawn is not None
    cells = {(one.row, one.name): (one.left, one.width) for one in drawn.cells}
    assert cells[0, "forward"] == pytest.approx((0.0, 1.0))
    assert cells[1, DOTTED] == pytest.approx((0.0, 180 / 267))
    assert cells[1, "train.train_step"] == pytest.approx((180 / 267, 87 / 267))
    assert cells[2, "aten::mm"][1] == pytest.approx(15 / 267)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("chromium")) as one:
        yield one
