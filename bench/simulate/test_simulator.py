from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from bench.simulate.export import write_export
from bench.simulate.handicaps import Handicap
from bench.simulate.happened import Activity
from bench.simulate.host_program import Engine, Place
from bench.simulate.kernels import GPUS, kernels_of
from bench.simulate.knobs import Knobs, draw_knobs, draw_rare, draw_wider, knob_names, on_gpu
from bench.simulate.ranges import CHOICES, RANGES, RARE, WIDER
from bench.simulate.recorded import View, draw_view, record
from bench.simulate.run import Run, run, run_halved
from bench.simulate.scenarios import SCENARIOS
from bench.simulate.script import COMPUTE, SHARED_EXPERT, WEIGHT_GRADIENT
from bench.simulate.truth import true_costs
from traces.columns import Columns
from traces.formats.open import read_trace
from traces.names.kernels import classify_kernel

SMALL = Knobs(step_count=3, layer_count=2, microbatch_count=2)
DISPATCHERS = ("alltoall", "deepep", "hybridep", "allgather")
every_scenario = pytest.mark.parametrize("name", SCENARIOS)


@cache
def ran(name: str) -> Run:
    return run(SCENARIOS[name])


def by_place(found: Run) -> dict[tuple[Place, str], list[Activity]]:
    places: dict[tuple[Place, str], list[Activity]] = defaultdict(list)
    for activity in found.activities:
        places[activity.work.place, activity.work.kernel].append(activity)
    return places


@every_scenario
def test_no_stream_overlaps_itself_and_nothing_starts_before_its_launch(name: str) -> None:
    done = ran(name).executed
    streams = defaultdict(list)
    for activity in done.activities:
        assert activity.start_ns >= activity.submit_ns >= done.calls[activity.call].start_ns
        streams[activity.work.stream].append((activity.start_ns, activity.end_ns))
    assert all(
        before[1] <= after[0] for times in streams.values() for before, after in pairwise(sorted(times))
    )


@every_scenario
def test_no_thread_makes_two_calls_at_once(name: str) -> None:
    threads = defaultdict(list)
    for call in ran(name).executed.calls:
        threads[call.thread].append((call.start_ns, call.end_ns))
    assert all(
        before[1] <= after[0] for times in threads.values() for before, after in pairwise(sorted(times))
    )


def test_the_same_knobs_give_the_same_run_and_another_seed_another() -> None:
    assert run(SMALL).borders_ns == run(SMALL).borders_ns
    assert run(SMALL).borders_ns != run(replace(SMALL, seed=1)).borders_ns
    assert draw_knobs(3) == draw_knobs(3)
    assert draw_knobs(3) != draw_knobs(4)


FULL = replace(
    SMALL, recompute="full", offload_mib=16.0, retries_per_step=4.0, gc_pause_ms=2.0, gc_per_layer_frac=0.3
)


@pytest.mark.parametrize("handicap", Handicap)
def test_without_a_handicap_all_other_work_has_the_same_draws(handicap: Handicap) -> None:
    before, after = by_place(run(FULL)), by_place(run(FULL, without=handicap))
    assert set(after) <= set(before)
    changed = 0
    for place, activities in after.items():
        for old, new in zip(before[place], activities, strict=True):
            changed += old.work._replace(arrival_ns=0) != new.work._replace(arrival_ns=0)
    gone = sum(map(len, before.values())) - sum(map(len, after.values()))
    assert (changed > 0) == (handicap in (Handicap.COMMUNICATION, Handicap.COMPUTE))
    assert (gone > 0) == (handicap in (Handicap.MEMORY, Handicap.HOST_OVERHEAD))


def test_without_memory_pressure_the_run_is_the_one_that_never_had_it() -> None:
    relieved = replace(SMALL, recompute="none")
    assert (
        run(replace(SMALL, recompute="full"), without=Handicap.MEMORY).borders_ns == run(relieved).borders_ns
    )


def test_borders_are_in_order_and_all_compute_lies_between_them() -> None:
    found = run(SMALL)
    assert list(found.borders_ns) == sorted(found.borders_ns)
    assert len(found.step_ns) == SMALL.step_count
    assert found.borders_ns[0] == min(activity.start_ns for activity in found.own)
    assert found.borders_ns[-1] == max(activity.end_ns for activity in found.activities)


def test_a_step_begins_where_the_work_before_it_ended_if_the_host_came_late() -> None:
    late = replace(SMALL, data_stall_ms=50.0, end_of_step="read_back")
    found = run(late)
    before = [activity for activity in found.activities if activity.work.place.step == 0]
    assert found.borders_ns[1] == max(activity.end_ns for activity in before)
    assert found.step_ns[1] > 25_000_000


FREE_COMMUNICATION = {
    "dispatcher": "none", "gradient_us": 0.0, "peer_late_us": 0.0, "gradient_overlap": True, "layer_count": 4,
}  # fmt: skip


def test_what_is_not_there_costs_nothing() -> None:
    dense = true_costs(replace(SMALL, **FREE_COMMUNICATION))  # type: ignore[arg-type]
    assert dense.cost_frac("communication") < 0.02
    assert dense.saved_ns["memory"] == (0, 0, 0)
    assert dense.cost_frac("compute") < 0.02


@pytest.mark.parametrize(
    ("name", "wall"),
    [
        ("communication", "communication"),
        ("host_overhead", "host_overhead"),
        ("memory", "memory"),
        ("compute", "compute"),
        ("gc_pauses", "host_overhead"),
        ("token_sync", "host_overhead"),
        ("recompute_full", "memory"),
        ("offload", "memory"),
        ("allocator", "memory"),
        ("deepep", "communication"),
        ("hybridep", "communication"),
        ("pipeline", "communication"),
    ],
)
def test_a_scenario_is_bound_by_what_its_name_says(name: str, wall: str) -> None:
    (first, cost), (_, second) = true_costs(SCENARIOS[name]).ranked()[:2]
    assert first == wall
    assert cost > 0.1
    assert cost > second + 0.05


@pytest.mark.parametrize("name", ["healthy", "dense", "overlapped"])
def test_nothing_costs_much_where_all_is_well(name: str) -> None:
    assert true_costs(SCENARIOS[name]).ranked()[0][1] < 0.1


def test_two_walls_are_two() -> None:
    costs = dict(true_costs(SCENARIOS["two_walls"]).ranked())
    assert min(costs["communication"], costs["memory"]) > 0.2
    assert abs(costs["communication"] - costs["memory"]) < 0.05


def test_the_overlapped_run_has_much_communication() -> None:
    found = ran("overlapped")
    moving = sum(a.end_ns - a.start_ns for a in found.activities if a.work.engine is Engine.COMMUNICATION)
    assert moving > 0.25 * sum(found.step_ns)


def test_an_under_filled_kernel_takes_its_blocks_share_of_the_time_when_filled() -> None:
    knobs = replace(SMALL, expert_tile_count=33)
    before, after = by_place(run(knobs)), by_place(run(knobs, without=Handicap.COMPUTE))
    experts = [place for place in before if place[1] == "expert_gemm_fwd"]
    assert experts
    for place in experts:
        for old, new in zip(before[place], after[place], strict=True):
            assert (old.work.block_count, new.work.block_count) == (33, 132)
            assert new.work.alone_ns == old.work.alone_ns * 33 // 132


@pytest.mark.parametrize("dispatcher", DISPATCHERS[1:3])
@pytest.mark.parametrize("python_us", [3.0, 30.0])
def test_one_run_spelled_with_other_dispatchers_costs_the_same(dispatcher: str, python_us: float) -> None:
    knobs = Knobs(dispatch_us=250.0, peer_late_us=20.0, python_us=python_us)
    spelled, nccl = true_costs(replace(knobs, dispatcher=dispatcher)), true_costs(knobs)
    for handicap in Handicap:
        wall = handicap.value
        assert spelled.cost_frac(wall) == pytest.approx(nccl.cost_frac(wall), abs=0.01)


def test_the_same_model_is_bound_by_communication_on_one_gpu_and_by_the_host_on_the_next() -> None:
    model = Knobs(dispatch_us=400.0, python_us=25.0, peer_late_us=2.0, gradient_us=30.0)
    assert true_costs(model).ranked()[0][0] == "communication"
    assert true_costs(on_gpu(model, "GB200")).ranked()[0][0] == "host_overhead"


def test_every_knob_is_drawn_from_a_stated_range() -> None:
    stated = {one.knob for one in (*RANGES, *CHOICES, *WIDER, *RARE)} | {"seed", "layer_count"}
    assert stated == set(knob_names())
    assert all(one.because for one in (*RANGES, *CHOICES, *WIDER, *RARE))
    for seed in range(200):
        knobs = draw_knobs(seed)
        for one in RANGES:
            value = getattr(knobs, one.knob)
            assert one.low <= value <= one.high or (one.zero_frac and value == 0)


def test_wider_draws_change_only_what_finding_steps_hangs_on() -> None:
    wider = [draw_wider(seed) for seed in range(100)]
    counts = [knobs.microbatch_count for knobs in wider]
    assert min(counts) == 1
    assert 24 < max(counts) <= 32
    assert {knobs.optimizers for knobs in wider} == {"adam", "two_adams", "muon_adam"}
    assert {draw_knobs(seed).optimizers for seed in range(100)} == {"adam"}
    others = set(knob_names()) - {one.knob for one in WIDER} - {"layer_count"}
    changed = {
        name
        for knobs in wider
        for name in others
        if getattr(knobs, name) != getattr(draw_knobs(knobs.seed), name)
    }
    assert changed == set()


def test_what_is_rare_is_drawn_only_where_it_is_asked_for() -> None:
    rare, plain = [one.knob for one in RARE], Knobs()
    for seed in range(20):
        drawn = draw_knobs(seed)
        assert all(getattr(drawn, knob) == getattr(plain, knob) for knob in rare)
        asked = draw_rare(seed, "resident_mib")
        assert asked == replace(drawn, resident_mib=asked.resident_mib)
        assert 4 <= asked.resident_mib <= 400


ASIDE = replace(SMALL, delayed_wgrad=True, shared_expert=True, shared_expert_stream=True)


def test_streams_of_their_own_change_where_compute_runs_and_nothing_else() -> None:
    together = replace(ASIDE, delayed_wgrad=False, shared_expert_stream=False)
    before, after = by_place(run(together)), by_place(run(ASIDE))
    assert before.keys() == after.keys()
    for place, works in before.items():
        moved = [one.work._replace(stream=COMPUTE) for one in after[place]]
        if works[0].work.engine is Engine.SMS:
            assert moved == [one.work for one in works]
    streams = {one.work.stream: one.work.kernel for works in after.values() for one in works}
    assert {SHARED_EXPERT, WEIGHT_GRADIENT} <= streams.keys()
    delayed = {one.work.kernel for one in run(ASIDE).activities if one.work.stream == WEIGHT_GRADIENT}
    assert delayed == {"gemm_wgrad", "expert_gemm_wgrad"}


def test_what_needs_work_of_another_compute_stream_waits_for_it() -> None:
    works = [one for one in run(ASIDE).activities if one.work.place.step == 1]
    for layer in range(ASIDE.layer_count):
        mine = [one for one in works if one.work.place.layer == layer]
        gradients = [one.end_ns for one in mine if one.work.stream == WEIGHT_GRADIENT]
        (reduced,) = (one.start_ns for one in mine if one.work.kernel == "nccl_reduce_scatter")
        assert reduced >= max(gradients)
        for microbatch in range(ASIDE.microbatch_count):
            forward = [
                one
                for one in mine
                if (one.work.place.phase, one.work.place.microbatch) == ("forward", microbatch)
            ]
            shared = [one.end_ns for one in forward if one.work.stream == SHARED_EXPERT]
            added = max(one.start_ns for one in forward if one.work.kernel == "add")
            assert added >= max(shared)


def test_drawn_runs_are_neither_tiny_nor_huge() -> None:
    counts = [len(run(draw_knobs(seed)).activities) for seed in range(20)]
    assert all(500 < count < 9_000 for count in counts)


def test_half_of_the_runs_do_not_wait_at_the_end_of_a_step() -> None:
    waiting = sum(draw_knobs(seed).end_of_step != "none" for seed in range(400))
    assert 160 < waiting < 240


def test_a_knob_held_fixed_leaves_the_others_as_drawn() -> None:
    assert draw_knobs(5, recompute="full", layer_count=draw_knobs(5).layer_count) == replace(
        draw_knobs(5), recompute="full"
    )
    with pytest.raises(TypeError):
        draw_knobs(5, no_such_knob=1)


CLASSES = {
    "nccl": "comm", "deepep": "comm", "norm": "norm", "rope": "rope", "attention": "attention",
    "topk": "router", "gemm": "gemm", "expert_gemm": "gemm", "permute": "permute", "unpermute": "permute",
    "activation": "activation", "quantize": "quantize", "loss": "loss", "embedding": "embedding",
    "adam": "optimizer", "l2norm": "optimizer",
}  # fmt: skip


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_every_kernel_name_says_what_the_kernel_is_for(gpu: str, fp8: bool, grouped: bool) -> None:
    for part, kernel in kernels_of(gpu, fp8, grouped).items():
        found = classify_kernel(kernel.name)
        assert found.class_ != "other", part
        family = next((name for name in CLASSES if part.startswith(name)), None)
        assert family is None or found.class_ == CLASSES[family], part


@pytest.mark.parametrize(
    ("precision", "format_"), [("fp32", "fp32"), ("convolution", "fp32"), ("tf32", "tf32")]
)
def test_matrices_without_bf16_are_named_as_what_multiplies_them(precision: str, format_: str) -> None:
    kernels = kernels_of("H100", False, True, precision)
    products = {part: kernel for part, kernel in kernels.items() if "gemm" in part}
    assert {kernel.multiplies_in for kernel in products.values()} == {format_}
    assert all(kernels[part].multiplies_in == "3xtf32" for part in ("attention_fwd", "attention_bwd"))
    class_ = "convolution" if precision == "convolution" else "gemm"
    assert {classify_kernel(kernel.name).class_ for kernel in products.values()} == {class_}


@every_scenario
@pytest.mark.parametrize("schema", ["2.9.1", "3.16.1", "3.28.1"])
def test_every_scenario_is_read_back_as_it_was_simulated(name: str, schema: str, tmp_path: Path) -> None:
    found = ran(name)
    write_export(tmp_path / "run.sqlite", record(found, View(schema=schema)), schema)
    columns = read_trace(tmp_path / "run.sqlite")
    kernels = [a for a in found.activities if a.work.engine in (Engine.SMS, Engine.COMMUNICATION)]
    assert len(columns.kernels) == len(kernels)
    assert int((columns.kernels.rows.end_ns - columns.kernels.rows.start_ns).sum()) == sum(
        a.end_ns - a.start_ns for a in kernels
    )
    assert len(columns.calls) == len(found.executed.calls)


def columns_of(view: View, tmp_path: Path, knobs: Knobs = SMALL) -> Columns:
    path = tmp_path / "run.sqlite"
    write_export(path, record(run(knobs), view), view.schema)
    return read_trace(path)


def test_a_view_leaves_out_what_was_not_recorded(tmp_path: Path) -> None:
    bare = columns_of(View(ranges="none", calls=False, gpu_table=False), tmp_path)
    assert (len(bare.calls), len(bare.events), len(bare.ranges), bare.info.gpus) == (0, 0, 0, ())
    assert len(bare.kernels) > 0


def test_events_carry_their_own_ids_only_where_the_schema_has_them(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    old = columns_of(View(schema="3.4.0"), tmp_path / "old")
    new = columns_of(View(schema="3.25.0"), tmp_path)
    assert len(old.events) == len(new.events) > 0
    assert len(set(new.events.event_sync_id.tolist())) == len(new.events)
    assert set(old.events.event_sync_id.tolist()) == {old.events.event_sync_id.min()}


def test_counters_and_memory_are_recorded_where_asked_for(tmp_path: Path) -> None:
    knobs = replace(SMALL, retries_per_step=4.0)
    recording = record(run(knobs), View(metrics=True, memory=True))
    taken = sum(
        int(row["bytes"] or 0) * (1 - 2 * int(row["memoryOperationType"] or 0))
        for row in recording.rows["CUDA_GPU_MEMORY_USAGE_EVENTS"]
    )
    assert 0.7 * (80 << 30) < taken <= 0.85 * (80 << 30)
    write_export(tmp_path / "run.sqlite", recording)
    (samples,) = read_trace(tmp_path / "run.sqlite").gpu_samples
    assert 0 < samples.sm_issue_frac.max() < samples.sm_active_frac.max() <= 1


def test_a_graph_is_one_row_or_one_kernel_per_node(tmp_path: Path) -> None:
    knobs = replace(SMALL, graph_attention=True)
    nodes, whole = (record(run(knobs), View(graphs=level)).rows for level in ("node", "graph"))
    replays = whole["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"]
    kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
    in_graphs = [row for row in nodes[kernels] if row["graphNodeId"] is not None]
    assert len(in_graphs) == len(nodes[kernels]) - len(whole[kernels])
    assert {row["correlationId"] for row in in_graphs} == {row["correlationId"] for row in replays}
    assert len(in_graphs) > 3 * len(replays)


def test_views_are_drawn_over_schemas_and_what_was_recorded() -> None:
    views = [draw_view(seed) for seed in range(200)]
    assert len({view.schema for view in views}) == 8
    assert 70 < sum(view.ranges == "none" for view in views) < 130
    assert {view.graphs for view in views} == {"node", "graph"}


def adams(knobs: Knobs) -> tuple[int, int]:
    """How many Adam launches a step has, and how many other pieces of work lie between them."""
    step = [one for one in run(knobs).activities if one.work.place.step == 1]
    places = [place for place, one in enumerate(step) if one.work.kernel == "adam"]
    return len(places), places[-1] - places[0] + 1 - len(places)


def test_the_dense_parameters_and_the_experts_can_have_an_optimizer_each() -> None:
    assert adams(SMALL) == (6, 0)
    assert adams(replace(SMALL, optimizers="two_adams")) == (12, 0)
    one, two = run(SMALL), run(replace(SMALL, optimizers="two_adams"))
    norms = [sum(a.work.kernel == "l2norm" for a in found.activities) for found in (one, two)]
    assert norms == [3, 6]


def test_muon_multiplies_matrices_before_adam_takes_the_rest() -> None:
    products = [
        activity
        for activity in run(replace(SMALL, optimizers="muon_adam")).activities
        if activity.work.place.operation == "newton_schulz"
    ]
    assert len(products) == 3 * 2 * 5 * 3  # steps, layers, rounds, products of each


def test_two_handicaps_gone_leave_less_than_either() -> None:
    lengths = [
        sum(run(FULL, without=first, and_without=second).step_ns)
        for first, second in (
            (None, None),
            (Handicap.COMMUNICATION, None),
            (Handicap.COMMUNICATION, Handicap.MEMORY),
            (Handicap.MEMORY, Handicap.COMMUNICATION),
        )
    ]
    assert lengths[0] > lengths[1] > lengths[2] == lengths[3]


def test_with_all_gpu_work_halved_a_step_bound_by_the_gpu_takes_half_its_time() -> None:
    bound = replace(SMALL, python_us=0.8, data_stall_ms=0.0, token_sync=False)
    assert sum(run_halved(bound).step_ns) == pytest.approx(sum(run(bound).step_ns) / 2, rel=0.1)
    by_host = replace(SMALL, gpu="GB200", python_us=60.0)
    assert sum(run_halved(by_host).step_ns) == pytest.approx(sum(run(by_host).step_ns), rel=0.1)
