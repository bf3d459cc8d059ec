"""Causes that a count, a name or a setting has to prove: each with a pair that does, and a near miss."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from heuristics.comparison.difference.rows import Facts
from heuristics.comparison.suspects.find import find_suspects
from heuristics.result.compared import Exchange, Exchanges, ExchangeSum, Suspect, Worked
from tests.doubles.comparison import configuration, kernel
from tests.doubles.suspects import MS, change, facts, kernel_delta, moved, still

GEMMS = still("compute.gemm", 40)


def first(found: Facts) -> Suspect:
    return find_suspects(found)[0]


def ids(found: Facts) -> list[str]:
    return [one.id for one in find_suspects(found)]


def loading(**fields: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "waiting_steps": 1,
        "workers": None,
        "input_copies": 10,
        "input_copies_pageable": 10,
        "input_copies_exposed_ns": 0,
    }
    return {"data_loading": {**plain, **fields}}


WAITS = moved("launch_starved.data", 3, 30)


def test_fewer_workers_are_the_cause_where_the_rhythm_of_waits_shows_them() -> None:
    found = first(facts(WAITS, base=loading(workers=4), new=loading(workers=1)))
    assert (found.id, found.title, found.confidence) == (
        "loader_workers", "Fewer workers load batches", "medium",
    )  # fmt: skip
    assert "workers of the data loader: 4 -> 1" in found.seen
    back = first(facts(moved("launch_starved.data", 30, 3), base=loading(workers=1), new=loading(workers=4)))
    assert (back.title, back.explains_ns) == ("More workers load batches", -27 * MS)


def test_batches_that_another_process_loads_are_more_workers_whatever_their_number() -> None:
    shorter = moved("launch_starved.data", 30, 3)
    found = first(facts(shorter, base=loading(loads_apart=False), new=loading(loads_apart=True)))
    assert (found.id, found.title) == ("loader_workers", "More workers load batches")
    assert "batches are loaded by: the step's own process -> worker processes" in found.seen


def test_a_setting_shows_the_workers_where_no_rhythm_does() -> None:
    sides = [{"configuration": configuration({"dataset.num_workers": count})} for count in (8, 2)]
    said = change("dataset.num_workers", 8, 2)
    found = first(facts(WAITS, changed=(said,), base_result=sides[0], new_result=sides[1]))
    assert (found.id, found.confidence) == ("loader_workers", "high")


def test_waits_of_as_many_workers_are_the_loaders_own_and_the_page_has_their_number() -> None:
    found = first(facts(WAITS, base=loading(workers=1), new=loading(workers=1)))
    assert found.id == "data_loader"
    assert "workers of the data loader: 1 on both sides" in found.seen
    assert "steps that wait for their batch: 1 of 1 -> 1 of 1" in found.seen


def test_more_workers_explain_the_host_that_is_earlier_and_it_is_no_story_of_clocks() -> None:
    host = moved("launch_starved.python", 20, 4)
    found = ids(facts(host, GEMMS, base=loading(workers=1), new=loading(workers=4)))
    assert found == ["loader_workers"]


def test_copies_from_pinned_memory_are_the_cause_where_they_were_pageable() -> None:
    shorter = moved("exposed_copy.memcpy_h2d", 9, 3)
    found = facts(shorter, base=loading(), new=loading(input_copies_pageable=0))
    assert (first(found).id, first(found).title.split(",")[0]) == (
        "input_pageable", "Input is copied from pinned memory",
    )  # fmt: skip
    assert any(one.startswith("input copies from pageable memory") for one in first(found).seen)
    assert ids(facts(shorter, base=loading(), new=loading())) == ["copies_exposed"]


def shares(**formats: float) -> dict[str, Any]:
    main = max(formats, key=lambda one: formats[one])
    return {"detected": {"precision": main, "precision_shares_frac": formats}}


@pytest.mark.parametrize(
    ("base", "new"),
    [
        (shares(fp32=1.0), shares(tf32=1.0)),
        (shares(tf32=1.0), shares(bf16=1.0)),
        (shares(fp32=1.0), shares(bf16=0.9, fp32=0.1)),
        (shares(bf16=1.0), shares(fp8=0.5, bf16=0.5)),
    ],
)
def test_fewer_bits_of_matrix_work_are_a_precision_and_more_are_not(
    base: dict[str, Any], new: dict[str, Any]
) -> None:
    rows = (moved("compute.gemm", 40, 10), moved("compute.attention", 20, 7))
    there = first(facts(*rows, base=base, new=new))
    assert (there.id, there.explains_ns) == ("lower_precision", -43 * MS)
    assert there.title.startswith("Matrix work runs in fewer bits")
    back = first(facts(*rows, base=new, new=base))
    assert back.title.startswith("Matrix work runs in more bits")


def test_a_little_of_another_precision_is_no_change_of_it() -> None:
    rows = (moved("compute.gemm", 40, 10),)
    sides = shares(bf16=1.0), shares(bf16=0.98, fp32=0.02)
    assert "lower_precision" not in ids(facts(*rows, base=sides[0], new=sides[1]))


def optimizer(count: int, ms: int, by: str) -> Facts:
    return facts(moved("compute.optimizer", 6, ms, by, 6, count), GEMMS)


def test_six_optimizer_kernels_against_twelve_are_not_the_same_ones() -> None:
    longer = first(optimizer(12, 20, "duration"))
    assert (longer.id, longer.title) == (
        "kernels_number.optimizer", "Another number of optimizer kernels does the work, and takes longer",
    )  # fmt: skip
    assert "optimizer kernels a step: 6 -> 12" in longer.seen
    assert first(optimizer(12, 20, "count")).title == "More optimizer kernels run"
    assert first(optimizer(6, 20, "duration")).title == "The same optimizer kernels take longer"


def test_kernels_of_which_some_are_others_are_not_the_same_ones() -> None:
    rows = (moved("compute.gemm", 40, 50),)
    few = [kernel_delta("compute.gemm", "gone", 5, None), kernel_delta("compute.gemm", "new", None, 5)]
    assert ids(facts(*rows, still("compute.norm", 9), kernels=tuple(few))) == ["row.compute.gemm"]


def test_an_optimizer_of_element_wise_kernels_became_one_of_many_tensors_each() -> None:
    rows = (
        moved("compute.optimizer", 0, 2, "count", 0, 6),
        moved("compute.elementwise", 30, 10, "count", 900, 300),
    )
    found = first(facts(*rows, GEMMS))
    assert (found.id, found.explains_ns) == ("optimizer_unfused", -18 * MS)
    assert found.title == "The optimizer runs in kernels of many tensors each"


def buckets(count_ms: int, duration_ms: int, overlap_ms: int, base: int, new: int) -> Facts:
    row = moved("exposed_comm.dp_reduce_scatter", 20, 20 + count_ms + duration_ms + overlap_ms, "", base, new)
    ns = [ms * MS for ms in (count_ms, duration_ms, overlap_ms)]
    return facts(replace(row, count_ns=ns[0], duration_ns=ns[1], overlap_ns=ns[2]), GEMMS)


def test_fewer_longer_calls_that_move_as_much_are_other_buckets() -> None:
    found = first(buckets(-16, 16, 5, 12, 4))
    assert found.id == "buckets.dp"
    assert "data-parallel communication, kernels a step: 12 -> 4" in found.seen
    assert ids(buckets(-16, 40, 5, 12, 4)) == ["comm_slower.dp"]  # they move more
    assert ids(buckets(0, 10, 0, 12, 12)) == ["comm_slower.dp"]


def test_broadcasts_that_ceased_take_their_copies_along() -> None:
    rows = (
        moved("exposed_copy.memcpy_d2d", 5, 3, "count", 59, 35),
        moved("exposed_comm.other_comm", 4, 0, "count", 24, 0),
    )
    sends = {"kernels": (kernel("ncclDevKernel_Broadcast_RING_LL", 4 * MS, count=24, key="comm.other_comm"),)}
    found = first(facts(*rows, GEMMS, base=sends))
    assert (found.id, found.title) == ("buffer_broadcasts", "Buffers are broadcast less often")
    assert "buffer_broadcasts" not in ids(facts(*rows, GEMMS))


def passing(forward: int, backward: int) -> dict[str, Any]:
    return {"kernels": (kernel("norm_fwd", MS, count=forward), kernel("norm_bwd", MS, count=backward))}


ALIKE = tuple(
    moved(name, 10, 15, "count", 100, 150) for name in ("compute.gemm", "compute.attention", "compute.norm")
)


def test_forward_kernels_that_repeat_without_their_backward_are_recompute_and_no_microbatches() -> None:
    unknown: dict[str, Any] = {"memory": {"recompute_ns": None, "recompute_modules": None}}
    sides = [{**passing(10, 10), **unknown}, {**passing(20, 10), **unknown}]
    found = first(facts(*ALIKE, base=sides[0], new=sides[1]))
    assert found.id == "recompute_more"
    assert "kernels that are forward by name a step: 10 -> 20" in found.seen


def test_both_passes_that_repeat_are_microbatches_and_no_recompute() -> None:
    grew = {"memory": {"recompute_ns": 9 * MS, "recompute_modules": {"norm": 9 * MS}}}
    had = {"memory": {"recompute_ns": 6 * MS, "recompute_modules": {"norm": 6 * MS}}}
    sides = [{**passing(10, 10), **had}, {**passing(15, 15), **grew}]
    found = ids(facts(*ALIKE, base=sides[0], new=sides[1]))
    assert found[0] == "more_work"
    assert "recompute_more" not in found


WHOLE = (
    moved("compute.graph_replay", 0, 70, "count", 0, 1),
    moved("compute.gemm", 60, 0, "count", 100, 0),
    moved("compute.norm", 10, 0, "count", 30, 0),
    moved("launch_starved.launch", 8, 0),
)


def test_kernels_that_a_whole_replay_hides_are_not_fewer_kernels() -> None:
    sides: list[dict[str, Any]] = [{"detected": {"graph_share_frac": frac}} for frac in (0.0, 1.0)]
    found = find_suspects(facts(*WHOLE, base=sides[0], new=sides[1]))
    assert [one.id for one in found] == ["graphs_whole"]
    assert (found[0].title, found[0].explains_ns) == (
        "CUDA graphs replay whole what single kernels did", -8 * MS,
    )  # fmt: skip


def stretched(frac: float) -> dict[str, Any]:
    """Half of 40 ms of compute runs beside communication."""
    stretch = {"frac": frac, "group_count": 4, "beside_count": 50, "beside_ns": 20 * MS}
    return {"sm": {"stretch_frac": frac, "stretch": stretch, "comm_blocks": 20}}


def test_compute_that_is_longer_beside_communication_alone_is_stretched() -> None:
    """20 ms beside it, stretched by 0.2 more: 4 of the 4 ms that it takes longer."""
    rows = (moved("compute.gemm", 40, 44), still("compute.norm", 10))
    assert first(facts(*rows, base=stretched(0.1), new=stretched(0.3))).id == "stretched"
    assert "stretched" not in ids(facts(*rows, base=stretched(0.1), new=stretched(0.12)))


def exchange(key: str, base: Worked, new: Worked) -> Exchanges:
    """One place of both steps, where a side does by other kernels what the other does."""
    delta_ns = new.work_ns - base.work_ns
    sides = ((base,), (new,), base.count, new.count, base.work_ns, new.work_ns)
    nothing = ExchangeSum(0, 0, 0, 0)
    return Exchanges((Exchange("exchanged", key, None, *sides, delta_ns),), nothing, 0, nothing)


def test_one_fused_kernel_in_the_places_of_three_is_a_fusion_by_the_order_of_launches() -> None:
    rows = (moved("compute.permute", 9, 4, "count", 60, 20), GEMMS)
    aligned = exchange(
        "compute.permute",
        Worked("sort and copy", "compute.permute", 3, 9 * MS),
        Worked("permute_fused", "compute.permute", 1, 4 * MS),
    )
    assert first(replace(facts(*rows), exchanged=aligned)).title.endswith("a fusion is on")
    assert first(facts(*rows)).id == "kernels_more.permute"


def test_what_does_the_work_in_the_same_places_is_evidence_of_other_kernels() -> None:
    attention = moved("compute.attention", 32, 7)
    pair = (
        kernel_delta("compute.attention", "gone", 32, None),
        kernel_delta("compute.attention", "new", None, 7),
    )
    aligned = exchange(
        "compute.attention",
        Worked("fmha_f32", "compute.attention", 2, 32 * MS),
        Worked("flash_bf16", "compute.attention", 1, 7 * MS),
    )
    found = first(replace(facts(attention, GEMMS, kernels=pair), exchanged=aligned))
    assert found.id == "kernels_exchanged.attention"
    places = "in the same places of the step: 32.0 ms (2 x fmha_f32) -> 7.00 ms (1 x flash_bf16)"
    assert places in found.seen
