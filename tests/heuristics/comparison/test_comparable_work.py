"""Is a step the same work on both sides: as many kernels, of the same names, through as many layers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from heuristics.comparison.comparable import judge_comparable
from heuristics.comparison.difference.subject import Subject, Value
from heuristics.comparison.same_work import same_amount, shared_work_frac
from heuristics.result.compared import Comparable
from heuristics.result.result import Result
from tests.doubles.comparison import configuration, kernel, rank, result, row, trace
from traces.sections.rank import Rank, StepSource, Unit
from traces.sections.tables import Kernel
from traces.sections.work import InputCopies, Work

GEMM = kernel("gemm", 80, count=8)
ADAM = kernel("adam", 20, count=2, key="compute.optimizer")
DISPATCH = kernel("ncclDevKernel_SendRecv", 20, count=8, key="comm.ep_dispatch")


def between(base: Result, new: Result) -> Comparable:
    return judge_comparable(Subject(base, base.ranks[0]), Subject(new, new.ranks[0]))


def of_ranks(base: Rank, new: Rank) -> Comparable:
    return between(result(base), result(new))


def states(found: Comparable) -> dict[str, str]:
    return {one.what: one.state for one in found.differences}


def many(*, times: int, longer: int = 1) -> Rank:
    """GEMMs and an optimizer, some times as often and some times as long."""
    kernels = (
        kernel("gemm", 80 * times * longer, count=8 * times),
        kernel("adam", 20 * times * longer, count=2 * times, key="compute.optimizer"),
    )
    return rank(kernels=kernels)


def test_twice_the_kernels_of_the_same_length_is_not_the_same_step() -> None:
    found = of_ranks(many(times=1), many(times=2))
    assert states(found) == {"step": "no"}
    assert found.differences[0].base == "by nvtx, 5 kernels"
    assert found.differences[0].new == "by nvtx, 10 kernels"
    assert "--steps" in found.differences[0].because


def test_slower_kernels_are_the_same_step() -> None:
    assert of_ranks(many(times=1), many(times=1, longer=2)).state == "yes"


def test_half_as_many_kernels_twice_as_long_are_the_same_step() -> None:
    few = rank(kernels=(kernel("gemm", 80, count=4), kernel("adam", 20, count=1, key="compute.optimizer")))
    assert of_ranks(many(times=1), few).state == "yes"


def test_a_forward_that_runs_again_is_the_same_step() -> None:
    wgrad = kernel("wgrad", 80, count=8)
    base, new = rank(kernels=(GEMM, wgrad)), rank(kernels=(kernel("gemm", 160, count=16), wgrad))
    assert of_ranks(base, new).state == "yes"


ATTENTION, BACKWARD = "flash_fwd_kernel", "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel"


def passes(
    forward: int, backward: int, *, each: int = 10, adam: int = 0, steps: int = 2
) -> tuple[Kernel, ...]:
    """Attention by pass and GEMMs of one name in both, per step; `adam`: ns of the optimizer."""
    return (
        kernel(ATTENTION, steps * forward * each, count=steps * forward, key="compute.attention"),
        kernel(BACKWARD, steps * backward * each, count=steps * backward, key="compute.attention"),
        kernel("gemm", steps * (forward + 2 * backward) * each, count=steps * (forward + 2 * backward)),
        kernel("adam", steps * adam, count=steps, key="compute.optimizer"),
    )


def test_a_forward_that_runs_again_is_told_by_backward_kernels_though_gemms_share_a_name() -> None:
    once, again = rank(kernels=passes(4, 4)), rank(kernels=passes(8, 4))
    assert same_amount(once, again) is True
    assert of_ranks(once, again).state == "yes"


def test_more_microbatches_are_other_work_however_long_the_optimizer_is() -> None:
    few, many = rank(kernels=passes(4, 4, adam=300)), rank(kernels=passes(8, 8, adam=300))
    assert same_amount(few, many) is False
    assert states(of_ranks(few, many)) == {"step": "no"}
    one_more = rank(kernels=passes(5, 5, adam=300))
    assert states(of_ranks(few, one_more)) == {"step": "no"}


def test_without_backward_kernels_by_name_the_optimizer_tells_nothing() -> None:
    few, many = (rank(kernels=(kernel("gemm", 60 * times, count=6 * times), ADAM)) for times in (1, 2))
    assert states(of_ranks(few, many)) == {"step": "no"}


def test_larger_microbatches_are_the_same_work() -> None:
    small, large = rank(kernels=passes(8, 8)), rank(kernels=passes(4, 4, each=20))
    assert same_amount(small, large) is True
    assert same_amount(large, small) is True
    assert of_ranks(small, large).state == "yes"


def test_a_step_that_lost_part_of_its_backward_is_none() -> None:
    whole, cut = rank(kernels=passes(10, 10)), rank(kernels=passes(10, 9))
    assert states(of_ranks(whole, cut)) == {"step": "no"}


def window(*kernels: Kernel, length: int = 20) -> Rank:
    return rank(source="none", lengths_ns=(length,), kernels=kernels)


def test_windows_of_one_length_that_hold_other_amounts_of_work_are_not_compared() -> None:
    one, more = window(*passes(50, 50, steps=1)), window(*passes(52, 52, steps=1))
    assert states(of_ranks(one, more)) == {"step": "no"}
    nearly = window(*passes(51, 51, steps=1), length=21)
    assert states(of_ranks(one, nearly)) == {"step": "with_differences"}


def test_a_window_with_part_of_another_step_is_no_step() -> None:
    steps, cut = rank(kernels=passes(10, 10)), window(*passes(12, 11, steps=1))
    assert states(of_ranks(steps, cut)) == {"step": "no"}
    assert states(of_ranks(steps, window(*passes(10, 10, steps=1)))) == {"step": "with_differences"}


def test_windows_without_kernels_tell_no_amount_of_work() -> None:
    sides = [rank(source="none", lengths_ns=(length,)) for length in (100, 110)]
    assert states(of_ranks(*sides)) == {"step": "no"}
    assert of_ranks(sides[0], sides[0]).state == "yes"


@pytest.mark.parametrize("kernels", [(GEMM,), (GEMM, ADAM)])
def test_an_exchange_of_unknown_purpose_may_be_that_of_a_moe_layer(kernels: tuple[Kernel, ...]) -> None:
    told = rank(kernels=(*kernels, DISPATCH))
    untold = rank(kernels=(*kernels, kernel(DISPATCH.name, 20, count=8, key="comm.sendrecv_unresolved")))
    assert "MoE" not in states(of_ranks(told, untold))
    assert states(of_ranks(told, rank(kernels=kernels)))["MoE"] == "no"


def test_a_rank_with_another_share_of_the_same_step_has_other_kernels() -> None:
    same: dict[str, Value] = {"world_size": 64, "train.global_batch_size": 512}
    sides = [
        result(many(times=times), configuration=configuration({**same, "pipeline_model_parallel_size": pp}))
        for times, pp in ((2, 2), (1, 4))
    ]
    found = between(*sides)
    assert states(found) == {"pipeline-parallel size": "with_differences", "step": "with_differences"}


def test_a_window_of_several_steps_is_no_step() -> None:
    window = rank(source="none", lengths_ns=(20,), kernels=(GEMM, ADAM))
    assert states(of_ranks(rank(kernels=(GEMM, ADAM)), window)) == {"step": "no"}


def test_a_window_against_steps_cannot_be_told_without_kernels() -> None:
    window = rank(source="none", lengths_ns=(20,))
    assert states(of_ranks(rank(), window)) == {"step": "no"}


def test_a_window_that_holds_one_step_is_one() -> None:
    steps = rank(kernels=(kernel("gemm", 80, count=8),))
    window = rank(source="none", lengths_ns=(10,), kernels=(kernel("gemm", 40, count=4),))
    assert states(of_ranks(steps, window)) == {"step": "with_differences"}


def test_two_windows_are_compared_with_their_borders() -> None:
    windows = [rank(source="none", lengths_ns=(length,), kernels=(GEMM,)) for length in (100, 110)]
    assert states(of_ranks(*windows)) == {"step": "with_differences"}
    assert of_ranks(windows[0], windows[0]).state == "yes"


def test_steps_found_another_way_only_limit_it() -> None:
    found = of_ranks(rank(kernels=(GEMM,)), rank(kernels=(GEMM,), source="optimizer"))
    assert states(found) == {"step": "with_differences"}


@pytest.mark.parametrize(("shared", "state"), [(10, "no"), (20, "with_differences"), (90, "yes")])
def test_programs_are_told_apart_by_the_names_of_their_kernels(shared: int, state: str) -> None:
    sides = [
        rank(kernels=(kernel("both", shared), kernel(f"only in {side}", 100 - shared)))
        for side in ("base", "new")
    ]
    assert shared_work_frac(*sides) == shared / 100
    assert of_ranks(*sides).state == state


def test_the_side_that_shares_less_decides() -> None:
    small, large = rank(kernels=(kernel("both", 10),)), rank(kernels=(kernel("both", 10), kernel("more", 90)))
    assert shared_work_frac(small, large) == shared_work_frac(large, small) == 0.1


def test_a_window_of_several_steps_is_none_though_ranks_share_the_step_otherwise() -> None:
    same: dict[str, Value] = {"world_size": 64, "train.global_batch_size": 512}
    ranks = rank(kernels=(GEMM, ADAM)), rank(source="none", lengths_ns=(20,), kernels=(GEMM, ADAM))
    sides = [
        result(one, configuration=configuration({**same, "pipeline_model_parallel_size": pp}))
        for one, pp in zip(ranks, (2, 4), strict=True)
    ]
    assert states(between(*sides))["step"] == "no"


def test_names_of_two_recorders_are_spelled_differently_and_forbid_nothing() -> None:
    base = result(rank(kernels=(kernel("void a<(int)4>()", 100),)))
    new = result(rank(kernels=(kernel("void a<4>()", 100),)), traces=(trace(kind="kineto"),))
    assert states(between(base, new)) == {"kernel set": "with_differences", "recorder": "with_differences"}


def test_layers_of_one_side_only_limit_it() -> None:
    found = of_ranks(
        rank(kernels=(DISPATCH,), moe={"layers": 4}), rank(kernels=(DISPATCH,), moe={"layers": 8})
    )
    assert states(found) == {"MoE layers": "with_differences"}


def repeated(unit: Unit, count: int, length: int = 10, **fields: Any) -> Rank:
    """A rank that repeats a block, or a replay of a graph without its kernels."""
    source: StepSource = "graph" if unit == "replay" else "period"
    opaque = (row("compute.graph_replay", *(length,) * count),) if unit == "replay" else ()
    one = rank(*opaque, lengths_ns=(length,) * count, source=source, **fields)
    return replace(one, steps=replace(one.steps, unit=unit))


BLOCK = (kernel("gemm", 80, count=8), kernel("norm", 20, count=8, key="compute.norm"))


def test_blocks_are_compared_with_blocks() -> None:
    assert of_ranks(repeated("block", 4, kernels=BLOCK), repeated("block", 4, kernels=BLOCK)).state == "yes"
    twice = tuple(replace(one, count=2 * one.count, work_ns=2 * one.work_ns) for one in BLOCK)
    assert states(of_ranks(repeated("block", 4, kernels=BLOCK), repeated("block", 4, kernels=twice))) == {
        "step": "no"
    }


def test_a_block_is_compared_with_the_replay_that_it_became_where_there_are_as_many() -> None:
    found = of_ranks(repeated("block", 4, kernels=BLOCK), repeated("replay", 4, length=5))
    assert states(found) == {"step": "with_differences", "graph capture": "with_differences"}
    assert (found.differences[0].base, found.differences[0].new) == ("blocks by period", "replays by graph")


def test_a_replay_that_may_be_several_steps_of_the_other_side_is_not_compared() -> None:
    found = of_ranks(repeated("block", 4, kernels=BLOCK), repeated("replay", 2, length=20))
    assert states(found)["step"] == "no"
    assert (found.differences[0].base, found.differences[0].new) == ("4 blocks", "2 graph replays")
    near = of_ranks(repeated("block", 4, kernels=BLOCK), repeated("replay", 2, length=11))
    assert near.state == "with_differences"


def test_kernels_under_other_names_are_named_with_who_agrees() -> None:
    copies = Work((InputCopies(100_000, 2),), {})
    base, new = (
        rank(kernels=(kernel(name, 100, count=40),), work=copies)
        for name in ("ampere_sgemm_128x64_tn", "nvjet_sm90_tst_128x128_TNT")
    )
    (found,) = of_ranks(base, new).differences
    assert (found.what, found.state) == ("kernel set", "with_differences")
    assert "bytes of input copies, matrix products agree" in found.because


def test_who_contradicts_is_named_where_a_step_is_other_work() -> None:
    found = of_ranks(many(times=1), many(times=2)).differences[0]
    assert "Not alike: backward kernels" in found.because
