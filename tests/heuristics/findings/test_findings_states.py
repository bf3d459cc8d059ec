"""Three states of every feature: requested, accepted, active."""

from __future__ import annotations

import pytest

from heuristics.findings.states import FEATURES, FeatureStates, feature_states
from heuristics.rules.failures.explain import lines_about, rules_by_line
from heuristics.rules.failures.row import failures
from heuristics.run.run import Run
from tests.workflow_doubles import log_of, run_with
from traces.settings.settings import Framework

BLOCKWISE = {"fp8": "e4m3", "fp8_recipe": "blockwise"}
CURRENT = "bf16_with_fp8_current_scaling_mixed"
ALLOCATOR = "env.PYTORCH_CUDA_ALLOC_CONF"


def states(run: Run, feature: str) -> tuple[object, object, object]:
    (found,) = [one for one in feature_states(run) if one.feature == feature]
    return found.requested, found.accepted, found.active


def test_of_an_unknown_run_every_state_is_unknown() -> None:
    assert feature_states(Run()) == tuple(FeatureStates(one.name, None, None, None) for one in FEATURES)


@pytest.mark.parametrize(
    ("feature", "knobs", "shown", "told"),
    [
        (
            "dispatcher",
            {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"},
            {"dispatcher": "alltoall"},
            ("deepep", "alltoall"),
        ),
        (
            "dispatcher",
            {"moe_token_dispatcher_type": "flex", "moe_enable_deepep": True},
            {"dispatcher": "deepep"},
            ("deepep", "deepep"),
        ),
        ("EP overlap", {"overlap_moe_expert_parallel_comm": True}, {"ep_overlap": True}, (True, True)),
        (
            "EP overlap",
            {"overlap_moe_expert_parallel_comm": True, "comm_overlap.tp_comm_overlap": False},
            {},
            (False, None),
        ),
        ("delayed weight gradients", {"comm_overlap.delay_wgrad_compute": True}, {}, (True, None)),
        ("CUDA graphs", {"enable_cuda_graph": True}, {"graph_frac": 0.5}, ("local", True)),
        ("CUDA graphs", {"cuda_graph_impl": None}, {"graph_frac": 0.0}, ("none", False)),
        ("CUDA graphs: modules", {"cuda_graph_modules": "attn,moe_router"}, {}, ("attn moe_router", None)),
        ("recompute", {"recompute_granularity": None}, {"recompute_modules": ()}, ("none", "none")),
        (
            "recompute",
            {"recompute_granularity": "full"},
            {"recompute_modules": ("moe",), "recompute_full": True},
            ("full", "full"),
        ),
        (
            "recompute: modules",
            {"recompute_modules": ("swiglu",)},
            {"recompute_modules": ("moe_act",)},
            ("moe_act", "moe_act"),
        ),
        ("precision", BLOCKWISE, {"precision": "bf16"}, ("fp8_blockwise", "bf16")),
        ("precision", {"mixed_precision": CURRENT}, {}, ("fp8_current", None)),
        ("precision", {"fp8": None, "bf16": True}, {}, ("bf16", None)),
        ("grouped GEMM", {"moe_grouped_gemm": True}, {"grouped_gemm": True}, (True, True)),
        ("permute fusion", {"moe_permute_fusion": False}, {"permute_fused": True}, (False, True)),
        ("shared-expert overlap", {"moe_shared_expert_overlap": None}, {}, (False, None)),
        ("gradient-reduce overlap", {"ddp.overlap_grad_reduce": False}, {}, (False, None)),
        (
            "gradient-reduce overlap",
            {"ddp.use_distributed_optimizer": True, "comm_overlap.overlap_grad_reduce": True},
            {},
            (True, None),
        ),
        ("parameter-gather overlap", {"ddp.overlap_param_gather": True}, {}, (True, None)),
        ("TP overlap", {"tp_comm_overlap": True}, {"tp_overlap": False}, (True, False)),
        ("activation offload", {"cpu_offloading": True}, {"offload": True}, (True, True)),
        ("activation offload", {"cpu_offloading": False}, {}, (None, None)),
        ("optimizer offload", {"optimizer.optimizer_cpu_offload": False}, {}, (False, None)),
        ("manual garbage collection", {"train.manual_gc": True}, {"absent_frac": {"gc": 0.1}}, (True, False)),
        ("expandable segments", {ALLOCATOR: "expandable_segments:True"}, {}, (True, None)),
        ("expandable segments", {ALLOCATOR: "max_split_size_mb:128"}, {}, (False, None)),
    ],
)
def test_requested_is_what_arrives_at_the_framework_and_active_what_the_trace_shows(
    feature: str, knobs: dict[str, object], shown: dict[str, object], told: tuple[object, object]
) -> None:
    framework: Framework = "megatron_bridge"
    run = run_with(knobs, shown=shown, framework=framework)  # type: ignore[arg-type]
    requested, _, active = states(run, feature)
    assert (requested, active) == told


def test_a_log_with_steps_accepts_what_was_asked_for() -> None:
    run = run_with({"moe_grouped_gemm": True}, log=log_of(steps=1))
    assert states(run, "grouped GEMM") == (True, True, None)
    assert states(run, "permute fusion") == (None, None, None)


def test_a_log_without_steps_accepts_nothing_yet() -> None:
    assert states(run_with({"moe_grouped_gemm": True}, log=log_of()), "grouped GEMM")[1] is None


@pytest.mark.parametrize(
    ("line", "feature"),
    [
        ("flex-skipped", "dispatcher"),
        ("overlap-energon-off", "EP overlap"),
        ("wgrad-te", "delayed weight gradients"),
        ("graph-nothing-captured", "CUDA graphs"),
        ("tp-overlap-off", "TP overlap"),
        ("recompute-mla", "recompute"),
        ("offload-pipeline", "activation offload"),
        ("optimizer-offload-precision", "optimizer offload"),
    ],
)
def test_a_line_that_refuses_or_drops_a_feature_does_not_accept_it(line: str, feature: str) -> None:
    assert states(run_with(log=log_of(line, steps=1)), feature)[1] is False


def test_a_capture_in_the_log_accepts_graphs_before_any_step() -> None:
    run = run_with({"cuda_graph_impl": "transformer_engine"}, log=log_of("graph-captured"))
    assert states(run, "CUDA graphs")[:2] == ("transformer_engine", True)


def test_every_line_that_refuses_a_feature_is_one_that_a_failure_explains() -> None:
    refused = {line for one in FEATURES for line in lines_about(one.about)}
    assert refused
    assert refused <= {line for row in failures().values() for line in row.lines} | set(rules_by_line())
