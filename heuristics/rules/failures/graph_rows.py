"""CUDA graphs: failures that no rule of a configuration tells."""

from __future__ import annotations

from typing import Final

from heuristics.rules.failures.failure import Row, Seen, refused, said
from traces.settings.settings import Settings
from traces.training_log.log import TrainingLog

_ROUTER: Final = ("moe_router", "moe_preprocess")


def _illegal_access(log: TrainingLog, settings: Settings) -> Seen | None:
    """Graphs with expandable segments: a known cause, where the configuration does not rule it out."""
    message = log.first("illegal-access")
    graphs = settings.value("cuda_graph_impl") not in (None, "none") or log.first(
        "graph-captured", "graph-capture-begins"
    )
    segments = settings.value("env.PYTORCH_CUDA_ALLOC_CONF")
    ruled_out = (isinstance(segments, str) and "expandable_segments:True" not in segments) or settings.value(
        "env.NCCL_GRAPH_REGISTER"
    ) == "0"
    return Seen(message.line) if message and graphs and not ruled_out else None


GRAPH_ROWS: Final[tuple[Row, ...]] = (
    Row(
        "graph-illegal-access",
        "cuda_graphs",
        "failed",
        "an illegal memory access with CUDA graphs: expandable segments while NCCL registers graph buffers "
        "is the known cause",
        "PYTORCH_CUDA_ALLOC_CONF holds expandable_segments:True, NCCL_GRAPH_REGISTER is not 0; else "
        "CUDA_LAUNCH_BLOCKING=1 without graphs",
        "NCCL_GRAPH_REGISTER=0",
        "CFG-10",
        _illegal_access,
        {"env.NCCL_GRAPH_REGISTER": "0"},
        "Megatron-LM, megatron/core/transformer/cuda_graphs.py at d98e8a64",
    ),
    refused(
        "graph-two-spellings",
        "cuda_graphs",
        "both the old and the new name of the captured modules are set",
        "cuda_graph_scope and cuda_graph_modules",
        "keep cuda_graph_modules, the name from Megatron-Core 0.18 on",
        "CFG-13",
    ),
    refused(
        "graph-packed-energon",
        "cuda_graphs",
        "Energon's native packing changes shapes from step to step, and a graph replays fixed ones",
        "packing_buffer_size of the data set, and cuda_graph_impl",
        "no graphs, or an unpacked data path",
        "CFG-14",
        {"cuda_graph_impl": "none"},
    ),
    Row(
        "graph-nothing-captured",
        "cuda_graphs",
        "skipped",
        "graphs are on and no layer could be captured: every step runs eagerly",
        "no cudaGraphLaunch in a trace; cuda_graph_modules against the layers the model has",
        "name modules that the model has: moe_router and moe_preprocess, attn",
        "HST-3",
        said("graph-nothing-captured"),
        {"cuda_graph_modules": _ROUTER},
    ),
)
