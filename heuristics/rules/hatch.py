"""Facts of rules that only code can tell, by the names that conditions use."""

from collections.abc import Mapping
from math import prod
from typing import Final

from heuristics.config.facts import Fact
from heuristics.config.view import Config
from heuristics.rules.dispatch_facts import DISPATCH_FACTS
from heuristics.rules.stage_facts import STAGE_FACTS

RECIPES: Final[Mapping[str, tuple[str, ...]]] = {
    "hopper": ("fp8_blockwise", "fp8_per_tensor", "fp8_delayed", "fp8"),
    "blackwell_nvl8": ("mxfp8", "nvfp4", "fp8_per_tensor", "fp8_delayed", "fp8"),
    "nvl72": ("mxfp8", "nvfp4", "fp8_per_tensor", "fp8_delayed", "fp8"),
}
"""Recipes that a platform's guides name: the first is where the older edition starts, one scale per tensor is
a candidate of the newer one on all."""


def _platform_recipe(config: Config) -> bool | None:
    hardware, precision = config.hardware_class, config.precision
    return None if hardware is None or precision is None else precision in RECIPES.get(hardware, ())


def _cp_list_fits(config: Config) -> bool | None:
    """One entry a layer, where it is a list."""
    kinds, layers = config.value("cp_comm_type"), config.count("num_layers")
    if not isinstance(kinds, tuple):
        return True if config.known("cp_comm_type") else None
    return None if layers is None else len(kinds) == layers


def _hierarchy(config: Config) -> list[int]:
    sizes = config.value("hierarchical_context_parallel_sizes")
    words = sizes if isinstance(sizes, tuple) else ()
    whole = [int(word) for word in words if str(word).isdecimal()]
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
    **STAGE_FACTS,
    **DISPATCH_FACTS,
    "platform_recipe": Fact(
        _platform_recipe, ("fp8", "fp8_recipe", "fp4"), "--gpu-model", "a recipe of this platform"
    ),
    "cp_list_fits": Fact(_cp_list_fits, ("cp_comm_type", "num_layers"), words="one cp_comm_type a layer"),
    "megatron_fsdp": Fact(  # off where nobody asks for it
        lambda c: c.on("ddp.use_megatron_fsdp") is True, ("ddp.use_megatron_fsdp",), words="Megatron-FSDP"
    ),
    "balance_lists_fit": Fact(
        _balance_lists_fit,
        ("moe_router_load_balancing_type", "moe_aux_loss_coeff"),
        words="one moe_aux_loss_coeff a kind of balancing",
    ),
    "dist_muon": Fact(
        lambda c: c.value("optimizer.optimizer") == "dist_muon", ("optimizer.optimizer",), words="dist_muon"
    ),
    "hybrid_model": Fact(lambda c: c.on("is_hybrid_model"), ("is_hybrid_model",), words="Mamba layers"),
    "hierarchy_first": Fact(
        lambda c: next(iter(_hierarchy(c)), None),
        ("hierarchical_context_parallel_sizes",),
        words="the first of hierarchical_context_parallel_sizes",
    ),
    "hierarchy_product": Fact(
        lambda c: prod(sizes) if (sizes := _hierarchy(c)) else None,
        ("hierarchical_context_parallel_sizes",),
        words="the product of hierarchical_context_parallel_sizes",
    ),
    "padded_packs": Fact(
        lambda c: c.on("dataset.pad_to_max_length"),
        ("dataset.pad_to_max_length",),
        words="dataset.pad_to_max_length",
    ),
}
"""By name, as in `heuristics.config.facts`."""
