"""The compute wall: what keeps its price from being the whole, and what stands beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from tests.doubles.opinions import (
    NOBODY,
    SURE,
    account,
    budget,
    costs,
    evidence,
    judge_compute,
    rank,
    seen,
)  # fmt: skip
from traces.measure.bounds import Bounds
from traces.measurements import RankMeasurements
from traces.sections.rank import TensorCores

WIDE = TensorCores(
    gemm_ns=400, simt_ns=100, simt_count=2, tf32=True, fp32_to_tf32_frac=0.5, matrix_ns=400, wide_ns=100,
    wide_count=2, half=True, peaks_known=True,
)  # fmt: skip
"""Of 1000 ns 400 are matrix work, 100 of it in FP32 or TF32, 100 without tensor cores: each as a wall."""


def wide(priced: float = 0.5, held: bool = False, **what: object) -> RankMeasurements:
    """`priced`: what the replay saves where GPU work halves; `held`: by what the host itself does."""
    proofs = replace(SURE, elastic_frac=priced, unseen_frac=0.0 if held else 1.0)
    return rank(costs(proofs=proofs), tensor_cores=structs.replace(WIDE, **what))


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (wide(), None),
        (wide(peaks_known=False), "peak rates unknown"),
        (wide(peaks_known=False, wide_ns=99), None),
        (wide(peaks_known=False, half=NOBODY), "peak rates unknown"),
        (wide(peaks_known=False, half=False), None),  # a GPU that has no better format
        (wide(0.39), "saves only 39 %: what waits for what is not understood"),
        *((wide(0.39, held=True), "saves only 39 %: the host is nearly the limit too"), (wide(0.4), None)),
        *((wide(0.39, wide_ns=99), None), (wide(0.39, half=False), None)),
        (replace(wide(0.2), budget=budget(500)), None),  # of half a window of compute half as much is saved
        (replace(wide(0.19), budget=budget(500)), "what waits for what is not understood"),
        (wide(fp32_to_tf32_frac=NOBODY, simt_ns=100), "not known here"),
        (wide(fp32_to_tf32_frac=NOBODY, simt_ns=99), None),
        (wide(fp32_to_tf32_frac=NOBODY, simt_ns=100, tf32=NOBODY), None),
        (replace(wide(), sm=structs.replace(rank().sm, sm_count=NOBODY)), "neither the number of SMs"),
    ],
)
def test_a_small_price_of_compute_is_undecided_for_one_reason(
    one: RankMeasurements, said: str | None
) -> None:
    for ranks in ([one], [rank(), one]):
        found = judge_compute(ranks)
        assert found.outcome == ("clear" if said is None else "unmeasurable")
        assert said is None or said in found.missing[0]


def test_doubts_of_any_rank_come_in_the_order_of_the_doubts() -> None:
    no_sms = replace(wide(), sm=structs.replace(rank().sm, sm_count=NOBODY))
    assert "peak rates unknown" in judge_compute([no_sms, wide(peaks_known=False)]).missing[0]
    assert "neither the number of SMs" in judge_compute([wide(0.39), no_sms]).missing[0]


def test_a_doubted_price_of_compute_has_the_bound_of_its_partition() -> None:
    bounded = replace(wide(0.2), bounds=Bounds(0, 0, 0, 150))
    assert judge_compute([bounded]).at_most_frac == 0.15
    in_doubt = rank(costs(at_least=NOBODY), bounds=Bounds(0, 0, 0, 150))
    assert judge_compute([bounded, in_doubt]).at_most_frac == 0.075  # the other's own replay is proven
    assert judge_compute([replace(bounded, bounds=Bounds(0, 0, 0, 90))]).outcome == "clear"
    sure = judge_compute([replace(wide(), bounds=Bounds(0, 0, 0, 150))])
    assert sure.at_most_frac is None  # the price itself is the most


def test_what_stands_beside_compute_is_of_the_ranks_that_tell_it() -> None:
    """Small grids fill 300 + 150 of 1000 + 500 ns of work, persistent kernels 600; layouts 120 of 2200 ns."""
    sm = structs.replace(rank().sm, under_filled_ns=300, persistent_ns=600, fill_frac=0.5)
    layout = replace(budget(), compute_by_class_ns={"layout": 120})
    told = rank(sm=sm, compute_work_ns=1_000, budget=layout)
    other = structs.replace(sm, under_filled_ns=150, persistent_ns=0, fill_frac=0.8)
    unknown = structs.replace(other, under_filled_ns=NOBODY, fill_frac=NOBODY)
    begun = account({"profiler": 200})  # which leaves 800 ns of the window
    untold = rank(sm=unknown, compute_work_ns=None, account=begun)
    found = judge_compute([rank(sm=other, compute_work_ns=500), told, untold])
    values = {one.measure: one.value for one in found.evidence if one.limit is None}
    assert values == {"under_filled_frac": 0.3, "fill_frac": 0.5, "persistent_frac": 0.4}
    for one in (replace(untold, compute_work_ns=500), rank(sm=other, compute_work_ns=None)):
        assert "under_filled_frac" not in seen(judge_compute([one]))
    with_layout = judge_compute([told, untold])
    assert (evidence(with_layout, "layout_frac").value, evidence(with_layout, "layout_frac").limit) == (
        120 / 1_800,
        0.05,
    )


@pytest.mark.parametrize(("layout_ns", "is_shown"), [(50, True), (49, False)])
def test_copies_from_layout_to_layout_are_shown_from_a_twentieth(layout_ns: int, is_shown: bool) -> None:
    one = rank(budget=replace(budget(), compute_by_class_ns={"layout": layout_ns}))
    assert ("layout_frac" in seen(judge_compute([one]))) is is_shown


def test_wide_and_simt_work_are_shares_of_the_gpus_that_could_do_better() -> None:
    """Wide: 100 + 50 of 400 + 200, 30 in TF32; without tensor cores 30 + 60 of 100 + 200, by five kernels."""
    first = structs.replace(WIDE, gemm_ns=100, simt_ns=30, simt_count=2, tf32_ns=30)
    second = structs.replace(WIDE, matrix_ns=200, wide_ns=50, gemm_ns=200, simt_ns=60, simt_count=3)
    older = structs.replace(first, half=False, tf32=False)
    found = judge_compute([rank(tensor_cores=one) for one in (first, second, older)])
    values = {one.measure: one.value for one in found.evidence}
    assert (values["wide_matrix_frac"], values["tf32_matrix_frac"]) == (0.25, 0.2)
    assert (values["simt_gemm_frac"], values["simt_gemm_count"]) == (0.3, 5)
    assert not {"wide_matrix_frac", "simt_gemm_frac"} & seen(judge_compute([rank(tensor_cores=older)]))
