"""What is advised holds once it is done: cures and steps of a few random runs, applied and judged again.

`python -m bench.closure` asks the same of thousands.
"""

from __future__ import annotations

from random import Random

import pytest

from heuristics.judging.judgement import judge_observed
from tests.configurations.closure import cures, steps, taken_back, waiting
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
