"""Named examples: one set of knobs each, for the demo and for reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from traces.simulate.knobs import Knobs


@dataclass(frozen=True, slots=True)
class Scenario:
    """Example knobs and what they show, in one line."""

    knobs: Knobs
    about: str


_TUNED: Final = Knobs(dispatch_us=25.0, peer_late_us=1.0, gradient_us=40.0, data_stall_ms=0.0)
_GRAPHED: Final = replace(
    _TUNED, gpu="GB200", step_count=10, layer_count=3, python_us=12, api_us=5, token_sync=False,
    attention_us=40, dense_gemm_us=60, expert_gemm_us=160, small_kernel_us=8, dispatch_us=20,
)  # fmt: skip

SCENARIOS: Final[Mapping[str, Scenario]] = {
    "communication": Scenario(
        Knobs(dispatch_us=600, peer_late_us=30), "NCCL all-to-all across nodes, nothing beside it"
    ),
    "host_overhead": Scenario(
        replace(_TUNED, python_us=30, api_us=6, gpu="GB200"), "Python launches slower than the GPU works"
    ),
    "memory": Scenario(
        replace(_TUNED, recompute="moe", offload_mib=48),
        "expert layers run twice and activations travel to the host",
    ),
    "compute": Scenario(
        replace(_TUNED, expert_tile_count=48), "expert GEMMs with fewer blocks than the GPU has SMs"
    ),
    "healthy": Scenario(
        replace(_TUNED, ep_overlap=True, microbatch_count=3), "a tuned MoE run: exchanges hidden, host ahead"
    ),
    "dense": Scenario(replace(_TUNED, dispatcher="none", layer_count=8), "a tuned run without experts"),
    "overlapped": Scenario(
        Knobs(
            ep_overlap=True, microbatch_count=8, layer_count=3, step_count=3, dispatch_us=330.0,
            peer_late_us=2, gradient_us=40, data_stall_ms=0.0, comm_block_count=8, beside_comm_frac=0.01,
            attention_us=250, dense_gemm_us=350, expert_gemm_us=700, control_frac=0.03, token_sync=False,
        ),
        "much communication, nearly all of it hidden",
    ),
    "gc_pauses": Scenario(
        replace(_TUNED, gc_pause_ms=12, gc_per_layer_frac=0.3, end_of_step="read_back"),
        "Python collects garbage in the middle of steps",
    ),
    "token_sync": Scenario(
        replace(
            _TUNED, gpu="GB200", python_us=9.0, token_sync=True, sync_return_us=60.0, attention_us=40.0,
            dense_gemm_us=80.0, expert_gemm_us=200.0, small_kernel_us=10.0, dispatch_us=15.0,
            head_us=100.0, optimizer_us=200.0, gradient_us=10.0, grouped_gemm=True,
        ),
        "the host waits for token counts in every layer and starts again cold",
    ),
    "recompute_full": Scenario(replace(_TUNED, recompute="full"), "every layer's forward runs twice"),
    "offload": Scenario(
        replace(_TUNED, offload_mib=160, host_link_gb_per_s=25), "activations travel to the host and back"
    ),
    "allocator": Scenario(
        replace(_TUNED, retries_per_step=4, free_us=500, malloc_us=900, reserved_frac=0.97),
        "the caching allocator gives memory back and takes it again in every step",
    ),
    "deepep": Scenario(
        Knobs(dispatcher="deepep", dispatch_us=350, peer_late_us=40), "DeepEP's exchange, waiting for peers"
    ),
    "hybridep": Scenario(
        Knobs(dispatcher="hybridep", dispatch_us=350, peer_late_us=40),
        "HybridEP's exchange, waiting for peers",
    ),
    "two_walls": Scenario(
        Knobs(dispatch_us=230, recompute="full", microbatch_count=2),
        "communication and recompute, about equally dear",
    ),
    "graphs": Scenario(
        replace(_GRAPHED, graph_attention=True, graph_router=True),
        "CUDA graphs of attention and router keep a slow host ahead: a base to compare with",
    ),
    "graphs_lost": Scenario(
        replace(_GRAPHED, seed=1), "the same run after its graphs stopped replaying: compare graphs with it"
    ),
    "pipeline": Scenario(
        replace(_TUNED, pipeline_us=60, pipeline_bubble_us=4000, microbatch_count=2),
        "a late stage of a pipeline with few microbatches",
    ),
}  # fmt: skip
