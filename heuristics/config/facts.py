"""Names that conditions may use beside knobs: facts derived from several knobs, versions, the GPU."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any, Final

from packaging.version import Version

from heuristics.config.about import GRAPH_KNOBS
from heuristics.config.logic import negated
from heuristics.config.view import Config
from traces.settings.knobs import CP, EP, ETP, PP, STAGE_LAYOUT, TP, VIRTUAL_STAGES


def _by_its_name(of: Any) -> object:
    """The question of a configuration that is called as the fact is."""
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Fact:
    """A name. `of`: its value for a configuration, or for a run in tables of runs; None where unknown.

    `knobs` it is made of; `option` that gives it.
    """

    of: Callable[[Any], object] = _by_its_name
    knobs: tuple[str, ...] = ()
    option: str = ""


@cache
def version(numbers: tuple[int, ...] | None) -> Version | None:
    """A version that compares with a text such as '2.8.0'."""
    return None if numbers is None else Version(".".join(map(str, numbers)))


def _release(option: str) -> Fact:
    package = option.removeprefix("--").removesuffix("-version")
    return Fact(lambda config: version(getattr(config, package)), option=option)


def _graphs(config: Config) -> bool | None:
    return None if config.graph_impl is None else config.graph_impl != "none"


def _recompute_list(config: Config) -> tuple[str, ...] | None:
    """The list as it stands, whatever the granularity; else what the granularity means.

    The older `moe_layer_recompute` adds `moe` to it.
    """
    knob = "recompute_modules"
    listed = config.names(knob) if config.known(knob) else config.recompute_modules()
    is_added = listed is not None and "moe" not in listed and config.on("moe_layer_recompute") is True
    return (*listed, "moe") if listed is not None and is_added else listed


_GATHER_RECIPE: Final = "mixed_precision.fp8_recipe"


def _gather_recipe(config: Config) -> object:
    return config.value(_GATHER_RECIPE if config.known(_GATHER_RECIPE) else "fp8_recipe")


def _offload_fraction(config: Config) -> float | None:
    """Megatron-Bridge leaves it at OptimizerConfig's own default, 0."""
    known = config.known(_FRACTION) or config.framework != "megatron_bridge"
    return config.number(_FRACTION) if known else 0.0


def _muon(config: Config) -> bool | None:
    return None if (name := config.word("optimizer.optimizer")) is None else "muon" in name


def expandable_segments(config: Config) -> bool | None:
    """As any of the allocator's variables has it; None where none of them is known."""
    told = [text for name in ALLOCATOR if (text := config.env(name)) is not None]
    return any(_EXPANDABLE in text.lower().replace(" ", "") for text in told) if told else None


def _virtual_stages(config: Config) -> bool | None:
    """A layout text brings virtual stages where it has more stages than PP."""
    if config.pp_layout:
        return None if config.vpp is None else config.vpp > 1
    return negated(config.null(VIRTUAL_STAGES))


_EXPANDABLE: Final = "expandable_segments:true"
ALLOCATOR: Final = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
"""Variables that PyTorch reads for its caching allocator: by release and by GPU."""
_RECOMPUTE: Final = ("recompute_granularity", "recompute_modules", "moe_layer_recompute")
_RECIPE: Final = "mixed_precision"
"""A named recipe of Megatron-Bridge, which sets both formats."""
_GATHER: Final = ("ddp.fp8_param_gather", "fp8_param", "mixed_precision.fp8_param_gather")
_DISTRIBUTED: Final = (
    *("ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer"),
    "ddp.use_megatron_fsdp",
)
_REDUCES: Final = ("ddp.overlap_grad_reduce", "comm_overlap.overlap_grad_reduce")
_FRACTION: Final = "optimizer.optimizer_offload_fraction"
_RELEASES_EARLY: Final = "ep_overlap_early_attn_memory_release"
_NAMED: Final = "cuda_graph_modules"
_MODULES: Final = (*GRAPH_KNOBS, _NAMED)
_FLEX: Final = ("moe_token_dispatcher_type", "moe_flex_dispatcher_backend", "moe_enable_deepep")
_OFFLOAD: Final = ("fine_grained_activation_offloading", "offload_modules")


def _switch(name: str) -> tuple[str, str]:
    """Knobs of a switch of EP overlap, which Bridge's section `comm_overlap` may set as well."""
    return name, f"comm_overlap.{name}"


_ROWS: Final[Mapping[str, Fact]] = {
    # versions, framework, hardware
    "core": _release("--core-version"),
    "bridge": _release("--bridge-version"),
    "te": _release("--te-version"),
    "torch": _release("--torch-version"),
    "nccl": Fact(lambda c: c.version_text("nccl"), option="--log"),
    "capability": Fact(lambda c: version(c.capability), option="--gpu-model"),
    "fp8_gpu": Fact(lambda c: c.capability is None or c.capability >= (8, 9), option="--gpu-model"),
    "framework": Fact(option="--config"),
    "packed": Fact(lambda c: c.packed_sequences, option="--packed-sequences"),
    "stage": Fact(option="--stage"),
    # sizes; a size that is null is 1, of ETP it is TP
    "tp": Fact(knobs=(TP,)),
    "cp": Fact(knobs=(CP,)),
    "pp": Fact(knobs=(PP,)),
    "ep": Fact(knobs=(EP,)),
    "etp": Fact(knobs=(ETP, TP)),
    "world": Fact(knobs=("world_size",)),
    "dp": Fact(knobs=("world_size", TP, CP, PP)),
    "edp": Fact(knobs=("world_size", ETP, EP, PP)),
    "virtual_stages": Fact(_virtual_stages, (VIRTUAL_STAGES, STAGE_LAYOUT)),
    "expert_parallel": Fact(knobs=(EP,), option="--ep"),
    "pipeline_parallel": Fact(knobs=(PP,), option="--pp"),
    # features
    "moe": Fact(Config.moe, ("num_moe_experts",)),
    "flex": Fact(knobs=_FLEX),
    "ep_overlap": Fact(knobs=_switch("overlap_moe_expert_parallel_comm")),
    "delayed_wgrad": Fact(knobs=_switch("delay_wgrad_compute")),
    "early_release": Fact(lambda c: c.on(_RELEASES_EARLY) is True, (_RELEASES_EARLY,)),
    "early_reduction": Fact(lambda c: c.on(*reversed(_REDUCES)), _REDUCES),
    "precision": Fact(knobs=(_RECIPE,), option="--precision"),
    "low_precision": Fact(Config.low_precision, ("fp8", "fp4", _RECIPE), "--precision"),
    "fp8_matrices": Fact(Config.fp8, ("fp8", _RECIPE), "--precision"),
    "full_recompute": Fact(knobs=_RECOMPUTE[:1]),
    "fp8_gathered": Fact(lambda c: c.any_on(*_GATHER), _GATHER),
    "gather_recipe": Fact(_gather_recipe, (_GATHER_RECIPE, "fp8_recipe")),
    "distributed_optimizer": Fact(lambda c: c.any_on(*_DISTRIBUTED), _DISTRIBUTED),
    "optimizer_offload_fraction": Fact(_offload_fraction, (_FRACTION,)),
    "muon": Fact(_muon, ("optimizer.optimizer",)),
    "expandable_segments": Fact(expandable_segments, tuple(f"env.{name}" for name in ALLOCATOR)),
    # both frameworks choose a fused backend where nobody names another
    "unfused_attention": Fact(
        lambda c: c.one_of("attention_backend", "unfused", "local") is True, ("attention_backend",)
    ),
    "dropless": Fact(knobs=("moe_expert_capacity_factor",), option="--routing"),
    "dense_in_bridge": Fact(  # Bridge looks at the experts first, Megatron-LM at EP alone
        lambda c: c.moe() is False and c.framework == "megatron_bridge", ("num_moe_experts",)
    ),
    "dense_layers": Fact(knobs=("moe_layer_freq",)),
    # CUDA graphs
    "graph_impl": Fact(knobs=GRAPH_KNOBS),
    "graphs": Fact(_graphs, GRAPH_KNOBS),
    "full_iteration": Fact(knobs=_MODULES),
    "graph_modules": Fact(knobs=(_NAMED,)),
    "graph_parts": Fact(knobs=_MODULES),
    "captured": Fact(knobs=_MODULES),
    "graphed_wgrad": Fact(knobs=(_NAMED, "moe_shared_expert_intermediate_size", "moe_shared_expert_overlap")),
    # lists, as the framework understands them
    "recomputed": Fact(Config.recompute_modules, _RECOMPUTE),
    "recompute_list": Fact(_recompute_list, _RECOMPUTE),
    "offloaded": Fact(Config.offloads, _OFFLOAD),
}
FACTS: Final[Mapping[str, Fact]] = {
    name: replace(row, of=attrgetter(name)) if row.of is _by_its_name else row for name, row in _ROWS.items()
}
"""By name. A name has one meaning in every table."""
