"""The loop from capture's line to compare, on a few simulated runs, and how its score counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.compare_score.cases import Case, unchanged
from bench.compare_score.causes import CAUSES
from bench.compare_score.loop import LEAST_GAIN, MOST_GAIN, Looped, changes, lines, loop, table, wrong_ones
from bench.compare_score.predicted import FIXES, Predicted
from bench.compare_score.predicted import lines as lines_of_predictions
from bench.score.changes_by_truth import TRIALS
from heuristics.fixes.catalogue import CATALOGUE
from traces.recording.options import Question, asked

SEED = 10_000_000


def test_a_change_of_a_tenth_is_decided_with_the_steps_that_capture_records() -> None:
    case = Case("one cause", ("dense GEMMs slower",), 1 / 9, asked(Question.WALLS).steps, SEED)
    found = loop(case)
    assert (found.error, found.first, found.said) == ("", True, "improvement")
    assert found.gain_frac == pytest.approx(0.1)
    assert found.recorded == asked(Question.WALLS).steps


def test_changes_are_drawn_from_the_whole_range_and_every_cause_has_its_turn() -> None:
    cases = [*changes(SEED, 2 * len(CAUSES))]
    gains = [case.frac / (1 + case.frac) for case in cases]
    assert {case.causes for case in cases} == {(cause.name,) for cause in CAUSES}
    assert LEAST_GAIN <= min(gains) < 0.07
    assert 0.2 < max(gains) <= MOST_GAIN
    assert len({case.seed for case in cases}) == len(cases)


def test_every_line_of_the_loop_counts_its_own_runs() -> None:
    (changed,), (same,) = changes(SEED, 1), unchanged(SEED, 1)
    right = Looped(changed, 0.05, True, 10, 10, "improvement")
    results = [
        right,
        replace(right, gain_frac=0.2, said="undecided"),
        replace(right, gain_frac=0.2, first=False, recorded=None, said="undecided"),
        Looped(same, 0.0, True, 10, 10, "no_change"),
        Looped(same, 0.0, True, 10, 10, "regression"),
        Looped(changed, 0.05, error="KeyError: 'row'"),
    ]
    counted = {line.what: (line.hits, line.of) for line in lines(results)}
    assert counted == {
        "a comparison is proposed after the first recording": (4, 5),
        "a comparison of recordings alone is proposed": (4, 5),
        "gains of 5 to 10 %: decided as faster": (1, 1),
        "gains of 10 to 30 %: decided as faster": (0, 2),
        "all gains: decided as faster": (1, 3),
        "all gains: none decided as slower": (3, 3),
        "unchanged: no false alarm": (1, 2),
    }
    assert len([*wrong_ones(results)]) == 4
    assert "10: 4, with logs: 1" in table(results, seed=SEED)


def test_every_change_of_the_simulator_has_the_fix_of_the_catalogue_that_makes_it() -> None:
    assert {*FIXES} == {*TRIALS}
    assert {*FIXES.values()} <= {*CATALOGUE}


def test_predictions_agree_where_they_are_met_or_open_and_hold_where_the_page_says_why_not() -> None:
    results = [
        Predicted("graph_attn", 1, "met", "as_predicted"),
        Predicted("graph_attn", 2, "undecided", "within_noise"),
        Predicted("graph_attn", 3, "undecided", "other_extent"),
        Predicted("graph_attn", 4, "missed", "came_back_elsewhere"),
        Predicted("graph_attn", 5, "missed", "less_than_predicted"),
        Predicted("graph_attn", 6),
    ]
    counted = {line.what: (line.hits, line.of) for line in lines_of_predictions(results)}
    assert counted == {
        "graph_attn: as predicted, or open": (2, 5),
        "all: as predicted, or open": (2, 5),
        "all: that, or the page says why not": (4, 5),
        "all: planned, and seen in the new run": (5, 6),
    }
