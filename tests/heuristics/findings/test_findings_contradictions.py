"""Every contradiction of configuration, log and trace that has no file of its own, from runs said by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.findings.contradictions import find_contradictions
from heuristics.result.configured import ConfigFinding, FindingState
from heuristics.rules.failures import Failure
from heuristics.run.run import Run
from tests.configurations.sizes import estimated, tiny
from tests.doubles.workflow import Config, log_of, run_with
from traces.settings.knobs import CP, EP, ETP, PP, TP
from traces.settings.settings import FileProblem, Value, settings
from traces.training_log.log import Iteration, TrainingLog

FLEX: Config = {"moe_token_dispatcher_type": "flex"}
DEEPEP: Config = {**FLEX, "moe_flex_dispatcher_backend": "deepep"}
HYBRIDEP: Config = {**FLEX, "moe_flex_dispatcher_backend": "hybridep"}
ALLTOALL: Config = {"moe_token_dispatcher_type": "alltoall"}
OVERLAP = "overlap_moe_expert_parallel_comm"
SEGMENTS: Config = {"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
GRAPHS: Config = {
    "cuda_graph_impl": "transformer_engine",
    "cuda_graph_modules": ("moe_router", "moe_preprocess"),
}
RANKS = "env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
CONNECTIONS = "env.CUDA_DEVICE_MAX_CONNECTIONS"
H100 = {"gpu": "H100"}
TP2: Config = {"tensor_model_parallel_size": 2}
UNGROUPED: Config = {"moe_grouped_gemm": False}
OVERWRITTEN = "CFG-overwritten-overlap-moe-expert-parallel-comm"
SELECTIVE: Config = {"recompute_granularity": "selective", "recompute_modules": ("moe_act",)}


def bridge(knobs: Mapping[str, Value], **what: object) -> Run:
    return run_with(knobs, framework="megatron_bridge", **what)  # type: ignore[arg-type]


def seen(knobs: Mapping[str, Value], **shown: object) -> Run:
    return run_with(knobs, shown=shown)


def logged(**knobs: Value) -> TrainingLog:
    return replace(log_of(), settings=settings(knobs, "run.log:1"))


STEADY = tuple(Iteration(index, 1_000_000_000, index, global_batch_size=16) for index in range(1, 9))

SPREAD = {"num_moe_experts": 64, "expert_model_parallel_size": 8, "moe_router_enable_expert_bias": False}
FAST = tuple(replace(one, tflops_per_gpu=900.0) for one in STEADY)
GROWING = tuple(Iteration(index, 1_000_000_000 + index * 20_000_000, index) for index in range(1, 61))
SMALL: Config = {
    **{"num_layers": 2, "hidden_size": 1024, "ffn_hidden_size": 4096, "num_attention_heads": 16},
    **{"vocab_size": 32000, "seq_length": 2048, "world_size": 1, "gated_linear_unit": False},
    **dict.fromkeys(("tensor_model_parallel_size", "pipeline_model_parallel_size"), 1),
}
"""A model whose steps of a second are some 11 TFLOP/s."""

ROWS: tuple[tuple[str, FindingState, Run], ...] = (
    ("CFG-flex-type", "inert", run_with({**HYBRIDEP, **ALLTOALL})),
    ("CFG-flex-backend", "inert", run_with({**FLEX, "moe_flex_dispatcher_backend": None})),
    ("CFG-graph-register", "illegal", run_with({**GRAPHS, **SEGMENTS})),
    ("CFG-dispatcher-gpu", "rejected", bridge(DEEPEP, given={"gpu": "GB200"})),
    ("CFG-dispatcher-package", "rejected", run_with(log=log_of("deepep-missing"))),
    ("CFG-dispatcher-not-active", "requested_not_active", seen(DEEPEP, dispatcher="alltoall")),
    ("CFG-dispatcher-not-active", "active_not_requested", seen(ALLTOALL, dispatcher="deepep")),
    ("CFG-padding-sync", "illegal",
     run_with({**ALLTOALL, **GRAPHS, "moe_router_padding_for_quantization": True})),
    *(
        (
            f"CFG-overwritten-{knob.replace('_', '-')}",
            "overwritten",
            bridge({knob: True, "comm_overlap.overlap_grad_reduce": True}),
        )
        for knob in (OVERLAP, "delay_wgrad_compute", "tp_comm_overlap")
    ),
    ("CFG-overwritten-ddp-overlap", "overwritten",
     bridge({"ddp.overlap_grad_reduce": False, "comm_overlap.overlap_grad_reduce": True})),
    ("CFG-ep-overlap-not-active", "requested_not_active", seen({OVERLAP: True}, ep_overlap=False)),
    (
        "CFG-dp-overlap-not-active",
        "requested_not_active",
        replace(
            run_with({"ddp.overlap_grad_reduce": True}),
            cost_by_kind_ns={"communication": {"dp_reduce_scatter": 30}},
            window_ns=100,
            total_ns={"communication": 30},
        ),
    ),
    ("CFG-tp-overlap-off", "inert",
     bridge({"comm_overlap.tp_comm_overlap": True, "tensor_model_parallel_size": 1})),
    ("CFG-ep-overlap-left-off", "default_left_off",
     bridge({f"comm_overlap.{OVERLAP}": False}, shown={"ep_overlap": False}, ep_share=0.25)),
    ("CFG-max-connections", "ineffective", run_with({CONNECTIONS: "1", OVERLAP: True})),
    ("CFG-memory-estimate", "may_not_fit",
     Run(observed=Observed(memory_bytes=estimated(tiny()).total_bytes - 1), settings=tiny())),
    ("CFG-graphs-not-replayed", "requested_not_active", seen(GRAPHS, graph_frac=0.0)),
    ("CFG-graphs-unasked", "active_not_requested", seen({"cuda_graph_impl": "none"}, graph_frac=0.3)),
    ("CFG-precision", "requested_not_active", seen({"fp8": "e4m3"}, precision="bf16")),
    ("CFG-grouped-gemm", "requested_not_active", seen({"moe_grouped_gemm": True}, grouped_gemm=False)),
    ("CFG-grouped-gemm-unasked", "active_not_requested", seen(UNGROUPED, grouped_gemm=True)),
    ("CFG-permute-fusion", "requested_not_active", seen({"moe_permute_fusion": True}, permute_fused=False)),
    ("CFG-recompute-unasked", "active_not_requested", seen(SELECTIVE, recompute_modules=("moe",))),
    ("CFG-recompute-not-active", "requested_not_active",
     seen({"recompute_granularity": "full"}, recompute_modules=(), recompute_full=False)),
    ("CFG-offload-not-active", "requested_not_active", seen({"cpu_offloading": True}, offload=False)),
    (
        "CFG-offload-unasked",
        "active_not_requested",
        seen(
            {
                "cpu_offloading": False,
                "fine_grained_activation_offloading": False,
                "optimizer.optimizer_cpu_offload": False,
            },
            offload=True,
        ),
    ),
    ("CFG-expandable-segments", "requested_not_active",
     seen({"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, allocator_calls_per_step=8.0)),
    ("CFG-manual-gc", "ineffective", seen({"train.manual_gc": True}, absent_frac={"gc": 0.02})),
    ("CFG-log-global-batch", "logged_otherwise",
     run_with({"train.global_batch_size": 8}, log=replace(log_of(), iterations=STEADY))),
    ("CFG-gpu-differs", "counted_otherwise", replace(seen({}, gpu="GB200"), given=Given(gpu="H100"))),
    ("CFG-balance-off", "default_left_off", run_with({**SPREAD, "moe_router_load_balancing_type": "none"})),
    ("CFG-log-world-size", "logged_otherwise", run_with({"world_size": 8}, log=logged(world_size=16))),
    ("CFG-log-precision", "logged_otherwise", run_with({"bf16": True, "fp8": None}, log=logged(fp8="e4m3"))),
    ("CFG-log-throughput", "logged_otherwise", run_with(SMALL, log=replace(log_of(), iterations=FAST))),
    ("CFG-log-drift", "drifting", run_with(log=replace(log_of(), iterations=GROWING))),
)  # fmt: skip


def ids(run: Run, *failures: Failure) -> list[str]:
    return [one.id for one in find_contradictions(run, failures)]


def only(run: Run, *failures: Failure) -> ConfigFinding:
    (found,) = find_contradictions(run, failures)
    return found


@pytest.mark.parametrize(
    ("name", "state", "run"), [pytest.param(*row, id=f"{row[0]}: {row[1]}") for row in ROWS]
)
def test_a_contradiction_is_found_with_its_state(name: str, state: FindingState, run: Run) -> None:
    assert (name, state) in [(one.id, one.state) for one in find_contradictions(run)]


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(seen(DEEPEP, dispatcher="deepep"), id="dispatcher as asked"),
        pytest.param(bridge(DEEPEP, given=H100), id="deepep on Hopper"),
        pytest.param(bridge(DEEPEP, given={"gpu": "B300", "bridge_version": "0.4.0"}), id="B300 since 0.4"),
        pytest.param(run_with(DEEPEP, given={"gpu": "GB200"}), id="no gate in Megatron-LM"),
        pytest.param(bridge({f"comm_overlap.{OVERLAP}": True, OVERLAP: True}), id="overlap said in both"),
        pytest.param(run_with({OVERLAP: True}), id="overlap on the model without CommOverlapConfig"),
        pytest.param(seen({OVERLAP: True}, ep_overlap=None), id="overlap between the limits"),
        pytest.param(
            bridge({"num_layers": 4}, shown={"ep_overlap": False}, ep_share=0.05), id="little all-to-all"
        ),
        pytest.param(run_with({CONNECTIONS: "1", **TP2}, given=H100), id="1 with TP"),
        pytest.param(
            run_with({CONNECTIONS: "32", **TP2, OVERLAP: False}, given={"gpu": "B200"}),
            id="Blackwell does not ask",
        ),
        pytest.param(run_with({**GRAPHS, **SEGMENTS, "env.NCCL_GRAPH_REGISTER": "0"}), id="no register"),
        pytest.param(
            run_with({**GRAPHS, **SEGMENTS}, given={"core_version": "0.15.0"}), id="not asserted before 0.16"
        ),
        pytest.param(run_with(SEGMENTS), id="segments without graphs"),
        pytest.param(seen({"fp8": "e4m3"}, precision="mixed"), id="precision mixed"),
        pytest.param(seen(SELECTIVE, recompute_modules=("layernorm",)), id="norms inside another module"),
        pytest.param(seen({"train.manual_gc": True}, absent_frac={"gc": 0.001}), id="rare collection"),
        pytest.param(
            run_with({**HYBRIDEP, RANKS: "8", "expert_model_parallel_size": 32}, given=H100), id="NVL8 is 8"
        ),
        pytest.param(
            run_with({**DEEPEP, **GRAPHS, "moe_router_padding_for_quantization": True}), id="padded flex"
        ),
    ],
)
def test_what_agrees_or_cannot_be_told_makes_no_contradiction(run: Run) -> None:
    assert ids(run) == []


def test_what_is_misspelled_comes_first_with_its_right_name() -> None:
    problems = (
        FileProblem("run.sh:3", "Megatron-LM has no such flag", "--fake-process-group"),
        FileProblem("run.sh:4", "no number can be read here"),
    )
    found = find_contradictions(seen(GRAPHS, graph_frac=0.0), problems=problems)
    assert [one.id for one in found] == ["CFG-misspelled-1", "CFG-graphs-not-replayed"]
    assert (found[0].state, found[0].evidence, found[0].fix) == (
        "misspelled",
        "in run.sh:3",
        "--fake-process-group",
    )


def test_the_default_backend_of_a_whole_configuration_is_no_wish() -> None:
    """A dumped configuration names every knob, this one with 100 of them."""
    dumped: Config = {**DEEPEP, **ALLTOALL, **{f"knob_{index}": 1 for index in range(98)}}
    assert len(dumped) == 100
    assert ids(run_with(dumped)) == []
    assert ids(run_with({**dumped, "moe_flex_dispatcher_backend": "hybridep"})) == ["CFG-flex-type"]


def test_a_default_that_we_filled_in_is_no_wish() -> None:
    filled = settings({"moe_flex_dispatcher_backend": "deepep"}, "default")
    assert ids(Run(settings=filled.under(settings(ALLTOALL, "run.sh:3")))) == []


def test_a_recognised_failure_counts_without_the_log() -> None:
    failure = Failure(id="deepep-gpu", state="rejected", text="", confirm="", cure="", fix="")
    found = only(run_with(DEEPEP), failure)
    assert (found.id, found.evidence) == ("CFG-dispatcher-gpu", "the log reports it")


def test_an_overlap_that_the_model_asks_for_is_overwritten_and_not_left_off() -> None:
    knobs: Config = {OVERLAP: True, "comm_overlap.tp_comm_overlap": False}
    assert ids(bridge(knobs, shown={"ep_overlap": False}, ep_share=0.25)) == [OVERWRITTEN]


def test_an_unknown_value_of_a_knob_is_not_repeated() -> None:
    knobs: Config = {one: "hunter2" for row in ROWS for one in row[2].settings.by_knob}
    found = find_contradictions(run_with(knobs, shown={"dispatcher": "alltoall", "graph_frac": 0.0}))
    assert found
    assert "hunter2" not in str(found)


def test_a_step_a_tenth_longer_still_stands_for_the_run() -> None:
    assert find_contradictions(Run(), perturbation_frac=0.10) == ()
    assert find_contradictions(Run()) == ()


def test_a_step_longer_than_that_is_to_be_recorded_again() -> None:
    (found,) = find_contradictions(Run(), perturbation_frac=0.177)
    assert (found.id, found.state) == ("CAP-1", "not_representative")
    assert "18 %" in found.text


ONE: Config = dict.fromkeys((TP, CP, PP, EP, ETP), 1)


def traffic(run: Run) -> list[str]:
    return [one.id for one in find_contradictions(run) if one.id.startswith("CFG-traffic-")]


@pytest.mark.parametrize(
    ("knob", "seen", "id"),
    [
        *((EP, "ep_active", "CFG-traffic-ep"), (TP, "tp_active", "CFG-traffic-tp")),
        *((CP, "cp_active", "CFG-traffic-cp"), (PP, "pp_active", "CFG-traffic-pp")),
    ],
)
def test_traffic_of_a_size_that_is_configured_as_one_is_a_finding_that_names_it(
    knob: str, seen: str, id: str
) -> None:
    run = run_with(ONE, shown={seen: True})
    assert traffic(run) == [id]
    assert run.config.refuted == (knob,)
    assert traffic(run_with({**ONE, knob: 8}, shown={seen: True})) == []
    assert traffic(run_with(ONE)) == []


@pytest.mark.parametrize(
    ("knobs", "shown"),
    [
        *(({ETP: 8}, {"ep_active": True, "dispatcher": "deepep"}), ({ETP: 8}, {"tp_active": True})),
        ({ETP: None, TP: 8}, {"ep_active": True, "dispatcher": "allgather"}),
        ({CP: 4, "cp_comm_type": "a2a"}, {"ep_active": True, "dispatcher": "alltoall"}),
        *(({CP: 4}, {"pp_active": True}), ({PP: 4}, {"cp_active": True})),
    ],
)
def test_what_another_dimension_may_send_refutes_nothing(
    knobs: dict[str, Value], shown: dict[str, object]
) -> None:
    assert traffic(run_with({**ONE, **knobs}, shown=shown)) == []


def test_a_size_that_nobody_configured_is_not_refuted() -> None:
    assert traffic(run_with({"num_moe_experts": 8}, shown={"ep_active": True})) == []


def test_an_option_is_refuted_as_a_file_is() -> None:
    run = run_with({"num_moe_experts": 8}, given={"ep": 1}, shown={"ep_active": True})
    (found,) = [one for one in find_contradictions(run) if one.id == "CFG-traffic-ep"]
    assert "--ep" in found.evidence


def test_gradients_of_several_ranks_refute_a_world_of_one() -> None:
    knobs = {**ONE, "world_size": 1}
    assert traffic(run_with(knobs, shown={"dp_active": True})) == ["CFG-traffic-dp"]
    assert traffic(run_with({**knobs, "world_size": 8}, shown={"dp_active": True})) == []


def test_sends_of_unknown_purpose_refute_sizes_that_are_all_one() -> None:
    shown = {"sendrecv_unresolved": True}
    (found,) = [one for one in find_contradictions(run_with(ONE, shown=shown)) if "traffic" in one.id]
    assert (
        found.text == "PP 1, CP 1 and EP 1 are configured, and the trace has send and receive between ranks"
    )
    assert traffic(run_with({**ONE, PP: 2}, shown=shown)) == []
    assert traffic(run_with({**ONE, "optimizer.optimizer": "dist_muon"}, shown=shown)) == []
