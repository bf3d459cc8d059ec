"""A CUDA-graph setting and what it may clash with, as Megatron-Core checks it. None is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from heuristics.config.logic import all_of, negated
from heuristics.guides.facts import is_sync_free
from heuristics.guides.recompute_modules import has_dense_layers, has_shared_experts
from heuristics.run.run import Run

Impl = Literal["none", "local", "transformer_engine", "full_iteration"]

MODULES: Final = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba")
"""What one graph per layer may capture; no module at all captures the whole layer."""


@dataclass(frozen=True, slots=True)
class GraphConfig:
    """A setting: `impl` and `modules`, and what else of the configuration they depend on.

    `drop_pad`: tokens are dropped and experts padded to capacity. `count_copies`: the dispatcher copies token
    counts to the host before it dispatches. `offload_modules`: of fine-grained activation offload, empty
    without. `graph_register_off`: NCCL_GRAPH_REGISTER=0. `padded_sequences`: packed ones are padded to the
    longest, and their boundaries too.
    """

    impl: Impl = "none"
    modules: tuple[str, ...] = ()
    core_version: str | None = None
    te_version: str | None = None
    bridge: bool = False
    moe: bool | None = None
    dense_layers: bool | None = None
    mamba_layers: bool | None = None
    drop_pad: bool | None = None
    count_copies: bool | None = None
    sync_free: bool | None = None
    static_shapes: bool | None = None
    packed_sequences: bool | None = None
    padded_sequences: bool | None = None
    ep_overlap: bool | None = None
    shared_expert_in_router: bool | None = None
    delay_wgrad: bool | None = None
    wgrad_fusion: bool | None = None
    attention_bias: bool | None = None
    full_recompute: bool | None = None
    recompute_modules: tuple[str, ...] | None = None
    attention_dropout: bool | None = None
    hidden_dropout: bool | None = None
    input_jitter: bool | None = None
    cpu_offloading: bool | None = None
    offload_modules: tuple[str, ...] | None = None
    warmup_steps: int | None = None
    offloads_in_flight: int | None = None
    te_rng_tracker: bool | None = None
    expandable_segments: bool | None = None
    graph_register_off: bool | None = None
    nan_checks: bool | None = None
    hybrid_cp: bool | None = None
    mfsdp_v2: bool | None = None
    gtp_on_blackwell: bool | None = None
    node_priority: bool | None = None

    @property
    def whole_layer(self) -> bool:
        """Per-layer graphs without any module: the whole layer."""
        return self.impl in ("local", "transformer_engine") and not self.modules

    def captures(self, module: str) -> bool:
        """Whether the graphs hold this part of a layer."""
        return self.impl == "full_iteration" or self.whole_layer or module in self.modules

    def recomputes(self, label: str) -> bool | None:
        """Whether selective recompute has this label."""
        return None if self.recompute_modules is None else label in self.recompute_modules


def graph_config(run: Run, impl: Impl, modules: tuple[str, ...]) -> GraphConfig:
    """A setting on a run: what the trace shows, what was given and what is configured, the rest unknown.

    Left out is what a fix sets together with its graphs: the tracker of random numbers, NaN checks, NCCL's
    registration.
    """
    shown, given = run.active, run.given
    drop_pad = None if given.routing is None else given.routing == "drop_pad"
    padded_alltoall = shown.dispatcher == "alltoall" and given.router_padding
    return GraphConfig(
        impl=impl,
        modules=modules,
        core_version=given.core_version,
        te_version=given.te_version,
        bridge=given.bridge_version is not None,
        moe=shown.moe,
        drop_pad=drop_pad,
        count_copies=padded_alltoall if shown.dispatcher != "unknown" else None,
        sync_free=is_sync_free(run),
        packed_sequences=given.packed_sequences,
        ep_overlap=shown.ep_overlap,
        full_recompute=shown.recompute_full,
        recompute_modules=shown.recompute_modules,
        dense_layers=has_dense_layers(run),
        shared_expert_in_router=all_of(
            has_shared_experts(run), negated(run.config.on("moe_shared_expert_overlap"))
        ),
        delay_wgrad=run.config.overlap("delay_wgrad_compute"),
        wgrad_fusion=run.config.on("gradient_accumulation_fusion"),
        attention_bias=run.config.on("add_qkv_bias", "add_bias_linear"),
        attention_dropout=run.config.on("attention_dropout"),
        hidden_dropout=run.config.on("hidden_dropout"),
        input_jitter=run.config.on("moe_input_jitter_eps"),
        cpu_offloading=run.config.on("cpu_offloading"),
        mfsdp_v2=run.config.second_fsdp,
    )
