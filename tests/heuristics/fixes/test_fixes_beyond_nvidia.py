"""The cards that come after NVIDIA's list: what each needs, and that none is tried without its evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.guides.parallel import connections
from heuristics.plan.plan import make_plan
from heuristics.run.run import Run
from tests.doubles.fixes import complete, configured, need, states
from tests.doubles.opinions import paying
from traces.sections.tables import WallId
from traces.settings.settings import Value

OVERLAPPED = Observed(ep_overlap=True, dispatcher="deepep", internode=True, a2a_waiting_frac=0.1)
KINDS: dict[WallId, str] = {
    "memory": "recompute",
    "communication": "ep_a2a",
    "host_overhead": "launch",
    "compute": "gemm",
}


def planned(wall: WallId, run: Run) -> set[str]:
    costly = replace(run, **{name: getattr(paying(wall, {KINDS[wall]: 100}), name) for name in COSTS})
    return {one.fix.id for one in make_plan(costly, [wall], CATALOGUE).fixes}


COSTS = ("cost_by_kind_ns", "window_ns", "total_ns")

OVERLAP: dict[str, Value] = {"overlap_moe_expert_parallel_comm": True}


@pytest.mark.parametrize(
    ("number", "values"),
    [
        (
            "MEM-3",
            {
                "optimizer.use_precision_aware_optimizer": True,
                "optimizer.exp_avg_dtype": "bf16",
                "optimizer.exp_avg_sq_dtype": "fp8",
            },
        ),
        ("MEM-10", {"ddp.use_megatron_fsdp": True}),
        ("MEM-11", {"moe_paged_stash": True}),
        ("MEM-12", {"ep_overlap_early_attn_memory_release": True}),
        ("MEM-13", {"env.NCCL_NVLS_ENABLE": "0", "env.TORCH_NCCL_AVOID_RECORD_STREAMS": "1"}),
        ("COM-8", {"moe_shared_expert_overlap": True}),
        ("COM-9", {"comm_overlap.delay_wgrad_compute": True}),
        ("COM-12", {"env.NVSHMEM_IB_ENABLE_IBGDA": "true"}),
        ("COM-14", {"overlap_dispatch_backward_with_experts_wgrad": True}),
        ("COM-15", {"high_priority_a2a_comm_stream": True}),
        ("HST-8", {"optimizer.optimizer_cuda_graph": True}),
        ("CMP-7", {"use_transformer_engine_op_fuser": True, "moe_mlp_glu_interleave_size": 32}),
    ],
)
def test_a_card_that_is_made_already_is_refused(number: str, values: dict[str, Value]) -> None:
    assert need(CATALOGUE[number], configured(values), "not set yet").state == "unmet"
    half = dict(list(values.items())[:-1])
    assert not [one for one in CATALOGUE[number].preconditions(configured(half)) if "already set" in one.text]


def test_without_evidence_the_special_cards_are_refused() -> None:
    empty = {wall: planned(wall, Run()) for wall in KINDS}
    assert not {"MEM-10", "MEM-11", "MEM-12"} & empty["memory"]
    assert not {"COM-8", "COM-9", "COM-12", "COM-13", "COM-14"} & empty["communication"]
    assert not {"CMP-5", "CMP-7"} & empty["compute"]


def test_priority_of_the_overlaps_stream_follows_the_overlap() -> None:
    assert {"COM-1", "COM-15"} <= planned("communication", Run())
    no_overlap = Run(given=Given(torch_version="2.5.0"))
    assert not {"COM-1", "COM-15"} & planned("communication", no_overlap)


def test_delayed_gradients_wait_for_the_overlap_to_be_measured() -> None:
    assert "COM-9" not in planned("communication", complete())
    overlapped = complete({"overlap_moe_expert_parallel_comm": True})
    assert "COM-9" in planned("communication", overlapped)


def test_shared_experts_are_overlapped_where_nothing_better_is_allowed() -> None:
    one_dispatcher = complete(
        {"mtp_num_layers": 2, "pipeline_model_parallel_size": 1}, ep=16, flex_package=False
    )
    found = planned("communication", replace(one_dispatcher, observed=Observed(moe=True)))
    assert "COM-8" in found
    assert not {"COM-1", "COM-2"} & found


@pytest.mark.parametrize("module", ["attn", "moe_router"])
def test_delayed_gradients_want_a_newer_transformer_engine_inside_graphs(module: str) -> None:
    values: dict[str, Value] = {
        **OVERLAP,
        "ddp.overlap_grad_reduce": True,
        "cuda_graph_impl": "transformer_engine",
        "cuda_graph_modules": (module,),
    }
    older, newer = (complete(values, te_version=version) for version in ("2.11.0", "2.12.0"))
    text = "Engine 2.12"
    as_lm = [replace(one, settings=replace(one.settings, framework="megatron_lm")) for one in (older, newer)]
    assert states(CATALOGUE["COM-9"], text, *as_lm) == ["unmet", "met"]


@pytest.mark.parametrize(
    ("run", "queues"),
    [
        (Run(given=Given(gpu="GB200", tp=2)), 32),
        (Run(given=Given(gpu="H100", tp=2)), 1),
        (Run(given=Given(gpu="H100", cp=2)), 1),
        (Run(OVERLAPPED, Given(gpu="H100", tp=2)), 32),
        (Run(Observed(ep_overlap=True), Given(gpu="H100", tp=2)), 8),
        (Run(given=Given(gpu="H100", tp=1, cp=1)), 8),
        (configured({"ddp.use_megatron_fsdp": True}, gpu="H100", tp=2), 8),
    ],
)
def test_queues_are_what_the_runs_overlaps_want(run: Run, queues: int) -> None:
    assert connections(run) == queues
    assert CATALOGUE["COM-13"].knobs(run).environment == (f"CUDA_DEVICE_MAX_CONNECTIONS={queues}",)


@pytest.mark.parametrize(
    ("values", "flags"),
    [
        ({"context_parallel_size": 16}, ("--cp-comm-type p2p",)),
        ({"context_parallel_size": 16, "cp_comm_type": "a2a"}, ()),  # the last kind to try
        (
            {"context_parallel_size": 16, "cp_comm_type": "p2p", "num_attention_heads": 8},
            ("--cp-comm-type a2a+p2p", "--hierarchical-context-parallel-sizes 8 2"),
        ),
        (
            {"context_parallel_size": 4, "cp_comm_type": "p2p", "num_attention_heads": 8},
            ("--cp-comm-type a2a",),
        ),
        (
            {"context_parallel_size": 8, "cp_comm_type": "p2p", "num_query_groups": 4},
            ("--cp-comm-type a2a+p2p", "--hierarchical-context-parallel-sizes 4 2"),
        ),
    ],
)
def test_a_ring_that_runs_is_cut_in_two_levels_that_heads_and_domain_hold(
    values: dict[str, Value], flags: tuple[str, ...]
) -> None:
    assert CATALOGUE["COM-7"].knobs(configured(values, gpu="H100")).megatron_lm == flags
