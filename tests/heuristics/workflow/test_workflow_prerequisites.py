"""Rules of the workflow, each row under the document it is from."""

from __future__ import annotations

import pytest

from tests.doubles.workflow import Row, run_with
from tests.doubles.workflow_lists import BRIDGE, OVERLAP, ROWS


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_an_item_of_the_lists_says_what_its_document_does(row: Row) -> None:
    assert row.judged.state == row.state


def test_an_overlap_of_the_model_that_bridge_overwrites_is_not_asked_for() -> None:
    knobs = {**OVERLAP, "comm_overlap.tp_comm_overlap": False, "expert_model_parallel_size": 1}
    run = run_with(knobs, framework=BRIDGE)
    assert Row("004", "ep-overlap-expert-parallel", "not_applicable", run).judged.state == "not_applicable"
