"""What EP overlap asks for. Read at core_v0.14.0 to core_v0.19.0, d98e8a64; Bridge v0.3.1 to v0.6.0."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.rules.legacy import BRIDGE_OVERLAP, CORE, LM, Condition, Rule

KNOB: Final = "overlap_moe_expert_parallel_comm"
_SOURCE: Final = f"{CORE}; {BRIDGE_OVERLAP}"


def overlap(config: Config) -> bool | None:
    """Whether EP overlap is asked for where it counts: with a CommOverlapConfig, Bridge's value wins."""
    return config.expert_overlap(KNOB)


def with_overlap(*conditions: Condition) -> Condition:
    """EP overlap together with all of these."""
    return lambda c: all_of(overlap(c), *(condition(c) for condition in conditions))


def _rule(
    id: str,
    knobs: tuple[str, ...],
    text: str,
    broken: Condition,
    message: str,
    cure: str,
    since: str = "0.14.0",
    until: str = "",
    fix: str = "",
) -> Rule:
    return Rule(
        f"ep-overlap-{id}",
        (KNOB, f"comm_overlap.{KNOB}", *knobs),
        text,
        with_overlap(broken),
        "core",
        _SOURCE,
        cure,
        since=since,
        until=until,
        core_message=message,
        fix=fix,
    )


RULES: Final = (
    _rule(
        "torch",
        (),
        "EP overlap hangs with PyTorch before 2.6.0",
        lambda c: c.before("torch", "2.6.0"),
        "A2A Overlap encounters hang issue",
        "PyTorch 2.6.0 or later",
    ),
    _rule(
        "virtual-stages",
        ("pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size"),
        "EP overlap with pipeline stages needs virtual ones",
        lambda c: all_of(c.more_than_one(c.pp), _no_virtual_stages(c)),
        "If enabling EP A2A overlap, virtual_pipeline_model_parallel_size",
        "set virtual_pipeline_model_parallel_size, or a layout string with virtual stages",
        fix="COM-6",
    ),
    _rule(
        "expert-parallel",
        ("expert_model_parallel_size",),
        "EP overlap needs experts spread over ranks (EP above 1)",
        lambda c: negated(c.more_than_one(c.ep)),
        "overlap_moe_expert_parallel_comm is only supported with expert model parallelism",
        "expert_model_parallel_size above 1",
        fix="COM-10",
    ),
    _rule(
        "dispatcher",
        ("moe_token_dispatcher_type",),
        "EP overlap needs the alltoall or flex dispatcher",
        lambda c: negated(c.one_of("moe_token_dispatcher_type", "alltoall", "flex")),
        "is supported with alltoall/flex token dispatcher",
        "moe_token_dispatcher_type alltoall or flex",
        fix="COM-2",
    ),
    _rule(
        "full-recompute",
        ("recompute_granularity",),
        "EP overlap does not go with full recompute",
        lambda c: c.one_of("recompute_granularity", "full"),
        "disable full recomputation when enabling",
        "selective recompute of parts",
        fix="MEM-2",
    ),
    _rule(
        "recompute-method",
        ("recompute_method",),
        "EP overlap goes without recompute_method",
        lambda c: negated(c.null("recompute_method")),
        "disable recomputation method when enabling",
        "drop recompute_method",
    ),
    _rule(
        "recompute-layers",
        ("recompute_num_layers",),
        "EP overlap goes without recompute_num_layers",
        lambda c: negated(c.null("recompute_num_layers")),
        "recompute_num_layers must be None when enabling",
        "drop recompute_num_layers",
    ),
    _rule(
        "moe-recompute",
        ("recompute_granularity", "recompute_modules"),
        "EP overlap does not go with recompute of moe",
        lambda c: _in_modules(c, "moe"),
        "disable moe in recompute_modules",
        "drop moe from recompute_modules; moe_act and layernorm may stay",
        since="0.17.0",
        fix="MEM-2",
    ),
    _rule(
        "precision",
        ("bf16", "fp16"),
        "EP overlap needs a model in BF16 or FP16",
        lambda c: all_of(negated(c.on("bf16")), negated(c.on("fp16"))),
        "only supported with bf16 or fp16 model",
        "bf16 on",
    ),
    _rule(
        "shared-experts",
        ("moe_shared_expert_overlap",),
        "EP overlap does not go with shared-expert overlap",
        lambda c: c.on("moe_shared_expert_overlap"),
        "disable moe_shared_expert_overlap when enabling",
        "moe_shared_expert_overlap off",
    ),
    _rule(
        "mtp-one",
        ("mtp_num_layers",),
        "EP overlap takes no MTP layer, or one",
        lambda c: negated(any_of(c.null("mtp_num_layers"), c.one_of("mtp_num_layers", 1))),
        "MTP layernum only supports 1",
        "one MTP layer, or EP overlap off",
        until="0.19.0",
    ),
    _rule(
        "mtp-at-most-one",
        ("mtp_num_layers",),
        "EP overlap takes at most one MTP layer",
        lambda c: c.above("mtp_num_layers", 1),
        "MTP supports at most one layer",
        "one MTP layer, or EP overlap off",
        since="0.19.0",
    ),
    _rule(
        "mtp-pipeline",
        ("mtp_num_layers", "pipeline_model_parallel_size"),
        "EP overlap with an MTP layer needs pipeline stages",
        lambda c: all_of(c.one_of("mtp_num_layers", 1), negated(c.more_than_one(c.pp))),
        "Pipeline model parallel size must be larger than 1",
        "pipeline stages, or no MTP layer",
        since="0.16.0",
        until="0.19.0",
    ),
    _rule(
        "ncclep-offload",
        ("moe_flex_dispatcher_backend", "fine_grained_activation_offloading", "offload_modules"),
        "EP overlap over ncclep cannot offload expert_fc1: the overlap frees what it keeps",
        lambda c: all_of(
            c.one_of("moe_token_dispatcher_type", "flex"),
            c.one_of("moe_flex_dispatcher_backend", "ncclep"),
            _offloads(c, "expert_fc1"),
        ),
        "with ncclep does not support offloading",
        "drop expert_fc1 from offload_modules",
        since="0.19.0",
    ),
    Rule(
        "ep-overlap-moe-recompute-quiet",
        (KNOB, f"comm_overlap.{KNOB}", "recompute_granularity", "recompute_modules"),
        "EP overlap beside recompute of moe passes here and is refused from Megatron-Core 0.17",
        with_overlap(lambda c: c.recomputes("moe")),
        "ours",
        f"{CORE}, core_v0.16.1 and core_v0.17.0",
        "drop moe from recompute_modules",
        level="warning",
        since="0.14.0",
        until="0.17.0",
        fix="MEM-2",
    ),
    Rule(
        "ep-overlap-overwritten",
        (KNOB, f"comm_overlap.{KNOB}"),
        "Bridge copies comm_overlap's own value over the model's: EP overlap set on the model alone is lost",
        lambda c: all_of(c.on(KNOB), negated(c.on(f"comm_overlap.{KNOB}"))),
        "megatron_bridge",
        BRIDGE_OVERLAP,
        f"comm_overlap.{KNOB}=true",
        level="ignored",
        fix="COM-1",
    ),
    Rule(
        "early-release",
        ("ep_overlap_early_attn_memory_release", KNOB, f"comm_overlap.{KNOB}"),
        "early release of attention memory is a part of EP overlap",
        lambda c: all_of(c.on("ep_overlap_early_attn_memory_release"), negated(overlap(c))),
        "core",
        CORE,
        "EP overlap on, or the early release off",
        since="0.16.0",
        core_message="ep_overlap_early_attn_memory_release",
        fix="COM-1",
    ),
    Rule(
        "dispatch-wgrad-overlap",
        ("overlap_dispatch_backward_with_experts_wgrad", KNOB, f"comm_overlap.{KNOB}"),
        "expert weight gradients under the dispatch's backward exclude EP overlap",
        lambda c: all_of(c.on("overlap_dispatch_backward_with_experts_wgrad"), overlap(c)),
        "core",
        CORE,
        "one of the two",
        since="0.18.0",
        core_message="overlap_moe_expert_parallel_comm must be disabled",
    ),
    Rule(
        "dispatch-wgrad-te",
        ("overlap_dispatch_backward_with_experts_wgrad",),
        "expert weight gradients under the dispatch's backward need Transformer Engine 2.3.0",
        lambda c: all_of(c.on("overlap_dispatch_backward_with_experts_wgrad"), c.before("te", "2.3.0")),
        "core",
        CORE,
        "Transformer Engine 2.3.0 or later",
        since="0.18.0",
        core_message="is required for overlap_dispatch_backward",
    ),
    Rule(
        "dispatch-wgrad-delayed",
        ("overlap_dispatch_backward_with_experts_wgrad", "delay_wgrad_compute"),
        "expert weight gradients under the dispatch's backward exclude delayed weight gradients",
        lambda c: all_of(c.on("overlap_dispatch_backward_with_experts_wgrad"), c.on("delay_wgrad_compute")),
        "core",
        CORE,
        "one of the two",
        since="0.18.0",
        core_message="delay_wgrad_compute and overlap_dispatch",
    ),
    Rule(
        "ep-overlap-max-connections",
        (
            KNOB,
            f"comm_overlap.{KNOB}",
            "tensor_model_parallel_size",
            "context_parallel_size",
            "env.CUDA_DEVICE_MAX_CONNECTIONS",
        ),
        "before Blackwell TP or CP wants CUDA_DEVICE_MAX_CONNECTIONS=1, EP overlap more: one of them loses",
        lambda c: all_of(
            overlap(c), c.before_blackwell(), any_of(c.more_than_one(c.tp), c.more_than_one(c.cp))
        ),
        "ours",
        LM,
        "compare CUDA_DEVICE_MAX_CONNECTIONS 1 and 32, or take TP and CP down",
        level="warning",
        since="0.14.0",
        fix="COM-13",
    ),
)


def _no_virtual_stages(config: Config) -> bool | None:
    """A layout string brings its own virtual stages."""
    stages = config.null("virtual_pipeline_model_parallel_size")
    return all_of(stages, not config.value("pipeline_model_parallel_layout"))


def _in_modules(config: Config, label: str) -> bool | None:
    """In recompute_modules, whatever the granularity: Megatron-Core looks at the list alone here."""
    return (
        config.holds("recompute_modules", label)
        if config.known("recompute_modules")
        else config.recomputes(label)
    )


def _offloads(config: Config, module: str) -> bool | None:
    offloaded = config.offloads()
    return None if offloaded is None else module in offloaded
