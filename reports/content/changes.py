"""Kinds of change, as a replay edits the step: what each is called, and what makes its saving uncertain."""

from collections.abc import Mapping
from typing import Final

CHANGES: Final[Mapping[str, str]] = {
    "graph_attn": "attention's launches become one call",
    "graph_moe_router": "the router's launches become one call",
    "graph_moe_preprocess": "the launches of preprocessing become one call",
    "graph_scopes": "launches of attention, router and preprocessing become one call each",
    "fused_kernels": "of each row of router, permute, or norm and quantisation kernels only one is launched",
    "collection_at_edges": "each step that collected does so once, as it begins",
    "token_counts_stay": "nothing waits for token counts",
    "expert_overlap": "exchanges hide under the compute of the other microbatch, slowed as measured here",
    "faster_dispatcher": "what moves takes less time by the published factors, waiting for peers does not",
    "recompute_dropped": "recomputed stretches are gone, with their launches and collectives",
    "recompute_narrowed": "of recomputed stretches only norms and activations are left",
    "no_retries": "allocator calls after the first step are gone",
    "grouped_experts": "GEMMs of the experts in a row are one, by whole waves of blocks",
}
WIDE: Final[Mapping[str, str]] = {
    "expert_overlap": "how much of it compute can hide: record steps with it",
    "faster_dispatcher": "how much is waiting for peers: record all ranks of the expert group",
    "batches_in_time": "if workers end a quarter of the waits or all: time the loader alone",
}
"""What its two ends differ by, and what to measure to know."""
ALONE: Final = "how much of its ceiling comes true: record a run with it alone"
