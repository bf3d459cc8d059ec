"""What measurements show of a run: what is seen, what is seen to be absent, and what nobody could see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from heuristics.config.observed import Observed
from heuristics.evidence.observed import observed_by
from heuristics.figures.figures import Figures, figures_of
from tests.doubles.opinions import NOBODY, account, budget, rank, steps_of, with_memory
from traces.measurements import RankMeasurements
from traces.missing import Missing
from traces.sections.rank import A2a, Dispatcher, Passes

BLIND = Missing("absent_ns", "clock offset: 3 ms", "record again")
Made = RankMeasurements | Figures


def shown(*ranks: Made) -> Observed:
    return observed_by([one if isinstance(one, Figures) else figures_of([one])[0] for one in ranks])


def figures(**what: Any) -> Figures:
    """A rank by what opinions read of it; `observed`, `memory`: fields of these."""
    plain = figures_of([rank()])[0]
    seen = replace(plain.observed, **what.pop("observed", {}))
    memory = structs.replace(plain.memory, **what.pop("memory", {}))
    return replace(plain, observed=seen, memory=memory, **what)


def classes(**by_class_ns: int) -> RankMeasurements:
    return rank(budget=replace(budget(), compute_by_class_ns=by_class_ns))


def kinds(**by_kind_ns: int) -> RankMeasurements:
    return rank(budget=replace(budget(), exposed_comm_by_kind_ns=by_kind_ns))


def detecting(**what: object) -> RankMeasurements:
    return rank(detected=structs.replace(rank().detected, **what))


def a2a(dispatcher: Dispatcher, exposed_ns: int = 0, hidden_ns: int = 0) -> RankMeasurements:
    return replace(
        detecting(dispatcher=dispatcher), a2a=A2a(1, 0, 0, None, exposed_ns, hidden_ns, None, 0, ())
    )


def waiting(waiting_ns: int | None, payload_ns: int) -> RankMeasurements:
    return replace(a2a("alltoall"), a2a=A2a(1, payload_ns, 0, waiting_ns, 0, 0, None, 0, ()))


def on_gpu(name: str | None, capability: str | None) -> RankMeasurements:
    one = rank()
    assert one.gpu is not None
    return rank(gpu=replace(one.gpu, name=name, capability=capability))


def recomputing(
    passes: Mapping[str, int | None], known: bool = True, routes: bool = False
) -> RankMeasurements:
    modules = {module: Passes(4, 4, count, "threads") for module, count in passes.items()}
    found = replace(rank().recompute, modules=modules, recompute_ns=10 if known else NOBODY)
    ran = replace(budget(), compute_by_class_ns={"router" if routes else "gemm": 1_000})
    return with_memory(rank(recompute=found, budget=ran), recompute_ns=found.recompute_ns)


def wide(half: bool | None, matrix_ns: int = 100) -> Figures:
    """Matrix work, of which 30 ns are in FP32."""
    plain = rank().tensor_cores
    return figures(tensor_cores=structs.replace(plain, half=half, matrix_ns=matrix_ns, wide_ns=30))


def hiding(hidden: int, exposed: int, kind: str = "dp_all_gather") -> Figures:
    return figures(hidden_by_kind_ns={kind: hidden}, exposed_by_kind_ns={kind: exposed})


def test_the_gpu_is_told_by_its_family_where_all_are_of_one() -> None:
    found = shown(on_gpu("NVIDIA H100 80GB HBM3", "9.0"))
    assert (found.gpu, found.capability) == ("H100", (9, 0))
    assert shown(on_gpu("NVIDIA H100", "9.0"), on_gpu("NVIDIA A100", "8.0")).gpu is None
    for text in (None, "", "9", "sm_90"):
        assert shown(on_gpu(None, text)).capability is None
    without = shown(with_memory(rank(gpu=None), capacity_bytes=None))
    assert (without.gpu, without.capability, without.memory_bytes) == (None, None, None)


def test_the_fullest_memory_and_the_busiest_rank_speak_for_the_run() -> None:
    found = shown(with_memory(rank(), peak_bytes=50), with_memory(rank(), peak_bytes=60, capacity_bytes=70))
    assert (found.peak_bytes, found.memory_bytes) == (60, 80)
    assert shown(*(detecting(graph_share_frac=one) for one in (0.2, 0.7, 0.0))).graph_frac == 0.7
    assert shown(*(detecting(short_kernel_frac=one) for one in (0.2, None, 0.6))).short_kernel_frac == 0.6


def test_experts_are_shown_by_their_kernels_or_a_dispatcher_on_any_rank() -> None:
    for name in ("router", "permute", "grouped_gemm"):
        assert shown(rank(), classes(gemm=900, **{name: 100})).moe is True
    assert shown(a2a("deepep")).moe is True
    assert shown(kinds(ep_dispatch=1)).moe is True
    assert shown(figures(observed={"expert_gemms_per_layer": 8.0})).moe is True
    assert shown(a2a("none")).moe is False
    assert shown(a2a("unknown")).moe is None
    assert shown(rank(), rank(unseen=NOBODY)).moe is None
    assert shown(classes(grouped_gemm=1)).grouped_gemm is True
    assert shown(classes(gemm=1)).grouped_gemm is None


ACTIVE = ("ep_active", "tp_active", "pp_active", "cp_active", "dp_active", "sendrecv_unresolved")


@pytest.mark.parametrize(
    ("kind", "active"),
    [
        *(("ep_combine", 0), ("tp", 1), ("pp_p2p", 2), ("cp", 3), ("dp_all_gather", 4)),
        *(("dp_reduce_scatter", 4), ("sendrecv_unresolved", 5), ("all_reduce", None)),
    ],
)
def test_exposed_kinds_of_any_rank_show_what_communicates_and_the_rest_is_unknown(
    kind: str, active: int | None
) -> None:
    found = shown(rank(), kinds(**{kind: 1}))
    assert [getattr(found, name) for name in ACTIVE] == [place == active or None for place in range(6)]


def test_ranks_of_one_dispatcher_show_it_and_ranks_without_experts_do_not_count() -> None:
    assert shown(a2a("deepep"), a2a("deepep"), a2a("unknown"), a2a("none")).dispatcher == "deepep"
    assert shown(a2a("unknown")).dispatcher == shown(a2a("deepep"), a2a("hybridep")).dispatcher == "unknown"
    assert shown(a2a("none"), a2a("none")).dispatcher == "none"


@pytest.mark.parametrize(
    ("exposed", "hidden", "overlap"),
    [(70, 30, True), (0, 10, True), (71, 29, None), (89, 11, None), (90, 10, False), (10, 0, False)],
)
def test_expert_traffic_is_overlapped_from_three_tenths_and_not_up_to_a_tenth(
    exposed: int, hidden: int, overlap: bool | None
) -> None:
    assert shown(a2a("alltoall", exposed, hidden)).ep_overlap is overlap
    assert shown(a2a("alltoall", exposed, 0), a2a("alltoall", 0, hidden)).ep_overlap is overlap


def test_overlap_of_experts_is_unknown_without_traffic_and_not_guessed_where_it_is_told() -> None:
    assert shown(a2a("none")).ep_overlap is None
    assert shown(rank(a2a=NOBODY)).ep_overlap is None
    assert (
        shown(figures(observed={"ep_overlap": False}, a2a_exposed_ns=0, a2a_hidden_ns=10)).ep_overlap is False
    )


def test_waiting_is_a_part_of_the_payload_and_at_most_all_of_it() -> None:
    assert shown(waiting(60, 100), waiting(40, 300)).a2a_waiting_frac == 0.25
    assert shown(waiting(160, 100)).a2a_waiting_frac == 1.0
    assert shown(waiting(None, 100)).a2a_waiting_frac is None
    assert shown(waiting(0, 0)).a2a_waiting_frac is None


def test_gradients_are_overlapped_where_three_tenths_of_each_collective_are_hidden() -> None:
    assert shown(hiding(30, 70)).dp_overlapped is True
    assert shown(hiding(0, 40), hiding(30, 30)).dp_overlapped is True
    assert shown(hiding(29, 71)).dp_overlapped is None
    assert shown(hiding(30, 70), hiding(1, 9, "all_reduce")).dp_overlapped is None
    assert shown(hiding(30, 70, "tp")).dp_overlapped is None


@pytest.mark.parametrize(
    ("again", "routes", "modules", "full"),
    [
        ({"attention": 4, "activation": 4, "norm": 0, "router": None}, False, ("core_attn", "moe_act"),
         False),
        ({"router": 4, "dispatch": 4}, True, ("moe",), False),
        ({"attention": 4, "norm": 4}, False, ("core_attn", "layernorm"), True),
        ({"attention": 4, "norm": 4}, True, ("core_attn", "layernorm"), False),
        ({"attention": 4, "norm": 4, "router": 4}, True, ("core_attn", "layernorm", "moe"), True),
        ({"attention": 0}, False, (), False),
    ],
)  # fmt: skip
def test_recomputed_modules_bear_megatron_cores_labels_and_all_of_a_layer_is_full(
    again: dict[str, int | None], routes: bool, modules: tuple[str, ...], full: bool
) -> None:
    found = shown(recomputing(again, routes=routes))
    assert (found.recompute_modules, found.recompute_full) == (modules, full)


def test_recompute_is_that_of_all_ranks_and_unknown_where_one_cannot_tell() -> None:
    both = shown(recomputing({"norm": 4}), recomputing({"attention": 4}))
    assert both.recompute_modules == ("core_attn", "layernorm")
    found = shown(recomputing({"attention": 4}), recomputing({}, known=False))
    assert (found.recompute_modules, found.recompute_full) == (None, None)


def test_offload_on_any_rank_is_offload() -> None:
    with_copies, without, untold = (with_memory(rank(), offload_copies=count) for count in (4, 0, None))
    assert shown(without, with_copies).offload is True
    assert shown(without, untold).offload is False
    assert shown(untold).offload is None
    assert shown(untold, with_memory(untold, offload_exposed_ns=5)).offload is True


def test_allocator_calls_count_by_step_after_the_first_of_the_worst_rank() -> None:
    """Four steps, three of them after the first."""
    calm, busy = (with_memory(rank(), allocator_calls=count) for count in (3, 12))
    assert shown(calm, busy).allocator_calls_per_step == 4.0
    assert shown(with_memory(rank(), allocator_calls=None)).allocator_calls_per_step is None
    two = with_memory(rank(steps=steps_of(500, 500)), allocator_calls=5)
    one = with_memory(rank(steps=steps_of(1_000)), allocator_calls=5)
    assert (shown(two).allocator_calls_per_step, shown(one).allocator_calls_per_step) == (5.0, None)


def test_late_launches_are_parts_of_all_windows_and_unknown_where_one_rank_has_no_account() -> None:
    ranks = (rank(account=account({"python": 300})), rank(account=account({"python": 100, "gc": 200})))
    assert shown(*ranks).absent_frac == {"gc": 0.1, "python": 0.2}
    assert shown(*ranks, rank(account=BLIND)).absent_frac is None


def test_reads_of_token_counts_that_made_a_launch_late_are_seen_and_never_proven_absent() -> None:
    assert shown(rank(), rank(account=account({"token_count_sync": 1}))).token_count_sync is True
    assert shown(rank(account=account({"sync": 1}))).token_count_sync is None
    assert shown(rank(account=BLIND)).token_count_sync is None


def test_wide_matrix_work_and_copies_of_layout_are_parts_of_the_windows() -> None:
    assert shown(wide(True), figures(tensor_cores=None)).wide_frac == shown(wide(None)).wide_frac == 0.03
    assert shown(wide(False)).wide_frac == 0.0
    assert shown(wide(True, matrix_ns=0)).wide_frac is None
    assert shown(classes(layout=100), rank()).layout_frac == 0.05


def test_several_gpus_are_several_ranks_or_one_that_communicates() -> None:
    assert shown(rank()).several_gpus is False
    assert shown(rank(), rank()).several_gpus is shown(kinds(tp=1)).several_gpus is True
    assert shown(rank(unseen=NOBODY)).several_gpus is None
    assert shown(figures(hidden_comm_ns=None)).several_gpus is None
