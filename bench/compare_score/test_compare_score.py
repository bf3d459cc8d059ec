"""What compared pairs must show whatever the seed, on a few of them, and how the score counts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from bench.compare_score.cases import SIZES, STEPS, Case, one_cause, sides, two_causes, unchanged, views
from bench.compare_score.cause import strength_for
from bench.compare_score.causes import CAUSE, CAUSES
from bench.compare_score.judge import Result, score
from bench.compare_score.mirror import held, mirrored
from bench.compare_score.sides import Side, simulate, true_delta
from bench.compare_score.table import lines, table, wrong_ones
from bench.simulate.knobs import Knobs

SEED = 10_000_000
KINDS = (
    "permutes slower", "smaller expert grids", "core attention recomputed", "allocator retries",
    "data loader late",
)  # fmt: skip
"""A cause of every way in which one is made."""


@cache
def scored(case: Case) -> Result:
    found = score(case)
    assert not found.error
    return found


def clear(cause: str, step_count: int = 2) -> Case:
    """A case of one cause that no noise hides."""
    return Case("one cause", (cause,), CAUSE[cause].most, step_count, SEED)


@pytest.mark.parametrize("cause", ["dense GEMMs slower", "DeepEP dispatch slower", "Python slower"])
def test_a_clear_cause_of_two_steps_is_undecided_and_its_row_first(cause: str) -> None:
    found = scored(clear(cause))
    assert (found.verdict, found.used) == ("undecided", (2, 2))
    assert found.rows_right


def test_a_cause_of_many_steps_is_a_regression_of_its_true_size() -> None:
    found = scored(clear("norm's all-reduce late", 9))
    assert found.verdict == "regression"
    assert found.rows[0][0] == "exposed_comm.all_reduce"
    assert found.true_ns == pytest.approx(0.3 * found.base_ns, rel=0.05)
    assert found.covers


def test_two_causes_are_both_within_the_first_three_rows() -> None:
    found = scored(Case("two causes", ("attention slower", "permutes slower"), 0.2, 2, SEED))
    assert found.rows_right
    assert {"compute.attention", "compute.permute"} <= {row for row, _ in found.rows[:3]}


def test_a_run_with_other_noise_is_no_regression() -> None:
    (case,) = unchanged(SEED + 20, 1)
    found = scored(replace(case, step_count=8))
    assert found.used == (8, 8)
    assert found.verdict in ("no_change", "undecided")
    assert found.covers


@pytest.mark.parametrize("version", ["2.9.1", "3.16.1"])
def test_a_run_of_an_older_schema_is_no_change(version: str) -> None:
    found = scored(Case("versions", (), 0.0, 2, SEED, version))
    assert (found.verdict, found.delta_ns) == ("no_change", 0)


@pytest.mark.parametrize(
    "case",
    [
        clear("dense GEMMs slower"),
        clear("norm's all-reduce late", 9),
        Case("versions", (), 0.0, 2, SEED, "2.9.1"),
    ],
    ids=lambda case: case.name,
)
def test_rows_add_up_and_swapping_mirrors_and_json_tells_the_same(case: Case) -> None:
    found = scored(case)
    assert (found.adds_up, found.mirrors, found.rereads) == (True, True, True)


@pytest.mark.parametrize("name", KINDS)
def test_a_strength_makes_a_step_as_much_longer_as_is_asked(name: str) -> None:
    cause = CAUSE[name]
    side = Side(cause.knobs)
    base, new = cause.change(side, strength_for(cause, side, 0.1, SEED))
    base_ns, new_ns = (sum(simulate(one, SEED, 6).step_ns[1:]) for one in (base, new))
    assert new_ns / base_ns == pytest.approx(1.1, abs=0.003)


def test_what_no_strength_can_reach_is_refused_by_name() -> None:
    cause = CAUSE["core attention recomputed"]
    with pytest.raises(ValueError, match="core attention recomputed"):
        strength_for(cause, Side(cause.knobs), 0.5, SEED)


def test_the_true_difference_is_that_of_the_same_noise_on_both_sides() -> None:
    base = Side(Knobs(layer_count=2, microbatch_count=1))
    longer = replace(base, longer=(("adam", 2.0),))
    delta_ns, base_ns = true_delta(base, longer, range(3), 2)
    assert true_delta(base, base, range(3), 2) == (0.0, base_ns)
    assert delta_ns == pytest.approx(0.9 * 600_000, rel=0.05)  # Adam's part of the optimizer's time, again


def test_the_causes_are_at_least_twenty_each_with_its_rows_and_a_reason_for_more_than_one() -> None:
    assert len(CAUSE) == len(CAUSES) >= 20
    assert all(cause.rows for cause in CAUSES)
    assert [cause.name for cause in CAUSES if (len(cause.rows) > 1) != bool(cause.because)] == []


def test_every_cause_comes_in_every_size_with_few_and_many_steps() -> None:
    cases = list(one_cause(SEED))
    assert len(cases) == len(CAUSES) * len(SIZES) * len(STEPS)
    assert len({case.seed for case in cases}) == len(cases)


def test_two_causes_are_of_one_shape_and_their_rows_are_apart() -> None:
    cases = list(two_causes(SEED, 50))
    assert len(cases) == 50
    for case in cases:
        one, other = (CAUSE[name] for name in case.causes)
        assert one.shape == other.shape
        assert not one.rows & other.rows


def test_unchanged_pairs_have_the_same_knobs_and_other_noise() -> None:
    (case,) = unchanged(SEED, 1)
    base, new = sides(case)
    assert base == new
    assert len(set(case.noise_seeds)) == 2
    assert len(set(views(case))) == 1


DOCUMENT: dict[str, Any] = {
    "verdict": "regression",
    "comparable": {"state": "yes", "differences": []},
    "base": {"step_ns": 100},
    "new": {"step_ns": 105},
    "step_delta_ns": 5,
    "step_delta_ci95_ns": [3, 7],
    "attribution": [{"row": "compute.gemm", "delta_ns": 5, "base_ns": 40, "new_ns": 45, "count_ns": None}],
    "reasons": [],
    "modules": [],
    "layers": [],
    "kernels": [{"change": "new", "base_count": 0, "new_count": 1}],
    "changed": [],
    "suspects": [{"id": "kernels_slower", "because": ["5 ns slower"]}],
    "pairs": [],
}


def test_a_mirrored_document_has_its_sides_swapped_and_its_differences_negated() -> None:
    turned = mirrored(DOCUMENT)
    assert turned["verdict"] == "improvement"
    assert (turned["base"], turned["new"]) == (DOCUMENT["new"], DOCUMENT["base"])
    assert (turned["step_delta_ns"], turned["step_delta_ci95_ns"]) == (-5, [-7, -3])
    assert turned["attribution"] == [
        {"row": "compute.gemm", "delta_ns": -5, "base_ns": 45, "new_ns": 40, "count_ns": None}
    ]
    assert turned["kernels"] == [{"change": "gone", "base_count": 1, "new_count": 0}]
    assert turned["suspects"] == [{"id": "kernels_slower"}]
    assert mirrored(turned) == held(DOCUMENT)


FEW = Result(clear("attention slower"), used=(2, 2), verdict="undecided", rows=(("compute.attention", 5),))
MANY = replace(FEW, used=(20, 20), verdict="regression", low_ns=3, high_ns=7, true_ns=5.0)
SAME = replace(MANY, case=next(unchanged(SEED, 1)), verdict="undecided", low_ns=-1, high_ns=1, true_ns=0.0)


def test_few_steps_are_right_when_undecided_and_many_when_slower() -> None:
    assert FEW.verdict_right
    assert MANY.verdict_right
    assert not replace(FEW, verdict="regression").verdict_right
    assert not replace(MANY, verdict="undecided").verdict_right
    assert not replace(SAME, verdict="improvement").verdict_right


def test_a_row_is_right_only_as_the_first_and_two_within_three() -> None:
    rows = (("compute.gemm", 7), ("compute.attention", 5), ("compute.norm", 2), ("compute.permute", 1))
    assert not replace(MANY, rows=rows).rows_right
    both = replace(MANY.case, causes=("attention slower", "norms slower"))
    assert replace(MANY, case=both, rows=rows).rows_right
    both = replace(MANY.case, causes=("attention slower", "permutes slower"))
    assert not replace(MANY, case=both, rows=rows).rows_right


def test_every_line_counts_its_own_pairs() -> None:
    outside, alarm = replace(MANY, true_ns=8.0), replace(SAME, verdict="regression", low_ns=1)
    counted = {line.what: (line.hits, line.of) for line in lines([FEW, MANY, outside, SAME, alarm])}
    assert counted["fewer than 8 steps a side: undecided"] == (1, 1)
    assert counted["8 and more: regression"] == (2, 2)
    assert counted["2 steps: the right row first all the same"] == (1, 1)
    assert counted["unchanged: no false alarm"] == (1, 2)
    assert counted["unchanged: the interval holds 0"] == (1, 2)
    assert counted["changed: the interval holds the truth"] == (1, 2)
    assert counted["two causes: both within the first three rows"] == (0, 0)


def test_the_table_says_what_was_wrong_and_where() -> None:
    right = replace(MANY, adds_up=True, mirrors=True, rereads=True)
    wrong = replace(right, verdict="no_change", rows=(("compute.gemm", 9_000),))
    text = table([right, wrong], date="2026-01-02", simulator="0123456789ab", seed=7)
    assert text.startswith("Scored on 2026-01-02: 2 pairs, first seed 7, simulator `0123456789ab`; 0 could")
    assert "right, no_change; first compute.gemm" in text
    assert list(wrong_ones([right])) == []
    (line,) = wrong_ones([wrong])
    assert f"seed {SEED}: said no_change; rows, expected [['compute.attention']]" in line
    (line,) = wrong_ones([Result(right.case, error="KeyError: 'row'")])
    assert line.endswith("KeyError: 'row'")
