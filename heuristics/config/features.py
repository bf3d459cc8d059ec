"""Features that a configuration switches on, each told by one or several knobs, else by the
trace.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from operator import contains, eq, gt
from typing import Any, Final

from heuristics.config.about import Routing
from heuristics.config.logic import each_once, first_known, negated
from heuristics.config.observed import Observed
from traces.missing import of_known
from traces.settings.knobs import CP, EP, ETP, PP, TP
from traces.settings.settings import KnobView, Settings
from traces.texts import Texts

FLEX: Final = ("deepep", "hybridep", "ncclep")
"""Backends of the flex dispatcher."""
_SHAPE: Final = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads")
GRAPH_MODULES: Final = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba")
"""What graphs of a layer may hold by name; no name at all is the whole layer."""


TRAFFIC: Final = {
    EP: "ep_active",
    TP: "tp_active",
    CP: "cp_active",
    PP: "pp_active",
}
"""Parallel size -> the field of `Observed` that shows it: ranks send each other what only it
sends."""


def told(of: Callable[[Any], object]) -> Any:
    """A question of one line, answered once."""
    return cached_property(of)


class Features(KnobView):
    """Settings as the framework has them. `written`: as they were configured, before it changed
    any.

    `observed`: what the trace shows, where settings tell nothing.
    """

    def __init__(self, settings: Settings, written: Settings, observed: Observed) -> None:
        super().__init__(settings)
        self.written, self.observed = written, observed
        self.told = dict[str, object]()
        """Facts that were asked for before, by name: hundreds of rules ask for the same few."""
        self.held = dict[str, bool | None]()
        """Conditions that were, by text."""

    @cached_property
    def active(self) -> Observed:
        """What runs as far as is known: what was observed, filled up by what is configured.

        A configuration only asks; a recording shows. So the trace outweighs files here, and an
        option both.
        """
        seen, known = self.observed, dict[str, object]()
        for name, value in _configured(self).items():
            if value is not None and getattr(seen, name) in (None, "unknown"):
                known[name] = value
        return replace(seen, **known)  # type: ignore[arg-type]

    @cached_property
    def refuted(self) -> Texts:
        """Parallel sizes that are configured as 1 while their traffic runs: that is another run's
        size.

        Not where another dimension may send the same: ranks that share an expert exchange tokens,
        but never by a plain all-to-all; context parallelism sends around a ring, or by its own
        all-to-all.
        """
        sizes = {knob: super(Features, self).size(knob) for knob in (*TRAFFIC, ETP)}
        wide = {knob for knob, size in sizes.items() if (size or 1) > 1}
        shared = bool(wide & ({ETP} if self.positive(ETP) else {TP}))
        exchanged = CP in wide and "a2a" in str(self.value("cp_comm_type"))
        explained = {
            TP: shared,
            EP: exchanged or (shared and self.observed.dispatcher != "alltoall"),
            PP: CP in wide,
            CP: PP in wide,
        }
        return tuple(
            knob
            for knob, field in TRAFFIC.items()
            if getattr(self.observed, field) and sizes[knob] == 1 and not explained[knob]
        )

    def size(self, knob: str) -> int | None:
        """Ranks of a parallel dimension; None where the trace refutes a file. An option outweighs
        both.
        """
        if knob in self.refuted and not self.settings.said(knob).startswith("--"):
            return None
        return super().size(knob)

    is_whole: bool = told(lambda view: all(map(view.known, _SHAPE)))
    """Whether a whole model is described: its layers, widths and heads."""

    # Experts.

    def moe(self) -> bool | None:
        """Whether the model has experts to choose from.

        A model of known sizes that says nothing of experts has none, by Megatron-Core's default.
        """
        by_name = self.on("launcher.sparse")
        known = first_known(self.above("num_moe_experts", 1), by_name, self.observed.moe)
        of_experts = any(
            "expert" in knob or knob.startswith("moe_") for knob in self.written.by_knob
        )
        if known is None and not of_experts and self.is_whole:
            return False
        return known

    @property
    def configured_dense_layers(self) -> bool | None:
        """Whether some layers have no experts: a frequency above 1, or a pattern with a zero in
        it.
        """
        knob = "moe_layer_freq"
        value = self.value(knob)
        if isinstance(value, tuple):
            return 0 in value
        if not self.known(knob):
            return None
        return value is not None and int(value) > 1

    shared_overlap: bool | None = told(lambda view: view.on("moe_shared_expert_overlap"))

    @property
    def dispatcher(self) -> str | None:
        """alltoall, allgather, or the backend of flex; `flex` where its backend is unknown."""
        kind = self.word("moe_token_dispatcher_type")
        if kind != "flex":
            if kind in ("alltoall", "allgather"):
                return kind
            return None
        backend = self.word("moe_flex_dispatcher_backend")
        if backend is None and self.on("moe_enable_deepep"):
            return "deepep"
        if backend in FLEX:
            return backend
        return "flex"

    @property
    def configured_or_seen_dispatcher(self) -> str | None:
        seen = self.observed.dispatcher
        return self.dispatcher or (None if seen == "unknown" else seen)

    flex: bool | None = told(lambda view: view.one_of("moe_token_dispatcher_type", "flex"))

    @property
    def expert_parallel(self) -> bool | None:
        """Whether experts are spread over ranks: by EP, else by a dispatcher that moves tokens."""
        if (size := self.size(EP)) is not None:
            return size > 1
        if self.observed.moe is False or self.observed.dispatcher == "none":
            return False
        return self.dispatcher in ("alltoall", *FLEX) or None

    @property
    def configured_routing(self) -> Routing | None:
        """How tokens are routed. Forced balance comes first: it is what a benchmark measures."""
        forced = self.on("moe_router_force_load_balancing")
        if forced:
            return "force_balance"
        capacity = self.on("moe_expert_capacity_factor")
        if capacity and self.on("moe_pad_expert_input_to_capacity"):
            return "drop_pad"
        if capacity is False and forced is False:
            return "dropless"
        return None

    router_padding: bool | None = told(
        lambda view: view.any_on(
            "moe_router_padding_for_quantization", "moe_router_padding_for_fp8"
        )
    )
    te_op_fuser: bool | None = told(lambda view: view.on("use_transformer_engine_op_fuser"))

    # Cuts and overlaps: by sizes, else by their traffic.

    pipeline_parallel: bool | None = told(
        lambda view: first_known(of_known(gt, view.size(PP), 1), view.observed.pp_active)
    )
    tensor_parallel: bool | None = told(
        lambda view: first_known(of_known(gt, view.size(TP), 1), view.observed.tp_active)
    )

    def overlap(self, name: str) -> bool | None:
        """A switch of overlap: the model's, else of Bridge's comm_overlap, else of the DDP
        wrapper.
        """
        if self.known(name):
            return self.on(name)
        return self.on(f"comm_overlap.{name}", f"ddp.{name}")

    def _expert_overlap(self, name: str) -> bool | None:
        """A switch of EP overlap; Bridge's comm_overlap, where there is one, wins, and is off
        unless set.

        Source: Megatron-Bridge, training/comm_overlap.py, CommOverlapConfig.setup.
        """
        section = "comm_overlap."
        if self.settings.framework == "megatron_lm" or not self.group(section):
            return self.on(name)
        own = self.on(f"{section}{name}")
        if own is None and self.known(name):
            return False
        return own

    ep_overlap: bool | None = told(
        lambda view: first_known(
            view._expert_overlap("overlap_moe_expert_parallel_comm"), view.observed.ep_overlap
        )
    )
    delayed_wgrad: bool | None = told(lambda view: view._expert_overlap("delay_wgrad_compute"))

    # CUDA graphs.

    @property
    def graph_impl(self) -> str | None:
        """CUDA-graph implementation; `none` where it is off or the trace replays none."""
        impl = self.word("cuda_graph_impl")
        if impl not in (None, "none"):
            return impl
        if self.on("enable_cuda_graph"):
            return "local"
        if self.on("external_cuda_graph"):
            return "transformer_engine"
        if self.known("cuda_graph_impl") or self.observed.graph_frac == 0:
            return "none"
        return None

    graph_modules: Texts | None = told(
        lambda view: (
            (names := view.names("cuda_graph_modules")) and tuple(n for n in names if n != "full")
        )
    )
    """What graphs hold; nothing: whole layers, which `full` is an older word for."""

    @property
    def full_iteration(self) -> bool | None:
        """One graph for the whole iteration: an implementation since 0.18, before a module of
        local.
        """
        impl, modules = self.graph_impl, self.graph_modules
        if impl == "local":
            return of_known(contains, modules, "full_iteration")
        return of_known(eq, impl, "full_iteration")

    @property
    def graph_parts(self) -> Texts | None:
        """Modules that graphs of a layer name; none where they hold all of it, or the iteration.

        Local graphs cannot tell router and preprocess apart: Megatron-Core names both where one is
        named.
        """
        whole, modules = self.full_iteration, self.graph_modules
        if whole or self.graph_impl == "none":
            return ()
        if whole is None or modules is None:
            return None
        router = ("moe_router", "moe_preprocess")
        if self.graph_impl == "local" and set(router) & set(modules):
            return each_once((*modules, *router))
        return modules

    @property
    def captured(self) -> Texts | None:
        """Parts of a layer that graphs hold, named or not."""
        if self.graph_impl == "none":
            return ()
        if self.full_iteration or self.graph_parts == ():
            return GRAPH_MODULES
        return self.graph_parts

    # Recompute and offload.

    full_recompute: bool | None = told(
        lambda view: first_known(
            view.one_of("recompute_granularity", "full"), view.observed.recompute_full
        )
    )

    def recompute_modules(self) -> Texts | None:
        """What selective recompute runs again; nothing under another granularity. Null is
        `core_attn`.

        The older `moe_layer_recompute` adds `moe`, and makes recompute selective where it was off.
        """
        granularity = "recompute_granularity"
        older = self.on("moe_layer_recompute") is True
        if not self.known(granularity):
            return self.observed.recompute_modules or None
        if self.value(granularity) != "selective" and not (older and self.null(granularity)):
            return ()
        modules = (
            ("core_attn",) if self.null("recompute_modules") else self.names("recompute_modules")
        )
        if modules is None:
            return self.observed.recompute_modules or None
        if not older or "moe" in modules:
            return modules
        return (*modules, "moe")

    def offloads(self) -> Texts | None:
        """What fine-grained offload moves; nothing while it is off."""
        switched = self.on("fine_grained_activation_offloading")
        if switched:
            return self.names("offload_modules")
        if switched is None:
            return None
        return ()

    # The optimizer, and where processes run.

    distributed_optimizer: bool | None = told(
        lambda view: view.on("ddp.use_megatron_fsdp") or view.on("ddp.use_distributed_optimizer")
    )
    """As Megatron-FSDP's always is."""

    @property
    def second_fsdp(self) -> bool | None:
        """Whether Megatron-FSDP 2 shards the model; its first version is the default."""
        version = self.value("ddp.megatron_fsdp_version")
        if version is not None:
            return version == 2
        return negated(self.on("ddp.use_megatron_fsdp") is False or None)

    cpu_bound_to_numa: bool | None = told(lambda view: view.on("launcher.numa_binding"))


def _configured(config: Features) -> Mapping[str, object]:
    """By field of what is observed; of whole layers nothing tells which modules are recomputed."""
    full = config.full_recompute
    return {
        "moe": config.moe(),
        "dispatcher": None if config.dispatcher == "flex" else config.dispatcher,
        "ep_overlap": config.ep_overlap,
        "tp_overlap": config.overlap("tp_comm_overlap"),
        "graph_frac": 0.0 if config.graph_impl == "none" else None,
        "recompute_full": full,
        "recompute_modules": None if full else config.recompute_modules(),
        "offload": config.on("fine_grained_activation_offloading") or None,
        "grouped_gemm": config.on("moe_grouped_gemm"),
        "permute_fused": config.on("moe_permute_fusion"),
    }
