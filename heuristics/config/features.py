"""Features that a configuration switches on, each told by one or several knobs. None is unknown."""

import re
from typing import Final

from heuristics.config.about import Routing
from heuristics.config.logic import all_of, any_of, negated
from traces.settings.settings import KnobView, Settings

FLEX: Final = ("deepep", "hybridep", "ncclep")
"""Backends of the flex dispatcher."""
_NO_FLEX: Final = ("alltoall", "allgather")
_SHAPE: Final = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads")
GRAPH_MODULES: Final = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba")
"""What graphs of a layer may hold by name; no name at all is the whole layer."""


class Features(KnobView):
    """Settings as the framework has them. `written`: as they were configured, before it changed any."""

    def __init__(self, settings: Settings, written: Settings) -> None:
        super().__init__(settings)
        self.written = written
        self.told: dict[str, object] = {}
        """Facts that were asked for before, by name: hundreds of rules ask for the same few."""
        self.held: dict[str, bool | None] = {}
        """Conditions that were, by text."""

    def moe(self) -> bool | None:
        """Whether the model has experts to choose from."""
        return self.above("num_moe_experts", 1)

    @property
    def is_whole(self) -> bool:
        """Whether a whole model is described: its layers, widths and heads."""
        return all(map(self.known, _SHAPE))

    @property
    def dense_layers(self) -> bool | None:
        """Whether some layers have no experts: a frequency above 1, or a pattern with a zero in it."""
        knob = "moe_layer_freq"
        value = self.value(knob)
        if isinstance(value, tuple):
            return 0 in value
        if isinstance(value, str) and not value.isdigit():
            return "0" in re.findall(r"\d+", value)
        return None if not self.known(knob) else value is not None and int(value) > 1

    @property
    def shared_experts(self) -> bool | None:
        """Whether every token also goes to shared experts."""
        return self.on("moe_shared_expert_intermediate_size")

    @property
    def may_overlap_shared(self) -> bool:
        """Whether shared-expert overlap may be on: it is, or the model is not known to lack shared experts.

        A configuration that has the number of experts, and no size of a shared one, builds none.
        """
        written = self.shared_experts is None and not self.known("num_moe_experts")
        return bool(self.shared_overlap or self.shared_experts or written)

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
        if self.settings.framework == "megatron_lm" or not self.group(section):
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
        """One graph for the whole iteration: an implementation since 0.18, before a module of local."""
        impl, modules = self.graph_impl, self.graph_modules
        if impl == "local":
            return None if modules is None else "full_iteration" in modules
        return None if impl is None else impl == "full_iteration"

    @property
    def graph_parts(self) -> tuple[str, ...] | None:
        """Modules that graphs of a layer name; none where they hold all of it, or the iteration.

        Local graphs cannot tell router and preprocess apart: Megatron-Core names both where one is named.
        """
        whole, modules = self.full_iteration, self.graph_modules
        if whole or self.graph_impl == "none":
            return ()
        if whole is None or modules is None:
            return None
        router = ("moe_router", "moe_preprocess")
        both = self.graph_impl == "local" and set(router) & set(modules)
        return tuple(dict.fromkeys((*modules, *router))) if both else modules

    @property
    def captured(self) -> tuple[str, ...] | None:
        """Parts of a layer that graphs hold, named or not."""
        if self.graph_impl == "none":
            return ()
        return GRAPH_MODULES if self.full_iteration or self.graph_parts == () else self.graph_parts

    @property
    def graphed_wgrad(self) -> bool | None:
        """Whether modules of graphs hold weight gradients: attention, or a shared expert in the router.

        Both frameworks look at the names alone (Megatron-LM, training/arguments.py; Megatron-Bridge,
        training/comm_overlap.py).
        """
        named = self.graph_modules
        if named is None:
            return None
        in_router = all_of("moe_router" in named, self.shared_experts, negated(self.shared_overlap))
        return any_of("attn" in named, in_router)

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
