"""Simulated runs, and the same with a change really made: the saving lies in the range told for it."""

from __future__ import annotations

from functools import cache

import pytest

from bench.score.changes_by_truth import SHORT, TRIALS, Held, trials, trials_together

HEAVY = {"dispatcher": "alltoall", "python_us": 25.0, "dispatch_us": 200.0, "attention_us": 40.0}
"""What lets most changes apply to most runs: a late host, and exchanges that are seen."""
RUNS = 3
"""Short runs of each change; `python -m bench.score.changes_by_truth` takes as many and as long as asked."""


@cache
def drawn(name: str) -> tuple[Held, ...]:
    return tuple(trials(name, RUNS, first_seed=200, **SHORT, **HEAVY))


@pytest.mark.parametrize("name", TRIALS)
def test_the_true_saving_of_a_change_is_missed_at_most_once(name: str) -> None:
    assert sum(not one.inside for one in drawn(name)) <= 1, drawn(name)
    assert all(one.low is None or one.low <= one.high for one in drawn(name))


def test_of_all_changes_nine_of_ten_ranges_hold_the_true_saving() -> None:
    every = [one for name in TRIALS for one in drawn(name)]
    assert sum(one.inside for one in every) >= 0.9 * len(every)


@pytest.mark.parametrize(
    "names",
    [
        ("recompute_dropped", "faster_dispatcher"),
        ("graph_scopes", "token_counts_stay"),
        ("no_retries", "recompute_dropped"),
    ],
)
def test_the_true_saving_of_changes_made_together_lies_in_the_range_of_one_replay(
    names: tuple[str, ...],
) -> None:
    held = [*trials_together(names, range(200, 206), **SHORT, **HEAVY)]
    assert held
    assert all(one.inside for one in held), held


def test_a_range_that_misses_is_seen() -> None:
    assert not Held("", 0, 0.10, 0.20, 0.05).inside
    assert not Held("", 0, None, 0.20, 0.25).inside
    assert Held("", 0, 0.10, 0.20, 0.205).inside
    assert Held("", 0, None, 0.20, -0.30).inside
