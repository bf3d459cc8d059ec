"""What measurements show of a run: what is seen, what is seen to be absent, and what nobody could see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from msgspec import structs

from heuristics.config.observed import Observed
from heuristics.evidence.evidence import observed_by
from heuristics.figures.figures import figures_of
from tests.doubles.opinions import NOBODY, account, budget, rank, steps_of, with_memory
from traces.measurements import RankMeasurements
from traces.missing import Missing
from traces.sections.rank import A2a, Dispatcher, Passes

BLIND = Missing("absent_ns", "clock offset: 3 ms", "record again")


def shown(*ranks: RankMeasurements) -> Observed:
    return observed_by(figures_of(ranks or [rank()]))


def classes(**by_class_ns: int) -> RankMeasurements:
    return rank(budget=replace(budget(), compute_by_class_ns=by_class_ns))


def kinds(**by_kind_ns: int) -> RankMeasurements:
    return rank(budget=replace(budget(), exposed_comm_by_kind_ns=by_kind_ns))


def detecting(**what: object) -> RankMeasurements:
    return rank(detected=structs.replace(rank().detected, **what))


def a2a(
    dispatcher: Dispatcher,
    exposed_ns: int = 0,
    hidden_ns: int = 0,
    payload_ns: int = 0,
    waiting_ns: int | None = None,
) -> RankMeasurements:
    found = A2a(1, payload_ns, 0, waiting_ns, exposed_ns, hidden_ns, None, 0, ())
    return replace(detecting(dispatcher=dispatcher), a2a=found)


def on_gpu(name: str | None, capability: str | None) -> RankMeasurements:
    one = rank()
    assert one.gpu is not None
    return rank(gpu=replace(one.gpu, name=name, capability=capability))


def recomputing(passes: Mapping[str, int | None], known: bool = True) -> RankMeasurements:
    modules = {module: Passes(4, 4, count, "threads") for module, count in passes.items()}
    found = replace(rank().recompute, modules=modules, recompute_ns=10 if known else NOBODY)
    return with_memory(rank(recompute=found), recompute_ns=found.recompute_ns)


def test_the_gpu_is_told_by_its_family() -> None:
    found = shown(on_gpu("NVIDIA H100 80GB HBM3", "9.0"))
    assert (found.gpu, found.capability) == ("H100", (9, 0))


@pytest.mark.parametrize("text", [None, "", "9", "sm_90"])
def test_a_capability_nobody_can_read_is_unknown(text: str | None) -> None:
    assert shown(on_gpu(None, text)).capability is None


def test_without_a_gpu_nothing_is_told_of_it() -> None:
    found = shown(with_memory(rank(gpu=None), capacity_bytes=None))
    assert (found.gpu, found.capability, found.memory_bytes) == (None, None, None)


@pytest.mark.parametrize("name", ["router", "permute", "grouped_gemm"])
def test_kernels_of_routing_show_experts(name: str) -> None:
    assert shown(classes(gemm=900, **{name: 100})).moe is True


def test_without_routing_nor_a_dispatcher_there_are_no_experts() -> None:
    assert shown(a2a("none")).moe is False


def test_a_dispatcher_shows_experts() -> None:
    assert shown(a2a("deepep")).moe is True


def test_experts_are_unknown_where_kernels_cannot_be_told_apart() -> None:
    assert shown(rank(unseen=NOBODY)).moe is None
    assert shown(rank(), rank(unseen=NOBODY)).moe is None


def test_experts_are_unknown_where_the_dispatcher_is() -> None:
    assert shown(a2a("unknown")).moe is None


def test_experts_on_one_rank_are_experts_of_the_run() -> None:
    assert shown(rank(), classes(gemm=900, router=100)).moe is True


def test_only_grouped_gemms_show_grouped_gemms() -> None:
    assert shown(classes(grouped_gemm=1)).grouped_gemm is True
    assert shown(classes(gemm=1)).grouped_gemm is None


def test_exposed_kinds_show_what_communicates_and_the_rest_is_unknown() -> None:
    found = shown(kinds(tp=1, dp_all_gather=1))
    assert (found.tp_active, found.dp_active, found.pp_active, found.cp_active) == (True, True, None, None)
    other = shown(rank(), kinds(pp_p2p=1, cp=1))
    assert (other.tp_active, other.dp_active, other.pp_active, other.cp_active) == (None, None, True, True)


def test_ranks_of_one_dispatcher_show_it() -> None:
    assert shown(a2a("deepep"), a2a("deepep")).dispatcher == "deepep"
    assert shown(a2a("deepep"), detecting(dispatcher="unknown")).dispatcher == "deepep"
    assert shown(detecting(dispatcher="unknown")).dispatcher == "unknown"


def test_ranks_of_two_dispatchers_show_none() -> None:
    assert shown(a2a("deepep"), a2a("hybridep")).dispatcher == "unknown"


def test_a_rank_without_expert_layers_does_not_hide_the_dispatcher_of_the_others() -> None:
    assert shown(a2a("none"), a2a("deepep")).dispatcher == "deepep"


@pytest.mark.parametrize(
    ("exposed", "hidden", "overlap"),
    [(70, 30, True), (0, 10, True), (71, 29, None), (89, 11, None), (90, 10, False), (10, 0, False)],
)
def test_expert_traffic_is_overlapped_from_three_tenths_and_not_up_to_a_tenth(
    exposed: int, hidden: int, overlap: bool | None
) -> None:
    assert shown(a2a("alltoall", exposed, hidden)).ep_overlap is overlap


def test_without_expert_traffic_its_overlap_is_unknown() -> None:
    assert shown(a2a("none")).ep_overlap is None
    assert shown(rank(a2a=NOBODY)).ep_overlap is None


def test_overlap_is_that_of_all_ranks_together() -> None:
    assert shown(a2a("alltoall", 100, 0), a2a("alltoall", 0, 100)).ep_overlap is True


def test_waiting_is_a_part_of_the_payload() -> None:
    ranks = (a2a("alltoall", payload_ns=100, waiting_ns=60), a2a("alltoall", payload_ns=300, waiting_ns=40))
    assert shown(*ranks).a2a_waiting_frac == 0.25
    assert shown(a2a("alltoall", payload_ns=100)).a2a_waiting_frac is None
    assert shown(a2a("alltoall", payload_ns=0, waiting_ns=0)).a2a_waiting_frac is None


def test_recomputed_modules_bear_megatron_cores_labels() -> None:
    found = shown(recomputing({"attention": 4, "activation": 4, "norm": 0, "router": None}))
    assert (found.recompute_modules, found.recompute_full) == (("core_attn", "moe_act"), False)


def test_dispatch_or_router_a_second_time_is_the_whole_moe_layer() -> None:
    assert shown(recomputing({"router": 4, "dispatch": 4})).recompute_modules == ("moe",)


def test_attention_norms_and_experts_a_second_time_is_full_recompute() -> None:
    every = {"attention": 4, "norm": 4, "activation": 4, "router": 4, "dispatch": 4}
    assert shown(recomputing(every)).recompute_full is True


def test_nothing_a_second_time_is_no_module() -> None:
    found = shown(recomputing({"attention": 0}))
    assert (found.recompute_modules, found.recompute_full) == ((), False)


def test_recompute_that_one_rank_cannot_tell_is_unknown() -> None:
    found = shown(recomputing({"attention": 4}), recomputing({}, known=False))
    assert (found.recompute_modules, found.recompute_full) == (None, None)


def test_offload_on_any_rank_is_offload() -> None:
    with_copies, without, untold = (with_memory(rank(), offload_copies=count) for count in (4, 0, None))
    assert shown(without, with_copies).offload is True
    assert shown(without, untold).offload is False
    assert shown(untold).offload is None


def test_allocator_calls_count_by_step_after_the_first_of_the_worst_rank() -> None:
    """Four steps, three of them after the first."""
    calm, busy = (with_memory(rank(), allocator_calls=count) for count in (3, 12))
    assert shown(calm, busy).allocator_calls_per_step == 4.0
    assert shown(with_memory(rank(), allocator_calls=None)).allocator_calls_per_step is None
    assert shown(with_memory(rank(steps=steps_of(1_000)), allocator_calls=5)).allocator_calls_per_step is None


def test_reads_of_token_counts_that_made_a_launch_late_are_seen_and_never_proven_absent() -> None:
    assert shown(rank(), rank(account=account({"token_count_sync": 1}))).token_count_sync is True
    assert shown(rank(account=account({"sync": 1}))).token_count_sync is None
    assert shown(rank(account=BLIND)).token_count_sync is None


def test_late_launches_are_parts_of_all_windows() -> None:
    ranks = (rank(account=account({"python": 300})), rank(account=account({"python": 100, "gc": 200})))
    assert shown(*ranks).absent_frac == {"gc": 0.1, "python": 0.2}


def test_late_launches_are_unknown_where_one_rank_has_no_account() -> None:
    assert shown(rank(), rank(account=BLIND)).absent_frac is None


def test_the_rank_with_most_work_in_graphs_counts() -> None:
    ranks = [
        rank(detected=structs.replace(rank().detected, graph_share_frac=share)) for share in (0.2, 0.7, 0.0)
    ]
    assert shown(*ranks).graph_frac == 0.7


def test_the_rank_with_most_short_kernels_speaks_for_the_run() -> None:
    ranks = [
        rank(detected=structs.replace(rank().detected, short_kernel_frac=share)) for share in (0.2, None, 0.6)
    ]
    assert shown(*ranks).short_kernel_frac == 0.6
