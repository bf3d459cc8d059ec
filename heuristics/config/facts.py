"""Names that conditions may use beside knobs: facts derived from several knobs, versions, the GPU."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from packaging.version import Version

from heuristics.config.view import Config
from traces.settings.knobs import CP, EP, ETP, PP, TP


@dataclass(frozen=True, slots=True)
class Fact:
    """A name. `of`: its value for a configuration, or for a run in tables of runs; None where unknown.

    `knobs` it is made of; `option` that gives it.
    """

    of: Callable[[Any], object]
    knobs: tuple[str, ...] = ()
    option: str = ""


@cache
def version(numbers: tuple[int, ...] | None) -> Version | None:
    """A version that compares with a text such as '2.8.0'."""
    return None if numbers is None else Version(".".join(map(str, numbers)))


def _release(package: str) -> Callable[[Config], Version | None]:
    """A package's version."""
    return lambda config: version(getattr(config, package))


def _overlap(name: str) -> tuple[str, str]:
    """Knobs of a switch of EP overlap, which Bridge's section `comm_overlap` may set as well."""
    return name, f"comm_overlap.{name}"


def _graphs(config: Config) -> bool | None:
    """Whether any CUDA graphs are on."""
    return None if config.graph_impl is None else config.graph_impl != "none"


def _recompute_list(config: Config) -> tuple[str, ...] | None:
    """The list as it stands, whatever the granularity; else what the granularity means."""
    knob = "recompute_modules"
    return config.names(knob) if config.known(knob) else config.recompute_modules()


def _gather_recipe(config: Config) -> object:
    section = "mixed_precision.fp8_recipe"
    return config.value(section if config.known(section) else "fp8_recipe")


def _offload_fraction(config: Config) -> float | None:
    """Megatron-Bridge leaves it at OptimizerConfig's own default, 0."""
    known = config.known(_FRACTION) or config.framework != "megatron_bridge"
    return config.number(_FRACTION) if known else 0.0


def _muon(config: Config) -> bool | None:
    name = config.value("optimizer.optimizer")
    return "muon" in name if isinstance(name, str) else None


def _expandable_segments(config: Config) -> bool | None:
    text = config.env("PYTORCH_CUDA_ALLOC_CONF")
    return None if text is None else "expandable_segments:True" in text


def _unfused_attention(config: Config) -> bool:
    """Both frameworks choose a fused backend where nobody names another."""
    return config.one_of("attention_backend", "unfused", "local") is True


def _virtual_stages(config: Config) -> bool | None:
    """A layout text brings virtual stages where it has more stages than PP."""
    if config.value("pipeline_model_parallel_layout"):
        return None if config.vpp is None else config.vpp > 1
    unset = config.null("virtual_pipeline_model_parallel_size")
    return None if unset is None else not unset


_RECOMPUTE: Final = ("recompute_granularity", "recompute_modules", "moe_layer_recompute")
_RECIPE: Final = "mixed_precision"
"""A named recipe of Megatron-Bridge, which sets both formats."""
_GATHER: Final = ("ddp.fp8_param_gather", "fp8_param", "mixed_precision.fp8_param_gather")
_DISTRIBUTED: Final = (
    *("ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer"),
    "ddp.use_megatron_fsdp",
)
_FRACTION: Final = "optimizer.optimizer_offload_fraction"
_GRAPHS: Final = ("cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph")
_MODULES: Final = (*_GRAPHS, "cuda_graph_modules")
_WGRADS: Final = ("cuda_graph_modules", "moe_shared_expert_intermediate_size", "moe_shared_expert_overlap")
_OFFLOAD: Final = ("fine_grained_activation_offloading", "offload_modules")

FACTS: Final[Mapping[str, Fact]] = {
    # versions, framework, hardware
    "core": Fact(_release("core"), option="--core-version"),
    "bridge": Fact(_release("bridge"), option="--bridge-version"),
    "te": Fact(_release("te"), option="--te-version"),
    "torch": Fact(_release("torch"), option="--torch-version"),
    "nccl": Fact(lambda c: c.version_text("nccl"), option="--log"),
    "capability": Fact(lambda c: version(c.capability), option="--gpu-model"),
    "fp8_gpu": Fact(lambda c: c.capability is None or c.capability >= (8, 9), option="--gpu-model"),
    "framework": Fact(lambda c: c.framework, option="--config"),
    "packed": Fact(lambda c: c.packed_sequences, option="--packed-sequences"),
    "stage": Fact(lambda c: c.stage, option="--stage"),
    # sizes; a size that is null is 1, of ETP it is TP
    "tp": Fact(lambda c: c.tp, (TP,)),
    "cp": Fact(lambda c: c.cp, (CP,)),
    "pp": Fact(lambda c: c.pp, (PP,)),
    "ep": Fact(lambda c: c.ep, (EP,)),
    "etp": Fact(lambda c: c.etp, (ETP, TP)),
    "world": Fact(lambda c: c.world, ("world_size",)),
    "dp": Fact(lambda c: c.dp, ("world_size", TP, CP, PP)),
    "edp": Fact(lambda c: c.edp, ("world_size", ETP, EP, PP)),
    "virtual_stages": Fact(
        _virtual_stages, ("virtual_pipeline_model_parallel_size", "pipeline_model_parallel_layout")
    ),
    "expert_parallel": Fact(lambda c: c.expert_parallel, (EP,), "--ep"),
    "pipeline_parallel": Fact(lambda c: c.pipeline_parallel, (PP,), "--pp"),
    # features
    "moe": Fact(lambda c: c.moe(), ("num_moe_experts",)),
    "flex": Fact(
        lambda c: c.flex, ("moe_token_dispatcher_type", "moe_flex_dispatcher_backend", "moe_enable_deepep")
    ),
    "ep_overlap": Fact(lambda c: c.ep_overlap, _overlap("overlap_moe_expert_parallel_comm")),
    "delayed_wgrad": Fact(lambda c: c.delayed_wgrad, _overlap("delay_wgrad_compute")),
    "early_release": Fact(
        lambda c: c.on("ep_overlap_early_attn_memory_release") is True,
        ("ep_overlap_early_attn_memory_release",),
    ),
    "early_reduction": Fact(
        lambda c: c.grad_reduce_overlap, ("ddp.overlap_grad_reduce", "comm_overlap.overlap_grad_reduce")
    ),
    "precision": Fact(lambda c: c.precision, (_RECIPE,), "--precision"),
    "low_precision": Fact(lambda c: c.low_precision(), ("fp8", "fp4", _RECIPE), "--precision"),
    "fp8_matrices": Fact(lambda c: c.fp8(), ("fp8", _RECIPE), "--precision"),
    "full_recompute": Fact(lambda c: c.full_recompute, (_RECOMPUTE[0],)),
    "fp8_gathered": Fact(lambda c: c.any_on(*_GATHER), _GATHER),
    "gather_recipe": Fact(_gather_recipe, ("mixed_precision.fp8_recipe", "fp8_recipe")),
    "distributed_optimizer": Fact(lambda c: c.any_on(*_DISTRIBUTED), _DISTRIBUTED),
    "optimizer_offload_fraction": Fact(_offload_fraction, (_FRACTION,)),
    "muon": Fact(_muon, ("optimizer.optimizer",)),
    "expandable_segments": Fact(_expandable_segments, ("env.PYTORCH_CUDA_ALLOC_CONF",)),
    "unfused_attention": Fact(_unfused_attention, ("attention_backend",)),
    "dropless": Fact(lambda c: c.dropless, ("moe_expert_capacity_factor",), "--routing"),
    "dense_in_bridge": Fact(  # Bridge looks at the experts first, Megatron-LM at EP alone
        lambda c: c.moe() is False and c.framework == "megatron_bridge", ("num_moe_experts",)
    ),
    "dense_layers": Fact(lambda c: c.dense_layers, ("moe_layer_freq",)),
    # CUDA graphs
    "graph_impl": Fact(lambda c: c.graph_impl, _GRAPHS),
    "graphs": Fact(_graphs, _GRAPHS),
    "full_iteration": Fact(lambda c: c.full_iteration, _MODULES),
    "graph_modules": Fact(lambda c: c.graph_modules, ("cuda_graph_modules",)),
    "graph_parts": Fact(lambda c: c.graph_parts, _MODULES),
    "captured": Fact(lambda c: c.captured, _MODULES),
    "graphed_wgrad": Fact(lambda c: c.graphed_wgrad, _WGRADS),
    # lists, as the framework understands them
    "recomputed": Fact(lambda c: c.recompute_modules(), _RECOMPUTE),
    "recompute_list": Fact(_recompute_list, _RECOMPUTE),
    "offloaded": Fact(lambda c: c.offloads(), _OFFLOAD),
}
"""By name. A name has one meaning in every table."""
