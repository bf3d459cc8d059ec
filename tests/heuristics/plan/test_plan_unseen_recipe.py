"""What a recipe of Bridge's scripts may have already is no first step, and asked about."""

from __future__ import annotations

import pytest

from heuristics.fixes.catalogue import CATALOGUE
from tests.doubles.fixes import configured

COM_6 = CATALOGUE["COM-6"]


@pytest.mark.parametrize(
    ("layout", "planned"),
    [("Ettt|tt|tt|tL", False), ("Ett|tt|tt|ttL", False), ("Ett|ttt|tt|tL", False), ("Etttt|t|t|ttL", True)],
)
def test_a_layout_as_even_as_can_be_is_not_balanced_again(layout: str, planned: bool) -> None:
    sizes = {"num_layers": 8, "pipeline_model_parallel_size": 4}
    run = configured({**sizes, "pipeline_model_parallel_layout": layout})
    assert (not any(one.stops for one in COM_6.preconditions(run))) == planned
