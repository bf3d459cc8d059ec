"""Rows as data give the verdicts that the rows in Python gave, over drawn configurations.

It goes with the last row in Python. `CHANGED`: rules that were corrected when they moved.
"""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from heuristics.rules import legacy
from heuristics.rules.rule import verdict
from heuristics.rules.rules import AS_DATA, rules
from heuristics.rules.transition import CODED
from heuristics.run.run import Run
from tests.constraint_doubles import run_with
from tests.heuristics.rules.test_constraints_rows import ROWS
from tests.megatron.random_runs import random_run

CHANGED: Final = {
    "ep-overlap-mtp-pipeline": "to 0.18.0: Megatron-LM #4796",
    "delayed-wgrad-reduce-lm": "from 0.15.0: 0.14.0 asks for 2.7.0",
}
NULLS: Final[frozenset[str]] = frozenset()
"""Rules of which an order with null was unknown and is false now."""
BEFORE: Final = [row for subject in AS_DATA for row in CODED.get(subject, ())]


def poorer(run: Run, draw: Random) -> Run:
    """The run with some of its knobs forgotten."""
    return run


def drawn(seed: int) -> Run:
    draw = Random(seed)
    words: dict[str, object] = {}
    for row in draw.sample(sorted(ROWS), 12):
        words |= ROWS[row]["breaks"]
        if draw.random() < 0.5:
            words |= ROWS[row]["mends"]
    for knob in draw.sample(sorted(words), len(words) // 4):
        del words[knob]
    if words.pop("lm", False) and words.get("mb"):
        words.pop("mb")
    return run_with(words)


def assert_same(run: Run, where: object) -> None:
    config = run.validated
    for row in BEFORE:
        if row.id not in CHANGED:
            before, now = legacy.verdict(row, config), verdict(rules()[row.id], config)
            assert before is now, (row.id, before, now, where)


@pytest.mark.parametrize("id", sorted(ROWS))
def test_each_pair_of_configurations_is_judged_as_before(id: str) -> None:
    pair = ROWS[id]
    assert_same(run_with(pair["breaks"]), "breaks")
    assert_same(run_with({**pair["breaks"], **pair["mends"]}), "mends")


def test_partly_known_configurations_are_judged_as_before() -> None:
    for seed in range(3000):
        assert_same(drawn(seed), seed)


def test_whole_configurations_are_judged_as_before() -> None:
    for seed in range(150):
        assert_same(random_run(Random(seed)).run, seed)
