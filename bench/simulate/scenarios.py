"""Settings of the runs that the demo shows, by the names of its recordings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bench.simulate.knobs import Knobs

_TUNED: Final = Knobs(dispatch_us=25.0, peer_late_us=1.0, gradient_us=40.0, data_stall_ms=0.0)
_GRAPHED: Final = replace(
    _TUNED, gpu="GB200", step_count=10, layer_count=3, python_us=12, api_us=5, token_sync=False,
    attention_us=40, dense_gemm_us=60, expert_gemm_us=160, small_kernel_us=8, dispatch_us=20,
)  # fmt: skip

SCENARIOS: Final[Mapping[str, Knobs]] = {
    "communication": Knobs(dispatch_us=600, peer_late_us=30),
    "host_overhead": replace(_TUNED, python_us=30, api_us=6, gpu="GB200"),
    "memory": replace(_TUNED, recompute="moe", offload_mib=48),
    "compute": replace(_TUNED, expert_tile_count=48),
    "healthy": replace(_TUNED, ep_overlap=True, microbatch_count=3),
    "dense": replace(_TUNED, dispatcher="none", layer_count=8),
    "overlapped": Knobs(
        ep_overlap=True, microbatch_count=8, layer_count=3, step_count=3, dispatch_us=330.0,
        peer_late_us=2, gradient_us=40, data_stall_ms=0.0, comm_block_count=8, beside_comm_frac=0.01,
        attention_us=250, dense_gemm_us=350, expert_gemm_us=700, control_frac=0.03, token_sync=False,
    ),
    "gc_pauses": replace(_TUNED, gc_pause_ms=12, gc_per_layer_frac=0.3, end_of_step="read_back"),
    "token_sync": replace(
        _TUNED, gpu="GB200", python_us=9.0, token_sync=True, sync_return_us=60.0, attention_us=40.0,
        dense_gemm_us=80.0, expert_gemm_us=200.0, small_kernel_us=10.0, dispatch_us=15.0,
        head_us=100.0, optimizer_us=200.0, gradient_us=10.0, grouped_gemm=True,
    ),
    "recompute_full": replace(_TUNED, recompute="full"),
    "offload": replace(_TUNED, offload_mib=160, host_link_gb_per_s=25),
    "allocator": replace(_TUNED, retries_per_step=4, free_us=500, malloc_us=900, reserved_frac=0.97),
    "deepep": Knobs(dispatcher="deepep", dispatch_us=350, peer_late_us=40),
    "hybridep": Knobs(dispatcher="hybridep", dispatch_us=350, peer_late_us=40),
    "two_walls": Knobs(dispatch_us=230, recompute="full", microbatch_count=2),
    "graphs": replace(_GRAPHED, graph_attention=True, graph_router=True),
    "graphs_lost": replace(_GRAPHED, seed=1),
    "pipeline": replace(_TUNED, pipeline_us=60, pipeline_bubble_us=4000, microbatch_count=2),
}  # fmt: skip
