"""The causes that are scored, each with the row it has to be found in, by the definitions of the measures.

Rows were written down from those definitions and from what the simulator does, not from what was found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bench.compare_score.cause import Cause, Change, from_nothing, longer, switched, times
from bench.compare_score.sides import Side
from bench.simulate.kernels import GPUS
from bench.simulate.knobs import Knobs

_TUNED: Final = Knobs(
    microbatch_count=1,
    layer_count=3,
    dispatch_us=25.0,
    peer_late_us=1.0,
    gradient_us=40.0,
    data_stall_ms=0.0,
    python_us=2.0,
)
_DEEPEP: Final = replace(_TUNED, dispatcher="deepep", dispatch_us=60.0, peer_late_us=5.0)
_SLICED: Final = replace(
    _TUNED, tensor_parallel_us=12.0, pipeline_us=20.0, pipeline_bubble_us=100.0, context_parallel_us=60.0
)
_SMALL: Final = replace(
    _TUNED, attention_us=40.0, dense_gemm_us=60.0, expert_gemm_us=100.0, small_kernel_us=6.0, head_us=80.0,
    optimizer_us=150.0, dispatch_us=8.0, gradient_us=10.0, python_us=0.8, api_us=1.8, token_sync=False,
)  # fmt: skip
_HOST: Final = replace(
    _SMALL, gpu="GB200", attention_us=50.0, expert_gemm_us=120.0, python_us=12.0, api_us=4.0
)
"""Launches come later than the GPU works, before almost every kernel."""
_COUNTS: Final = replace(_HOST, python_us=2.0, token_sync=True, sync_return_us=30.0)
_STEPS: Final = replace(_TUNED, token_sync=False, end_of_step="read_back")
"""The host is not ahead when a step begins."""
_GRAPHS: Final = replace(
    _SMALL, gpu="GB200", api_us=2.0, graph_attention=True, graph_router=True, graph_preprocess=True
)
_HEAVY: Final = frozenset({"compute.grouped_gemm", "compute.gemm", "compute.attention"})
_PERMUTES: Final = ("permute", "unpermute", "unpermute_bwd", "sort_chunks", "row_id_map")
COMPUTE_KERNELS: Final = (
    "norm_fwd", "norm_bwd", "norm_bwd_finalize", "rope_fwd", "rope_bwd", "attention_bwd_dot", "add",
    "topk_fwd", "topk_bwd", "aux_loss_fwd", "aux_loss_bwd", "multihot", *_PERMUTES, "activation_fwd",
    "activation_bwd", "embedding_fwd", "embedding_bwd", "loss_softmax", "loss_fwd", "loss_bwd", "l2norm",
    "l2norm_cleanup", "adam", "attention_fwd", "attention_bwd", "gemm_fwd", "gemm_dgrad", "gemm_wgrad",
    "expert_gemm_fwd",
    "expert_gemm_dgrad", "expert_gemm_wgrad",
)  # fmt: skip


def _fewer_tiles(side: Side, strength: float) -> tuple[Side, Side]:
    """As many tiles for the experts as SMs, and fewer by 1 + strength."""
    sm_count = GPUS[side.knobs.gpu].sm_count
    full, fewer = (
        replace(side, knobs=replace(side.knobs, expert_tile_count=round(sm_count / by)))
        for by in (1, 1 + strength)
    )
    return full, fewer


def _retries(side: Side, strength: float) -> tuple[Side, Side]:
    """Memory given back and taken again once in a third of the layers, in calls of this length."""
    knobs = side.knobs
    often = knobs.layer_count * knobs.microbatch_count / 3
    short = replace(knobs, retries_per_step=often, free_us=20 * strength, malloc_us=30 * strength)
    return side, replace(side, knobs=short)


def _cause(
    name: str,
    rows: str | frozenset[str],
    shape: str,
    change: Change,
    because: str = "",
    ranges: str = "",
    most: float = 0.3,
) -> Cause:
    where = frozenset({rows}) if isinstance(rows, str) else rows
    return Cause(name, where, because, shape, SHAPES[shape], change, ranges, most)


SHAPES: Final = {
    "tuned": _TUNED,
    "DeepEP": _DEEPEP,
    "sliced": _SLICED,
    "small kernels": _SMALL,
    "late launches": _HOST,
    "token counts": _COUNTS,
    "waits at steps": _STEPS,
    "graphs": _GRAPHS,
}

CAUSES: Final = (
    _cause("dense GEMMs slower", "compute.gemm", "tuned", times("dense_gemm_us")),
    _cause("grouped GEMMs slower", "compute.grouped_gemm", "tuned", times("expert_gemm_us")),
    _cause("attention slower", "compute.attention", "tuned", times("attention_us")),
    _cause("permutes slower", "compute.permute", "tuned", longer(*_PERMUTES)),
    _cause("norms slower", "compute.norm", "tuned", longer("norm_fwd", "norm_bwd", "norm_bwd_finalize")),
    _cause("activations slower", "compute.activation", "tuned", longer("activation_fwd", "activation_bwd")),
    _cause("optimizer slower", "compute.optimizer", "tuned", times("optimizer_us")),
    _cause(
        "clocks throttled", _HEAVY, "tuned", longer(*COMPUTE_KERNELS),
        "every class grows by the same part, so the largest of the run comes first",
    ),
    _cause("smaller expert grids", "compute.grouped_gemm", "tuned", _fewer_tiles),
    _cause(
        "core attention recomputed", "compute.attention", "tuned",
        switched("recompute", "none", "core_attn", "attention_us", 10.0), most=0.2,
    ),
    _cause(
        "slower links between experts", frozenset({"exposed_comm.ep_dispatch", "exposed_comm.ep_combine"}),
        "tuned", times("dispatch_us"), "as much travels back as goes out",
    ),
    _cause(
        "gradients no longer overlapped",
        frozenset({"exposed_comm.dp_reduce_scatter", "exposed_comm.dp_all_gather"}), "tuned",
        switched("gradient_overlap", True, False, "gradient_us", 5.0),
        "gradients go out and parameters come back, as many bytes",
    ),
    _cause(
        "activations offloaded", frozenset({"exposed_copy.memcpy_d2h", "exposed_copy.memcpy_h2d"}), "tuned",
        from_nothing("offload_mib", 10.0), "they go out and come back; which way waits hangs on the layers",
    ),
    _cause("norm's all-reduce late", "exposed_comm.all_reduce", "tuned", longer("nccl_all_reduce")),
    _cause("allocator retries", "launch_starved.allocator", "tuned", _retries),
    _cause("DeepEP dispatch slower", "exposed_comm.ep_dispatch", "DeepEP", longer("deepep_dispatch")),
    _cause("peers late", "exposed_comm.ep_control", "DeepEP", times("peer_late_us")),
    _cause(
        "slower links of tensor parallelism", frozenset({"exposed_comm.tp", "exposed_comm.other_comm"}),
        "sliced", times("tensor_parallel_us"), "tp only with evidence, and no range or group says it here",
    ),
    _cause(
        "late pipeline stage", frozenset({"exposed_comm.pp_p2p", "exposed_comm.sendrecv_unresolved"}),
        "sliced", times("pipeline_bubble_us"), "the kernel's name says SendRecv, and no range or group more",
    ),
    _cause(
        "slower context exchange", frozenset({"exposed_comm.cp", "exposed_comm.sendrecv_unresolved"}),
        "sliced", times("context_parallel_us"), "the kernel's name says SendRecv, and no range or group more",
    ),
    _cause(
        "wider gaps between kernels", frozenset({"launch_latency.kernel_gap", "dependency_stalled"}),
        "small kernels", times("kernel_gap_us"), "a gap beyond 5 us is called a stall",
    ),
    _cause("Python slower", "launch_starved.python", "late launches", times("python_us")),
    _cause("launch calls slower", "launch_starved.launch", "late launches", times("api_us")),
    _cause(
        "token counts read slower", "launch_starved.token_count_sync", "token counts", times("sync_return_us")
    ),
    _cause(
        "garbage collected in layers", "launch_starved.gc", "waits at steps",
        from_nothing("gc_pause_ms", 0.1, gc_per_layer_frac=1.0), ranges="layers",
    ),
    _cause(
        "data loader late", "launch_starved.data", "waits at steps", from_nothing("data_stall_ms", 0.1),
        ranges="steps",
    ),
    _cause(
        "graphs lost",
        frozenset({"launch_starved.python", "launch_starved.launch", "launch_latency.kernel_gap"}), "graphs",
        switched("graph_attention", True, False, "python_us", 0.4),
        "every kernel has a launch again, Python before it, and a gap that graphs shrink; which is longest "
        "is the run's",
    ),
)  # fmt: skip
"""Of each its name, its first row, its base run, what changes, and why more than one row may come first."""

CAUSE: Final = {cause.name: cause for cause in CAUSES}
