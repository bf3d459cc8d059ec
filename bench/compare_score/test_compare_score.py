"""What compared pairs must show whatever the seed, on a few of them, and how the score counts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from bench.compare_score.cases import (
    SIZES,
    STEPS,
    Case,
    few_steps,
    kinds,
    one_cause,
    sides,
    two_causes,
    unchanged,
    views,
)
from bench.compare_score.cause import strength_for
from bench.compare_score.causes import CAUSE, CAUSES
from bench.compare_score.judge import Result, score
from bench.compare_score.kinds import KIND, KINDS, Drawn
from bench.compare_score.mirror import held, mirrored
from bench.compare_score.sides import Side, simulate, true_delta, typical
from bench.compare_score.suspects import ALLOWED, may_stand_first
from bench.compare_score.table import lines, table, wrong_ones
from bench.simulate.knobs import Knobs
from heuristics.comparison.suspects.table import causes

SEED = 10_000_000
WAYS = (
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


@pytest.mark.parametrize("name", WAYS)
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
    "exchanged": None,
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
MANY = replace(
    FEW,
    case=replace(FEW.case, step_count=20),
    used=(20, 20),
    verdict="regression",
    low_ns=3,
    high_ns=7,
    true_ns=5.0,
)
SAME = replace(MANY, case=next(unchanged(SEED, 1)), verdict="undecided", low_ns=-1, high_ns=1, true_ns=0.0)


def test_fewer_than_four_steps_are_right_when_undecided_and_more_when_slower() -> None:
    assert FEW.verdict_right
    assert MANY.verdict_right
    assert not replace(FEW, verdict="regression").verdict_right
    assert replace(FEW, used=(4, 4), verdict="regression").verdict_right
    assert not replace(MANY, verdict="undecided").verdict_right
    assert not replace(MANY, verdict="not_comparable").verdict_right
    assert not replace(SAME, verdict="improvement").verdict_right


def test_a_kind_of_pair_is_right_the_way_it_truly_went_and_decided_from_five_percent_on() -> None:
    case = Case("fusing", (), 0.0, 8, SEED, kind="fusing/modules fused")
    faster = Result(case, true_ns=-6.0, base_ns=100.0, used=(8, 8), verdict="improvement")
    assert faster.verdict_right
    assert not replace(faster, verdict="regression").verdict_right
    assert not replace(faster, verdict="undecided").verdict_right
    assert replace(faster, true_ns=-1.0, verdict="undecided").verdict_right
    assert not replace(faster, true_ns=-1.0, verdict="regression").verdict_right


def test_a_false_alarm_is_a_side_called_slower_that_is_not() -> None:
    assert replace(SAME, verdict="improvement").alarm
    assert not SAME.alarm
    assert not MANY.alarm
    assert replace(SAME, verdict="not_comparable").refused


def test_a_suspect_is_false_that_claims_what_was_not_done_and_none_claims_nothing() -> None:
    assert not MANY.suspect_false
    assert not replace(MANY, suspects=("kernels_slower.attention", "late_rank")).suspect_false
    assert replace(MANY, suspects=("late_rank", "kernels_slower.attention")).suspect_false


def test_every_cause_and_kind_that_changes_says_which_suspects_may_stand_first_by_ids_that_exist() -> None:
    known = [rule.id for rule in causes().rules]
    assert set(ALLOWED) == set(CAUSE)
    kinds_that_change = [kind for kind in KINDS if kind.changes]
    assert all(kind.rows and kind.suspects for kind in kinds_that_change)
    patterns = {one for of in (*ALLOWED.values(), *(kind.suspects for kind in KINDS)) for one in of}
    assert [one for one in sorted(patterns) if not any(may_stand_first(id_, (one,)) for id_ in known)] == []


@pytest.mark.parametrize("name", [name for name, kind in KIND.items() if not kind.changes])
def test_a_kind_that_does_not_change_has_the_same_typical_steps_on_both_sides(name: str) -> None:
    for seed in range(SEED, SEED + 60, 20):
        base, new = (typical(side) for side in KIND[name].made(Drawn(seed)))
        renamed = replace(new, knobs=replace(new.knobs, container="this"))
        if KIND[name].family == "again":
            assert base != new
            assert base.knobs.dense_gemm_us == new.knobs.dense_gemm_us
        else:
            assert simulate(renamed, seed, 3).step_ns == simulate(base, seed, 3).step_ns


@pytest.mark.parametrize("name", [name for name, kind in KIND.items() if kind.changes])
def test_a_kind_that_changes_truly_differs(name: str) -> None:
    base, new = KIND[name].made(Drawn(SEED))
    delta_ns, base_ns = true_delta(base, new, range(SEED, SEED + 3), 4)
    assert abs(delta_ns) > 0.003 * base_ns


def test_kernels_named_twice_take_both_factors() -> None:
    one = Side(Knobs(layer_count=1, microbatch_count=1), (("adam", 2.0),))
    twice = replace(one, longer=(("adam", 1.25), ("adam", 1.6)))
    assert simulate(one, 1, 2).step_ns == simulate(twice, 1, 2).step_ns


def test_few_steps_are_four_to_seven_by_every_size_and_as_often_none() -> None:
    cases = list(few_steps(SEED, 64))
    assert {case.step_count for case in cases} == {4, 5, 6, 7}
    assert sum(not case.changes for case in cases) == 16
    assert {case.frac for case in cases} >= {0.0, 0.05, 0.1, 0.3}


def test_every_kind_is_scored_as_often_as_it_says_on_seeds_of_its_own() -> None:
    cases = list(kinds(SEED))
    assert len(cases) == sum(kind.times for kind in KINDS)
    assert min(after.seed - before.seed for before, after in pairwise(cases)) == 20


def test_a_row_is_right_only_as_the_first_and_two_within_three() -> None:
    rows = (("compute.gemm", 7), ("compute.attention", 5), ("compute.norm", 2), ("compute.permute", 1))
    assert not replace(MANY, rows=rows).rows_right
    both = replace(MANY.case, causes=("attention slower", "norms slower"))
    assert replace(MANY, case=both, rows=rows).rows_right
    both = replace(MANY.case, causes=("attention slower", "permutes slower"))
    assert not replace(MANY, case=both, rows=rows).rows_right


def test_every_line_counts_its_own_pairs() -> None:
    outside, alarm = replace(MANY, true_ns=8.0), replace(SAME, verdict="regression", low_ns=1)
    again = replace(alarm, case=Case("again", (), 0.0, 8, SEED, kind="again/two runs"))
    counted = {line.what: (line.hits, line.of) for line in lines([FEW, MANY, outside, SAME, alarm, again])}
    assert counted["fewer than 4 steps a side: undecided"] == (1, 1)
    assert counted["20: regression"] == (2, 2)
    assert counted["2 steps: the right row first all the same"] == (1, 1)
    assert counted["unchanged: no false alarm"] == (1, 2)
    assert counted["unchanged: the interval holds 0"] == (1, 2)
    assert counted["changed: the interval holds the truth"] == (1, 2)
    assert counted["changed: the first suspect is not false"] == (3, 3)
    assert counted["again: the right verdict"] == (0, 1)
    assert counted["two causes: both within the first three rows"] == (0, 0)


def test_the_table_says_what_was_wrong_and_where() -> None:
    right = replace(MANY, adds_up=True, mirrors=True, rereads=True)
    wrong = replace(right, verdict="no_change", rows=(("compute.gemm", 9_000),))
    text = table([right, wrong], date="2026-01-02", simulator="0123456789ab", seed=7)
    assert text.startswith("Scored on 2026-01-02: 2 pairs, first seed 7, simulator `0123456789ab`; 0 could")
    assert "right, no_change; first compute.gemm" in text
    assert list(wrong_ones([right])) == []
    (line,) = wrong_ones([wrong])
    assert f"seed {SEED}: said no_change, truly +30.0%; rows, expected [['compute.attention']]" in line
    (line,) = wrong_ones([Result(right.case, error="KeyError: 'row'")])
    assert line.endswith("KeyError: 'row'")
