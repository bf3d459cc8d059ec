"""Whose time it is, as people read it: one line under the wall, a table behind it, a picture on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

import diagnoser
from reports.write.html.icicle import icicle_of
from tests.recordings.kineto import event, late_host, write

DOTTED = "megatron.core.transformer.moe.token_dispatcher.dispatch_preprocess"


def test_the_picture_has_the_shares_of_the_table(tmp_path: Path) -> None:
    events = [*late_host(), event("user_annotation", "forward", 1_000, 400)]
    result = diagnoser.analyze(write(tmp_path / "run.json", events)).result
    drawn = icicle_of(result.ranks[0])
    cells = {(one.row, one.name): (one.left, one.width) for one in drawn}
    assert cells[0, "forward"] == pytest.approx((0.0, 1.0))
    assert cells[1, DOTTED] == pytest.approx((0.0, 180 / 267))
    assert cells[1, "train.train_step"] == pytest.approx((180 / 267, 87 / 267))
    assert cells[2, "aten::mm"][1] == pytest.approx(15 / 267)
