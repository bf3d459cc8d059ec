"""A run's configuration as a request to the real megatron-core: the fields to build, on how many ranks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from heuristics.config.versions import numbers
from heuristics.rules.megatron.assumed import (
    assumed_options,
    assumed_sizes,
    count,
    derived,
    smallest_world,
)
from heuristics.rules.megatron.core_fields import OF_MLA, is_core_field
from heuristics.rules.megatron.of_bridge import laid_over
from heuristics.run.run import Run
from traces.settings.settings import Value

_SIZES: Final = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
)
_SIZES_OR_NULL: Final = (
    "virtual_pipeline_model_parallel_size",
    "expert_tensor_parallel_size",
    "num_layers",
    "hidden_size",
    "kv_channels",
    "num_attention_heads",
    "num_query_groups",
    "num_moe_experts",
    "moe_router_topk",
    "moe_router_num_groups",
    "cpu_offloading_num_layers",
    "num_layers_per_virtual_pipeline_stage",
    "world_size",
)
_ZERO_TOO: Final = ("cpu_offloading_num_layers", "num_moe_experts")
_CUTS_LAYERS: Final = (
    "pipeline_model_parallel_layout",
    "num_layers_in_first_pipeline_stage",
    "num_layers_in_last_pipeline_stage",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
)
"""With one of these the number of layers cannot be made up."""

_TELLS_MLA: Final = ("kv_lora_rank", "q_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim")
_LISTS: Final = ("recompute_modules", "offload_modules", "cuda_graph_modules", "cuda_graph_scope")


@dataclass(frozen=True, slots=True)
class Request:
    """One configuration to build.

    `fields`: of TransformerConfig (with `multi_latent_attention`: of MLATransformerConfig), by their newest
    names. `world_size`: ranks. `te_version`: Transformer Engine of the run, None where unknown;
    `core_version`: Megatron-Core of the run. `flex_package`: DeepEP or HybridEP can be imported there.
    `assumed_sizes`, `assumed_options`: what nobody said and was
    filled in, by name.
    """

    fields: Mapping[str, Value]
    world_size: int
    te_version: str | None = None
    core_version: str | None = None
    flex_package: bool = False
    assumed_sizes: tuple[str, ...] = field(default=())
    assumed_options: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class NotAsked:
    """Why megatron-core is not asked, and what to give so that it can be."""

    because: str
    cure: str


def request_of(run: Run) -> Request | NotAsked:
    """What to ask of a run's configuration; `NotAsked` where too little, or no size, is known."""
    said = _said(run)
    if not said:
        return NotAsked("nothing is known of the configuration", "--config")
    if refused := _no_sizes(said, run):
        return refused
    said |= _virtual_stages(said, run)
    if "num_layers" not in said and any(said.get(name) for name in _CUTS_LAYERS):
        return NotAsked("pipeline stages are cut unevenly and the number of layers is unknown", "num_layers")
    options = assumed_options(said, run)
    fields = {**options, **said}
    fields |= derived(fields)
    sizes = assumed_sizes(fields, run)
    world = run.config.value("world_size")
    return Request(
        fields={**fields, **sizes},
        world_size=world if isinstance(world, int) else smallest_world(fields),
        te_version=_version(run.config.version_text("te")),
        core_version=_version(run.config.core_text),
        flex_package=run.config.flex_package is True,
        assumed_sizes=(*sizes, *(() if isinstance(world, int) else ("world_size",))),
        assumed_options=tuple(options),
    )


def _said(run: Run) -> dict[str, Value]:
    """Core's fields that somebody said, as they reach core."""
    settings = run.validated.settings
    own = {knob: said.value for knob, said in settings.by_knob.items() if is_core_field(knob)}
    fields = laid_over(own, settings)
    for name in _LISTS:
        if isinstance(value := fields.get(name), str):
            fields[name] = tuple(part for part in value.replace(",", " ").split() if part)
    if "multi_latent_attention" not in fields and any(fields.get(name) for name in _TELLS_MLA):
        fields["multi_latent_attention"] = True
    if fields.get("multi_latent_attention") is not True:
        fields = {name: value for name, value in fields.items() if name not in OF_MLA}
    return fields


def _no_sizes(said: Mapping[str, Value], run: Run) -> NotAsked | None:
    """A size that is none cannot be laid out, and what is to be built around it would be guessed."""
    for name in (*_SIZES, *_SIZES_OR_NULL):
        if name not in said and not run.config.known(name):
            continue
        value = said.get(name, run.config.value(name))
        least = 0 if name in _ZERO_TOO else 1
        if value is None and name in _SIZES_OR_NULL:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            return NotAsked(f"{name} is no whole number from {least} up", name)
    return None


def _virtual_stages(said: Mapping[str, Value], run: Run) -> dict[str, Value]:
    """Megatron-LM counts virtual stages by the layers in each (arguments.py); one stage is none."""
    name = "virtual_pipeline_model_parallel_size"
    each = run.config.value("num_layers_per_virtual_pipeline_stage")
    layers = said.get("num_layers")
    if said.get(name) is not None or not isinstance(each, int) or not isinstance(layers, int):
        return {}
    stages = layers // count(said, "pipeline_model_parallel_size") // each
    return {name: stages if stages > 1 else None}


def _version(said: str | None) -> str | None:
    """Numbers alone, so that nothing else of what was typed or logged is passed on."""
    parts = (0, 0, 0) if said is None else numbers(said)
    return ".".join(map(str, parts)) if any(parts) else None
