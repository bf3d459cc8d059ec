"""Facts of rules that only code can tell, by the names that conditions use; values that meet a rule."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Final

from heuristics.config.facts import Fact
from heuristics.config.logic import all_of, any_of
from heuristics.config.view import Config
from traces.patterns import whole_number
from traces.settings.knobs import EP, ETP, GLOBAL_BATCH, MICRO_BATCH, PP, STAGE_LAYOUT, VIRTUAL_STAGES
from traces.settings.settings import Framework
from traces.settings.spelling import spell
from traces.settings.values import unrolled

_FIRST: Final = "num_layers_in_first_pipeline_stage"
_LAST: Final = "num_layers_in_last_pipeline_stage"
_EMBEDDING: Final = "account_for_embedding_in_pipeline_split"
_LOSS: Final = "account_for_loss_in_pipeline_split"
_PATTERN: Final = "hybrid_layer_pattern"


def _letters(config: Config) -> str | None:
    """A layout string with its repeats written out."""
    text = config.value(STAGE_LAYOUT)
    return unrolled(text) if isinstance(text, str) else None


def _of_layout(tell: Callable[[str], object]) -> Callable[[Config], object]:
    """What the letters of the layout tell, where there are any."""
    return lambda config: None if (letters := _letters(config)) is None else tell(letters)


def _in_stages(config: Config) -> int | None:
    letters = _letters(config)
    if letters is None or not config.pp:
        return None
    stages = letters.count("|") + 1
    return None if stages % config.pp else stages // config.pp


def _ends(letters: str) -> bool:
    layers = letters.replace("|", "")
    return layers[:1] == "E" and layers[-1:] == "L" and (layers.count("E"), layers.count("L")) == (1, 1)


def _spread(config: Config) -> int | None:
    """Layers that are spread: embedding and loss count as one each where they are accounted for."""
    layers = config.count("num_layers")
    extra = (config.on(_EMBEDDING), config.on(_LOSS))
    return None if layers is None or None in extra else layers + sum(map(bool, extra))


def _between(config: Config) -> tuple[int, int] | None:
    """Layers and stages that are left between stages of their own size."""
    layers, stages = config.count("num_layers"), config.pp
    if layers is None or stages is None or not all(map(config.known, (_FIRST, _LAST))):
        return None
    ends = [count for count in (config.count(_FIRST), config.count(_LAST)) if count is not None]
    return layers - sum(ends), stages - len(ends)


def _middle_fits(config: Config) -> bool | None:
    """What is left for the stages between divides, and is none where no stage is left."""
    if (left := _between(config)) is None:
        return None
    layers, stages = left
    return bool(layers) == bool(stages) and not (stages and layers % stages)


def _virtual_fits(config: Config) -> bool | None:
    """Virtual stages divide the layers of the first, the last and the stages between."""
    left, virtual = _between(config), config.count(VIRTUAL_STAGES)
    if left is None or not virtual:
        return None
    layers, stages = left
    counts = (config.count(_FIRST), config.count(_LAST), layers // stages if stages else 0)
    return not any(count % virtual for count in counts if count is not None)


def _last_virtual(config: Config) -> bool | None:
    """All MTP layers of a layout stand in one stage, of the last round of virtual stages."""
    letters, stages = _letters(config), config.pp
    if letters is None or not stages:
        return None
    parts = letters.split("|")
    holding = [at for at, part in enumerate(parts) if "m" in part]
    return len(holding) <= 1 and all(at >= len(parts) - stages for at in holding)


def _segments(config: Config) -> int | None:
    """Segments between the bars of a pattern of layers; MTP layers stand behind the first slash."""
    pattern = config.word(_PATTERN)
    return pattern.split("/")[0].count("|") + 1 if pattern else None


def _pattern_virtual_fits(config: Config) -> bool | None:
    segments = _segments(config)
    if segments is None or not config.pp or not config.known(VIRTUAL_STAGES):
        return None
    return (config.count(VIRTUAL_STAGES) or 1) == (max(segments // config.pp, 1))


_BACKEND: Final = "moe_flex_dispatcher_backend"
_DEEPEP: Final = "moe_enable_deepep"
_PAD: Final = "moe_pad_expert_input_to_capacity"
_DOMAIN: Final = "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
_FSDP: Final = ("ddp.use_megatron_fsdp", "use_torch_fsdp2")


def _flex_backend(config: Config) -> str | None:
    """The backend that flex runs on, where it runs; before 0.16 DeepEP alone. No text: null."""
    backend = config.word(_BACKEND)
    if backend:
        return backend
    if config.on(_DEEPEP) or config.before("core", "0.16.0"):
        return "deepep"
    return "" if config.null(_BACKEND) else None


def _padded(config: Config) -> bool | None:
    """Expert inputs are padded to capacity: as configured, else as the routing is given."""
    padded, routing = config.on(_PAD), config.routing
    return padded if padded is not None or routing is None else routing == "drop_pad"


def _domain_ranks(config: Config) -> int | str | None:
    """What HybridEP is told; a text that is no number as it is."""
    text = config.env(_DOMAIN)
    number = whole_number(text or "")
    return text or None if number is None else number


RECIPES: Final[Mapping[str, tuple[str, ...]]] = {
    "hopper": ("fp8_blockwise", "fp8_per_tensor", "fp8_delayed", "fp8"),
    "blackwell_nvl8": ("mxfp8", "nvfp4", "fp8_per_tensor", "fp8_delayed", "fp8"),
    "nvl72": ("mxfp8", "nvfp4", "fp8_per_tensor", "fp8_delayed", "fp8"),
}
"""Recipes that a platform's guides name: the first is where the older edition starts, one scale per tensor is
a candidate of the newer one on all."""


def _cp_list_fits(config: Config) -> bool | None:
    """One entry a layer, where it is a list."""
    kinds, layers = config.value("cp_comm_type"), config.count("num_layers")
    if not isinstance(kinds, tuple):
        return True if config.known("cp_comm_type") else None
    return None if layers is None else len(kinds) == layers


def _hierarchy(config: Config) -> list[int]:
    sizes = config.value("hierarchical_context_parallel_sizes")
    words = sizes if isinstance(sizes, tuple) else ()
    whole = [number for word in words if (number := whole_number(str(word))) is not None]
    return whole if len(whole) == len(words) else []


def _balance_lists_fit(config: Config) -> bool | None:
    """A coefficient for each kind of balancing; Megatron-LM takes a list of one as no list."""
    kinds, losses = config.value("moe_router_load_balancing_type"), config.value("moe_aux_loss_coeff")
    if not isinstance(kinds, tuple) or len(kinds) < 2:
        return True if config.known("moe_router_load_balancing_type") else None
    if not config.known("moe_aux_loss_coeff"):
        return None
    return isinstance(losses, tuple) and len(losses) == len(kinds)


HATCH: Final[Mapping[str, Fact]] = {
    # stages
    "layout_text": Fact(
        lambda c: isinstance(c.value(STAGE_LAYOUT), str) if c.known(STAGE_LAYOUT) else None, (STAGE_LAYOUT,)
    ),
    "layout_reads": Fact(lambda c: _letters(c) is not None, (STAGE_LAYOUT,)),
    "layout_stages": Fact(_of_layout(lambda letters: letters.count("|") + 1), (STAGE_LAYOUT,)),
    "layout_vpp": Fact(_in_stages, (STAGE_LAYOUT, PP)),
    "layout_layers": Fact(_of_layout(lambda letters: letters.count("t")), (STAGE_LAYOUT,)),
    "layout_mtp": Fact(_of_layout(lambda letters: letters.count("m")), (STAGE_LAYOUT,)),
    "layout_ends": Fact(_of_layout(_ends), (STAGE_LAYOUT,)),
    "layout_mtp_last": Fact(
        _of_layout(lambda letters: "t" not in letters.partition("m")[2]), (STAGE_LAYOUT,)
    ),
    "layout_mtp_together": Fact(_last_virtual, (STAGE_LAYOUT, PP)),
    "microbatches": Fact(lambda c: c.microbatches, (GLOBAL_BATCH, MICRO_BATCH, "world_size", PP)),
    "pattern_segments": Fact(_segments, (_PATTERN,)),
    "pattern_stages_fit": Fact(  # a pattern without bars is cut by Megatron-LM itself
        lambda c: None if not (one := _segments(c)) or not c.pp else one == 1 or one % c.pp == 0,
        (_PATTERN, PP),
    ),
    "pattern_virtual_fits": Fact(_pattern_virtual_fits, (_PATTERN, VIRTUAL_STAGES, PP)),
    "even_stages": Fact(
        lambda c: all_of(
            c.null(STAGE_LAYOUT), c.null(_FIRST), c.null(_LAST), "|" not in (c.word(_PATTERN) or "")
        ),
        (STAGE_LAYOUT, _FIRST, _LAST),
    ),
    "spread_layers": Fact(_spread, ("num_layers", _EMBEDDING, _LOSS)),
    "middle_fits": Fact(_middle_fits, (_FIRST, _LAST, "num_layers", PP)),
    "virtual_fits": Fact(_virtual_fits, (_FIRST, _LAST, "num_layers", PP, VIRTUAL_STAGES)),
    # dispatch
    "flex_backend": Fact(_flex_backend, (_BACKEND, _DEEPEP)),
    "expert_tensor": Fact(
        lambda c: c.expert_tensor_size, ("expert_tensor_parallel_size", "tensor_model_parallel_size")
    ),
    "padded_to_capacity": Fact(_padded, (_PAD,), "--routing"),
    "nvlink_domain": Fact(lambda c: c.nvlink_domain, option="--nvlink-domain or --gpu-model"),
    "ep_in_domain": Fact(
        lambda c: c.hybrid_topology and c.hybrid_topology.ranks_per_domain, (EP,), "--gpu-model"
    ),
    "domain_ranks": Fact(_domain_ranks, (f"env.{_DOMAIN}",)),
    "gpu": Fact(lambda c: c.gpu_family and c.gpu_family.name, option="--gpu-model"),
    "hardware": Fact(lambda c: c.hardware_class, option="--gpu-model"),
    "container": Fact(lambda c: c.container, option="--container"),
    "fsdp": Fact(lambda c: any_of(*(c.on(knob) for knob in _FSDP)), _FSDP),
    # precision, sequences, sharding, model
    "platform_recipe": Fact(
        lambda c: c.hardware_class and c.precision and c.precision in RECIPES.get(c.hardware_class, ()),
        ("fp8", "fp8_recipe", "fp4"),
        "--gpu-model",
    ),
    "cp_list_fits": Fact(_cp_list_fits, ("cp_comm_type", "num_layers")),
    "megatron_fsdp": Fact(  # off where nobody asks for it
        lambda c: c.on("ddp.use_megatron_fsdp") is True, ("ddp.use_megatron_fsdp",)
    ),
    "balance_lists_fit": Fact(_balance_lists_fit, ("moe_router_load_balancing_type", "moe_aux_loss_coeff")),
    "dist_muon": Fact(lambda c: c.value("optimizer.optimizer") == "dist_muon", ("optimizer.optimizer",)),
    "hybrid_model": Fact(lambda c: c.on("is_hybrid_model"), ("is_hybrid_model",)),
    "hierarchy_first": Fact(
        lambda c: next(iter(_hierarchy(c)), None), ("hierarchical_context_parallel_sizes",)
    ),
    "hierarchy_product": Fact(
        lambda c: prod(sizes) if (sizes := _hierarchy(c)) else None, ("hierarchical_context_parallel_sizes",)
    ),
    "padded_packs": Fact(lambda c: c.on("dataset.pad_to_max_length"), ("dataset.pad_to_max_length",)),
}
"""By name, as in `heuristics.config.facts`."""


def _expert_ranks(config: Config) -> str | None:
    """ETP 1 where the EP then fits; else sizes of EP that experts and ranks allow."""
    experts, world = config.positive("num_moe_experts"), config.world
    etp, pp, ep = config.expert_tensor_size, config.pp, config.ep
    if experts is None or world is None or etp is None or pp is None:
        return None
    if etp > 1 and ep and world % (ep * pp) == 0:
        framework: Framework = "megatron_bridge" if config.framework == "megatron_bridge" else "megatron_lm"
        return spell({ETP: 1}, framework)[0]
    fit = [ep for ep in range(2, experts + 1) if experts % ep == 0 and world % (etp * ep * pp) == 0]
    return f"EP {_one_of(fit)}" if fit else None


def _hierarchy_that_fits(config: Config) -> str | None:
    """Two levels of CP, of which the first divides what TP leaves of heads and query groups."""
    cp, tp, heads = config.cp, config.tp, config.positive("num_attention_heads")
    groups = config.positive("num_query_groups") or heads
    if cp is None or tp is None or heads is None or groups is None:
        return None
    fit = [one for one in range(2, cp) if cp % one == 0 and heads % (tp * one) == groups % (tp * one) == 0]
    return _one_of([f"[{one}, {cp // one}]" for one in fit]) if fit else None


def _one_of(values: list[int] | list[str]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last


def _domain_that_fits(config: Config) -> str | None:
    topology = config.hybrid_topology
    return None if topology is None else f"{_DOMAIN}={topology.ranks_per_domain}"


EXAMPLES: Final[Mapping[str, Fact]] = {
    "domain_ranks_that_fit": Fact(_domain_that_fits),
    "expert_ranks_that_fit": Fact(_expert_ranks),
    "hierarchy_that_fits": Fact(_hierarchy_that_fits),
}
"""By name."""
