"""What is advised holds once it is done; a layout as even as can be is not balanced again."""

from __future__ import annotations

from random import Random

import pytest

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.judging.judgement import judge_observed
from tests.configurations.closure import cures, steps, taken_back, waiting
from tests.doubles.fixes import configured
from tests.megatron.random_runs import drawn_run, random_run

CURED, PLANNED = range(6), range(4)


@pytest.mark.parametrize("seed", CURED)
def test_no_cure_breaks_anything_and_all_come_to_an_end(seed: int) -> None:
    assert list(cures(drawn_run(Random(seed)).run)) == []


@pytest.mark.parametrize("seed", PLANNED)
def test_no_step_breaks_anything_takes_another_back_or_waits_in_vain(seed: int) -> None:
    one = random_run(Random(seed))
    found = judge_observed(one.evidence, one.given, one.configured)
    assert [*steps(found), *waiting(found.plan), *taken_back(one, found)] == []


COM_6 = CATALOGUE["COM-6"]


@pytest.mark.parametrize(
    ("layout", "planned"),
    [("Ettt|tt|tt|tL", False), ("Ett|tt|tt|ttL", False), ("Ett|ttt|tt|tL", False), ("Etttt|t|t|ttL", True)],
)
def test_a_layout_as_even_as_can_be_is_not_balanced_again(layout: str, planned: bool) -> None:
    sizes = {"num_layers": 8, "pipeline_model_parallel_size": 4}
    run = configured({**sizes, "pipeline_model_parallel_layout": layout})
    assert (not any(one.stops for one in COM_6.preconditions(run))) == planned
