"""What CUDA graphs must not be combined with: the choosers' rows, and rows of the settings alone.

Read at core_v0.12.0 to core_v0.19.0 and d98e8a64; Bridge v0.3.1 to v0.6.0 and 067f987d.
"""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.guides.graph_config import MODULES as MODULE_NAMES
from heuristics.rules.delayed_wgrad import captures_wgrad, delayed, reduces_early
from heuristics.rules.dispatcher import TYPE
from heuristics.rules.graph_rows import ROW_RULES
from heuristics.rules.graph_view import IMPL, MODULES, graph_impl, graph_modules
from heuristics.rules.legacy import CORE, LM, Condition, Rule

_GRAPHS: Final = (IMPL, MODULES)


_RECOMPUTE: Final = ("recompute_granularity", "recompute_modules")
_OFFLOAD: Final = ("fine_grained_activation_offloading", "offload_modules")
_WGRAD: Final = ("delay_wgrad_compute", "gradient_accumulation_fusion")


def _te(*conditions: Condition) -> Condition:
    return lambda c: all_of(_is(c, "transformer_engine"), *(condition(c) for condition in conditions))


def _is(config: Config, impl: str) -> bool | None:
    found = graph_impl(config)
    return None if found is None else found == impl


def _unknown_modules(config: Config) -> bool | None:
    modules = graph_modules(config)
    if modules is None:
        return None
    return bool(set(modules) - {*MODULE_NAMES, "full_iteration", "full_iteration_inference"})


def _captured(config: Config, module: str) -> bool | None:
    modules = graph_modules(config)
    return None if modules is None else module in modules


def _several(config: Config) -> bool | None:
    modules = graph_modules(config)
    return None if modules is None else len(modules) > 1


def _wgrad_of_lm(config: Config) -> bool | None:
    """Megatron-LM looks at the modules alone, and only with overlap_grad_reduce."""
    unfit = any_of(
        config.before("te", "2.12.0"),
        negated(config.on("gradient_accumulation_fusion")),
        all_of(_captured(config, "attn"), any_of(config.on("add_bias_linear"), config.on("add_qkv_bias"))),
    )
    return all_of(delayed(config), reduces_early(config), captures_wgrad(config), unfit)


RULES: Final = (
    *ROW_RULES,
    Rule(
        "graphs-implementation",
        (IMPL,),
        "no CUDA-graph implementation of this name: none, local, transformer_engine",
        lambda c: negated(c.one_of(IMPL, "none", "local", "transformer_engine")),
        "core",
        CORE,
        "cuda_graph_impl local with the module full_iteration, or transformer_engine",
        since="0.15.0",
        until="0.18.0",
        core_message="Invalid cuda graph implementation",
    ),
    Rule(
        "graphs-implementation-newer",
        (IMPL,),
        "no CUDA-graph implementation of this name: none, local, transformer_engine, full_iteration",
        lambda c: negated(c.one_of(IMPL, "none", "local", "transformer_engine", "full_iteration")),
        "core",
        CORE,
        "cuda_graph_impl transformer_engine or full_iteration",
        since="0.18.0",
        core_message="Invalid cuda graph implementation",
    ),
    Rule(
        "graphs-module-name",
        (MODULES,),
        "graphs know the modules attn, mlp, moe, moe_router, moe_preprocess and mamba only",
        _unknown_modules,
        "core",
        "Megatron-Core, transformer/enums.py",
        "modules of these names",
        since="0.16.0",
    ),
    Rule(
        "graphs-full-iteration-te",
        _GRAPHS,
        "a graph of the full iteration is not Transformer Engine's",
        _te(lambda c: _captured(c, "full_iteration")),
        "core",
        CORE,
        "cuda_graph_impl local with the module full_iteration",
        since="0.16.0",
        until="0.18.0",
        core_message="To use full iteration cuda graph, please use",
    ),
    Rule(
        "graphs-full-iteration-te-newer",
        _GRAPHS,
        "a graph of the full iteration is not Transformer Engine's",
        _te(lambda c: _captured(c, "full_iteration")),
        "core",
        "Megatron-Core, transformer/cuda_graph_config.py",
        "cuda_graph_impl full_iteration",
        since="0.18.0",
        core_message="cuda_graph_modules='full_iteration' cannot be combined with",
    ),
    Rule(
        "graphs-full-iteration-alone",
        _GRAPHS,
        "full_iteration captures everything: no module beside it",
        lambda c: all_of(_captured(c, "full_iteration"), _several(c)),
        "ours",
        f"{CORE}: accepted, and refused from Megatron-Core 0.18",
        "the module full_iteration alone",
        since="0.16.0",
        until="0.18.0",
    ),
    Rule(
        "graphs-two-switches",
        ("enable_cuda_graph", "external_cuda_graph"),
        "enable_cuda_graph and external_cuda_graph exclude each other",
        lambda c: all_of(c.on("enable_cuda_graph"), c.on("external_cuda_graph")),
        "core",
        CORE,
        "cuda_graph_impl alone",
        since="0.15.0",
        core_message="cannot be enabled at the same time",
    ),
    Rule(
        "graphs-old-and-new-switch",
        ("enable_cuda_graph", "external_cuda_graph", IMPL),
        "the older graph switches do not go with cuda_graph_impl",
        lambda c: all_of(
            any_of(c.on("enable_cuda_graph"), c.on("external_cuda_graph")), negated(c.one_of(IMPL, "none"))
        ),
        "core",
        CORE,
        "cuda_graph_impl alone",
        since="0.15.0",
        core_message="Do not use enable_cuda_graph",
    ),
    Rule(
        "graphs-recompute-0.15",
        (*_GRAPHS, *_RECOMPUTE),
        "graphs take recompute only as selective recompute beside Transformer Engine's graphs of attn",
        lambda c: all_of(_graphs(c), c.on("recompute_granularity"), negated(_selective_attn(c))),
        "core",
        f"{CORE}, core_v0.15.0",
        "no graphs, or Megatron-Core 0.16 or later",
        since="0.15.0",
        until="0.16.0",
        core_message="CUDA graphs not supported with activation recomputation",
    ),
    Rule(
        "graphs-attn-recompute-0.15",
        (*_GRAPHS, *_RECOMPUTE),
        "graphed attention does not go with recompute of core_attn or mla_up_proj",
        lambda c: all_of(_selective_attn(c), any_of(c.recomputes("core_attn"), c.recomputes("mla_up_proj"))),
        "core",
        f"{CORE}, core_v0.15.0",
        "drop both from recompute_modules",
        since="0.15.0",
        until="0.16.0",
        core_message="attn cuda graph is not supported with",
        fix="MEM-2",
    ),
    Rule(
        "graphs-recompute-0.12",
        ("enable_cuda_graph", *_RECOMPUTE),
        "enable_cuda_graph does not go with recompute",
        lambda c: all_of(c.on("enable_cuda_graph"), c.on("recompute_granularity")),
        "core",
        f"{CORE}, core_v0.14.0",
        "no graphs, or no recompute",
        until="0.15.0",
        core_message="CUDA graphs not supported with activation recomputation",
    ),
    Rule(
        "graphs-preprocess-padding",
        (*_GRAPHS, TYPE, "moe_router_padding_for_quantization"),
        "router padding makes alltoall copy token counts in a graphed moe_preprocess: it fails at run time",
        lambda c: all_of(
            _graphs(c),
            _captured(c, "moe_preprocess"),
            c.one_of(TYPE, "alltoall"),
            c.on("moe_router_padding_for_quantization"),
            negated(c.on("moe_pad_expert_input_to_capacity")),
        ),
        "dispatcher",
        "Megatron-Core, transformer/moe/token_dispatcher.py",
        "moe_router alone, or the flex dispatcher",
        since="0.16.0",
        fix="COM-2",
    ),
    Rule(
        "graphs-offload-0.18",
        (IMPL, *_OFFLOAD),
        "fine-grained offload goes with graphs of transformer_engine or full_iteration only",
        lambda c: all_of(_is(c, "local"), c.on(_OFFLOAD[0]), negated(_captured(c, "full_iteration"))),
        "core",
        f"{CORE}, core_v0.18.0",
        "cuda_graph_impl transformer_engine",
        since="0.18.0",
        until="0.19.0",
        core_message="fine-grained activation offloading is only supported with",
    ),
    Rule(
        "graphs-local-ep",
        (IMPL, "expert_model_parallel_size", "moe_pad_experts_for_cuda_graph_inference"),
        "local graphs with experts over ranks need moe_pad_experts_for_cuda_graph_inference",
        lambda c: all_of(
            _is(c, "local"),
            c.more_than_one(c.ep),
            negated(c.on("moe_pad_experts_for_cuda_graph_inference")),
        ),
        "megatron_lm",
        LM,
        "cuda_graph_impl transformer_engine",
        since="0.16.0",
        until="0.18.0",
    ),
    Rule(
        "graphs-wgrad-lm",
        (*_GRAPHS, *_WGRAD, "ddp.overlap_grad_reduce", "add_bias_linear", "add_qkv_bias"),
        "delayed weight gradients of graphed modules need Transformer Engine 2.12, "
        "gradient_accumulation_fusion and no attention bias",
        _wgrad_of_lm,
        "megatron_lm",
        LM,
        "Transformer Engine 2.12 and gradient_accumulation_fusion, or attn out of the graphs",
        since="0.17.0",
    ),
)


def _graphs(config: Config) -> bool | None:
    return negated(_is(config, "none"))


def _selective_attn(config: Config) -> bool | None:
    modules = graph_modules(config)
    return all_of(
        _is(config, "transformer_engine"),
        None if modules is None else modules == ("attn",),
        config.one_of("recompute_granularity", "selective"),
    )
