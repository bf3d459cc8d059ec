"""A run's CUDA-graph setting, as the tables of the choosers take it, out of its settings."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, cast

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.guides.graph_config import GraphConfig, Impl
from heuristics.rules.delayed_wgrad import delayed
from heuristics.rules.dispatcher import TYPE, flex_backend
from heuristics.rules.ep_overlap import overlap

IMPL: Final = "cuda_graph_impl"
MODULES: Final = "cuda_graph_modules"
IMPLS: Final = ("none", "local", "transformer_engine", "full_iteration")


def graph_impl(config: Config) -> str | None:
    """The implementation: of `cuda_graph_impl`, else of the older switches; None where unknown."""
    value = config.value(IMPL)
    if isinstance(value, str) and value != "none":
        return value
    if config.on("enable_cuda_graph"):
        return "local"
    if config.on("external_cuda_graph"):
        return "transformer_engine"
    return "none" if config.known(IMPL) else None


def graph_modules(config: Config) -> tuple[str, ...] | None:
    """The modules by name; `full` is the whole layer, as no module is."""
    names = config.names(MODULES)
    return None if names is None else () if names == ("full",) else names


@lru_cache(maxsize=4)  # every row of the tables asks it of the same configuration
def graph_view(config: Config) -> GraphConfig | None:
    """The setting; None where implementation or modules are unknown, or no release has such a one."""
    impl, modules = graph_impl(config), graph_modules(config)
    if impl == "none":
        return _filled(config, "none", ())
    if impl not in IMPLS:
        return None
    if impl == "full_iteration":
        return _filled(config, "full_iteration", modules or ())
    if modules is None:
        return None
    if impl == "local" and "full_iteration" in modules:
        rest = tuple(name for name in modules if name != "full_iteration")
        return _filled(config, "full_iteration", rest)
    if impl == "local" and {"moe_router", "moe_preprocess"} & set(modules):
        # Local graphs cannot tell the two apart: Megatron-Core names both where one is named.
        modules = tuple(dict.fromkeys((*modules, "moe_router", "moe_preprocess")))
    return _filled(config, cast(Impl, impl), modules)


def _filled(config: Config, impl: Impl, modules: tuple[str, ...]) -> GraphConfig:
    drop_pad = all_of(
        negated(config.null("moe_expert_capacity_factor")), config.on("moe_pad_expert_input_to_capacity")
    )
    return GraphConfig(
        impl=impl,
        modules=modules,
        core_version=config.core_text,
        te_version=config.version_text("te"),
        bridge=config.framework == "megatron_bridge",
        moe=config.moe(),
        dense_layers=_dense_layers(config),
        mamba_layers=config.on("is_hybrid_model"),
        drop_pad=drop_pad,
        count_copies=all_of(config.one_of(TYPE, "alltoall"), negated(drop_pad), _counted(config)),
        sync_free=_sync_free(config),
        static_shapes=False if config.on("variable_seq_lengths") else None,
        packed_sequences=config.packed_sequences,
        padded_sequences=config.on("dataset.pad_to_max_length"),
        ep_overlap=overlap(config),
        shared_expert_in_router=all_of(
            config.on("moe_shared_expert_intermediate_size"), negated(config.on("moe_shared_expert_overlap"))
        ),
        delay_wgrad=delayed(config),
        wgrad_fusion=config.on("gradient_accumulation_fusion"),
        attention_bias=any_of(config.on("add_bias_linear"), config.on("add_qkv_bias")),
        full_recompute=_full_recompute(config),
        recompute_modules=config.recompute_modules(),
        attention_dropout=config.on("attention_dropout"),
        hidden_dropout=config.on("hidden_dropout"),
        input_jitter=negated(config.null("moe_input_jitter_eps")),
        cpu_offloading=config.on("cpu_offloading"),
        offload_modules=config.offloads(),
        warmup_steps=config.count("cuda_graph_warmup_steps"),
        offloads_in_flight=_in_flight(config),
        te_rng_tracker=any_of(config.on("use_te_rng_tracker"), config.on("rng.te_rng_tracker")),
        expandable_segments=expandable_segments(config),
        graph_register_off=config.env_is("NCCL_GRAPH_REGISTER", "0"),
        nan_checks=_nan_checks(config),
        hybrid_cp=config.on("hybrid_context_parallel"),
        mfsdp_v2=all_of(config.on("ddp.use_megatron_fsdp"), config.one_of("ddp.megatron_fsdp_version", 2)),
        gtp_on_blackwell=all_of(config.above("gtp_weight_remat_size", 1), negated(config.before_blackwell())),
        node_priority=config.env_is("CUDA_GRAPHS_USE_NODE_PRIORITY", "1"),
    )


def expandable_segments(config: Config) -> bool | None:
    """Whether PyTorch's allocator grows its segments."""
    text = config.env("PYTORCH_CUDA_ALLOC_CONF")
    return None if text is None else "expandable_segments:True" in text


def _counted(config: Config) -> bool | None:
    """What makes alltoall copy token counts to the host before it dispatches, as the check has it."""
    return any_of(negated(config.null("moe_expert_capacity_factor")), config.on("moe_router_padding_for_fp8"))


def _dense_layers(config: Config) -> bool | None:
    """Whether some layers have no experts: a frequency above 1, or a pattern with a zero in it."""
    knob = "moe_layer_freq"
    value = config.value(knob)
    if isinstance(value, tuple):
        return 0 in value
    if isinstance(value, str) and not value.isdigit():
        return "0" in re.findall(r"\d+", value)
    if not config.known(knob):
        return None
    return value is not None and int(value) > 1


def _full_recompute(config: Config) -> bool | None:
    return config.one_of("recompute_granularity", "full")


def _in_flight(config: Config) -> int | None:
    knob = "fine_grained_offloading_max_inflight_offloads"
    return -1 if config.null(knob) else config.count(knob)


def _nan_checks(config: Config) -> bool | None:
    checked = config.on("rerun.check_for_nan_in_loss")
    return config.on("ddp.check_for_nan_in_grad") if checked is None else checked


def _sync_free(config: Config) -> bool | None:
    """A dropless run sends no expert size back to the host: HybridEP, the op fuser and a rank's budget."""
    return all_of(
        flex_backend(config, "hybridep", "ncclep"),
        config.on("use_transformer_engine_op_fuser"),
        negated(config.null("moe_expert_rank_capacity_factor")),
    )
