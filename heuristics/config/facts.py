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

    `knobs` it is made of; `option` that gives it. `words`: the name in sentences, where it is not one itself.
    """

    of: Callable[[Any], object]
    knobs: tuple[str, ...] = ()
    option: str = ""
    words: str = ""


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
    "core": Fact(_release("core"), option="--core-version", words="Megatron-Core"),
    "bridge": Fact(_release("bridge"), option="--bridge-version", words="Megatron-Bridge"),
    "te": Fact(_release("te"), option="--te-version", words="Transformer Engine"),
    "torch": Fact(_release("torch"), option="--torch-version", words="PyTorch"),
    "nccl": Fact(lambda c: c.version_text("nccl"), option="--log", words="NCCL"),
    "capability": Fact(lambda c: version(c.capability), option="--gpu-model", words="compute capability"),
    "fp8_gpu": Fact(lambda c: c.capability is None or c.capability >= (8, 9), option="--gpu-model"),
    "framework": Fact(lambda c: c.framework, option="--config"),
    "packed": Fact(lambda c: c.packed_sequences, option="--packed-sequences"),
    "stage": Fact(lambda c: c.stage, option="--stage"),
    # sizes; a size that is null is 1, of ETP it is TP
    "tp": Fact(lambda c: c.tp, (TP,), words="TP"),
    "cp": Fact(lambda c: c.cp, (CP,), words="CP"),
    "pp": Fact(lambda c: c.pp, (PP,), words="PP"),
    "ep": Fact(lambda c: c.ep, (EP,), words="EP"),
    "etp": Fact(lambda c: c.etp, (ETP, TP), words="ETP"),
    "world": Fact(lambda c: c.world, ("world_size",), words="ranks"),
    "dp": Fact(lambda c: c.dp, ("world_size", TP, CP, PP), words="DP"),
    "edp": Fact(lambda c: c.edp, ("world_size", ETP, EP, PP), words="EDP"),
    "virtual_stages": Fact(
        _virtual_stages,
        ("virtual_pipeline_model_parallel_size", "pipeline_model_parallel_layout"),
        words="virtual stages",
    ),
    "expert_parallel": Fact(lambda c: c.expert_parallel, (EP,), "--ep", "experts over several ranks"),
    "pipeline_parallel": Fact(lambda c: c.pipeline_parallel, (PP,), "--pp", "pipeline stages"),
    # features
    "moe": Fact(lambda c: c.moe(), ("num_moe_experts",), words="several experts"),
    "flex": Fact(
        lambda c: c.flex,
        ("moe_token_dispatcher_type", "moe_flex_dispatcher_backend", "moe_enable_deepep"),
        words="flex dispatcher",
    ),
    "ep_overlap": Fact(
        lambda c: c.ep_overlap, _overlap("overlap_moe_expert_parallel_comm"), words="EP overlap"
    ),
    "delayed_wgrad": Fact(
        lambda c: c.delayed_wgrad, _overlap("delay_wgrad_compute"), words="delayed weight gradients"
    ),
    "early_release": Fact(
        lambda c: c.on("ep_overlap_early_attn_memory_release") is True,
        ("ep_overlap_early_attn_memory_release",),
        words="early release of attention's memory",
    ),
    "early_reduction": Fact(
        lambda c: c.grad_reduce_overlap,
        ("ddp.overlap_grad_reduce", "comm_overlap.overlap_grad_reduce"),
        words="overlap_grad_reduce",
    ),
    "precision": Fact(lambda c: c.precision, (_RECIPE,), "--precision", "precision"),
    "low_precision": Fact(
        lambda c: c.low_precision(), ("fp8", "fp4", _RECIPE), "--precision", "low precision"
    ),
    "fp8_matrices": Fact(lambda c: c.fp8(), ("fp8", _RECIPE), "--precision", "FP8"),
    "full_recompute": Fact(lambda c: c.full_recompute, (_RECOMPUTE[0],), words="full recompute"),
    "fp8_gathered": Fact(lambda c: c.any_on(*_GATHER), _GATHER, words="parameters gathered in FP8"),
    "gather_recipe": Fact(
        _gather_recipe, ("mixed_precision.fp8_recipe", "fp8_recipe"), words="the FP8 recipe"
    ),
    "distributed_optimizer": Fact(
        lambda c: c.any_on(*_DISTRIBUTED), _DISTRIBUTED, words="distributed optimizer"
    ),
    "optimizer_offload_fraction": Fact(_offload_fraction, (_FRACTION,)),
    "muon": Fact(_muon, ("optimizer.optimizer",), words="Muon"),
    "expandable_segments": Fact(
        _expandable_segments, ("env.PYTORCH_CUDA_ALLOC_CONF",), words="expandable segments"
    ),
    "unfused_attention": Fact(_unfused_attention, ("attention_backend",), words="unfused attention"),
    "dropless": Fact(
        lambda c: c.dropless, ("moe_expert_capacity_factor",), "--routing", "routing without dropped tokens"
    ),
    "dense_in_bridge": Fact(  # Bridge looks at the experts first, Megatron-LM at EP alone
        lambda c: c.moe() is False and c.framework == "megatron_bridge",
        ("num_moe_experts",),
        words="a dense model of Megatron-Bridge",
    ),
    "dense_layers": Fact(lambda c: c.dense_layers, ("moe_layer_freq",), words="dense layers"),
    # CUDA graphs
    "graph_impl": Fact(lambda c: c.graph_impl, _GRAPHS, words="cuda_graph_impl"),
    "graphs": Fact(_graphs, _GRAPHS, words="CUDA graphs"),
    "full_iteration": Fact(lambda c: c.full_iteration, _MODULES, words="a graph of the full iteration"),
    "graph_modules": Fact(lambda c: c.graph_modules, ("cuda_graph_modules",), words="cuda_graph_modules"),
    "graph_parts": Fact(lambda c: c.graph_parts, _MODULES, words="modules named for the graphs"),
    "captured": Fact(lambda c: c.captured, _MODULES, words="modules in the graphs"),
    "graphed_wgrad": Fact(lambda c: c.graphed_wgrad, _WGRADS, words="weight gradients in graphs"),
    # lists, as the framework understands them
    "recomputed": Fact(lambda c: c.recompute_modules(), _RECOMPUTE, words="recomputed modules"),
    "recompute_list": Fact(_recompute_list, _RECOMPUTE, words="recompute_modules"),
    "offloaded": Fact(lambda c: c.offloads(), _OFFLOAD, words="offloaded modules"),
}
"""By name. A name has one meaning in every table."""
