"""Features that a configuration switches on, each told by one or several knobs. None is unknown."""

from __future__ import annotations

from typing import Final

from heuristics.config.knobs import KnobView
from heuristics.config.logic import negated
from heuristics.run.given import Routing

FLEX: Final = ("deepep", "hybridep", "ncclep")
"""Backends of the flex dispatcher."""
_NO_FLEX: Final = ("alltoall", "allgather")


class Features(KnobView):
    """Questions that need knobs alone."""

    def moe(self) -> bool | None:
        """Whether the model has experts to choose from."""
        return self.above("num_moe_experts", 1)

    @property
    def dispatcher(self) -> str | None:
        """alltoall, allgather, or the backend of flex; `flex` where its backend is unknown."""
        kind = self.word("moe_token_dispatcher_type")
        if kind != "flex":
            return kind if kind in _NO_FLEX else None
        backend = self.word("moe_flex_dispatcher_backend")
        if backend is None and self.on("moe_enable_deepep"):
            return "deepep"
        return backend if backend in FLEX else "flex"

    @property
    def flex(self) -> bool | None:
        """Whether the flex dispatcher is configured."""
        return self.one_of("moe_token_dispatcher_type", "flex")

    def overlap(self, name: str) -> bool | None:
        """A switch of overlap: the model's, else of Bridge's comm_overlap, else of the DDP wrapper."""
        return self.on(name) if self.known(name) else self.on(f"comm_overlap.{name}", f"ddp.{name}")

    def expert_overlap(self, name: str) -> bool | None:
        """A switch of EP overlap; Bridge's comm_overlap, where there is one, wins, and is off unless set.

        Source: Megatron-Bridge, training/comm_overlap.py, CommOverlapConfig.setup.
        """
        section = "comm_overlap."
        configured = any(knob.startswith(section) for knob in self.settings.by_knob)
        if self.settings.framework == "megatron_lm" or not configured:
            return self.on(name)
        own = self.on(f"{section}{name}")
        return False if own is None and self.known(name) else own

    @property
    def ep_overlap(self) -> bool | None:
        """Expert all-to-all under compute."""
        return self.expert_overlap("overlap_moe_expert_parallel_comm")

    @property
    def delayed_wgrad(self) -> bool | None:
        """Weight gradients put off, to hide more of it."""
        return self.expert_overlap("delay_wgrad_compute")

    @property
    def grad_reduce_overlap(self) -> bool | None:
        """Gradients reduced under the backward."""
        return self.on("comm_overlap.overlap_grad_reduce", "ddp.overlap_grad_reduce")

    @property
    def shared_overlap(self) -> bool | None:
        """Shared experts beside the dispatch."""
        return self.on("moe_shared_expert_overlap")

    @property
    def configured_routing(self) -> Routing | None:
        """How tokens are routed. Forced balance comes first: it is what a benchmark measures."""
        forced = self.on("moe_router_force_load_balancing")
        if forced:
            return "force_balance"
        capacity = self.on("moe_expert_capacity_factor")
        if capacity and self.on("moe_pad_expert_input_to_capacity"):
            return "drop_pad"
        return "dropless" if capacity is False and forced is False else None

    @property
    def graph_impl(self) -> str | None:
        """CUDA-graph implementation; `none` where it is off, None where unknown."""
        impl = self.word("cuda_graph_impl")
        if impl not in (None, "none"):
            return impl
        if self.on("enable_cuda_graph"):
            return "local"
        if self.on("external_cuda_graph"):
            return "transformer_engine"
        return "none" if self.known("cuda_graph_impl") else None

    @property
    def graph_modules(self) -> tuple[str, ...] | None:
        """What graphs hold; nothing: whole layers, which `full` is an older word for."""
        names = self.names("cuda_graph_modules")
        return None if names is None else tuple(one for one in names if one != "full")

    @property
    def full_iteration(self) -> bool | None:
        """One graph for the whole iteration, in either spelling."""
        impl = self.graph_impl
        if impl is None or impl == "full_iteration":
            return None if impl is None else True
        return impl == "local" and "full_iteration" in (self.graph_modules or ())

    @property
    def full_recompute(self) -> bool | None:
        """Whether whole layers are recomputed."""
        return self.one_of("recompute_granularity", "full")

    def recompute_modules(self) -> tuple[str, ...] | None:
        """What selective recompute runs again; nothing under another granularity. Null is `core_attn`.

        The older `moe_layer_recompute` adds `moe`, and makes recompute selective where it was off.
        """
        granularity = "recompute_granularity"
        older = self.on("moe_layer_recompute") is True
        if not self.known(granularity):
            return None
        if self.value(granularity) != "selective" and not (older and self.null(granularity)):
            return ()
        modules = ("core_attn",) if self.null("recompute_modules") else self.names("recompute_modules")
        return modules if modules is None or not older or "moe" in modules else (*modules, "moe")

    def recomputes(self, label: str) -> bool | None:
        """Whether selective recompute has this label."""
        modules = self.recompute_modules()
        return None if modules is None else label in modules

    def offloads(self) -> tuple[str, ...] | None:
        """What fine-grained offload moves; nothing while it is off."""
        switched = self.on("fine_grained_activation_offloading")
        return self.names("offload_modules") if switched else None if switched is None else ()

    @property
    def router_padding(self) -> bool | None:
        """Whether the router pads what it sends to each expert for low precision."""
        return self.any_on("moe_router_padding_for_quantization", "moe_router_padding_for_fp8")

    @property
    def te_op_fuser(self) -> bool | None:
        """Whether Transformer Engine's op fuser is on."""
        return self.on("use_transformer_engine_op_fuser")

    @property
    def cpu_bound_to_numa(self) -> bool | None:
        """Whether ranks are bound to the CPUs near their GPU."""
        return self.on("launcher.numa_binding")

    @property
    def distributed_optimizer(self) -> bool | None:
        """Whether the optimizer is distributed, as Megatron-FSDP's always is."""
        return True if self.on("ddp.use_megatron_fsdp") else self.on("ddp.use_distributed_optimizer")

    @property
    def second_fsdp(self) -> bool | None:
        """Whether Megatron-FSDP 2 shards the model; its first version is the default."""
        version = self.value("ddp.megatron_fsdp_version")
        if version is not None:
            return version == 2
        return negated(self.on("ddp.use_megatron_fsdp") is False or None)

    @property
    def layer_offload(self) -> bool | None:
        """Whether whole layers are kept on the CPU."""
        return self.on("cpu_offloading")
