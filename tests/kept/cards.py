"""Runs of which anything may be known or not, and all that is told of them one by one: needs, lines, facts.

Whole judgements show little of these: a fix that a run does not need is in no plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Final, get_type_hints

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.config.sizes import Sizes
from heuristics.config.view import Config, Trust
from heuristics.fixes.catalogue import CATALOGUE, fixes_of
from heuristics.guides.choices import choose_all
from heuristics.run.run import WALL_IDS, Run
from tests.megatron.random_runs import drawn_run
from tests.read_back.source import all_facts
from traces.settings.derive import add_derived, with_ranks
from traces.settings.draft import Draft
from traces.settings.effective import effective
from traces.settings.settings import Settings, Value, settings

EACH: Final = 40
GB: Final = 10**9
FRACTIONS: Final = (0.0, 0.04, 0.05, 0.1, 0.2, 0.21, 0.5, 0.51, 0.6, 0.8, 0.81, 0.9)
MODULES: Final = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "moe_act", "layernorm", "mla_up_proj",
                  "shared_experts", "core_attn", "swiglu")  # fmt: skip
PRECISIONS: Final = ("bf16", "fp16", "fp8_delayed", "fp8_current", "fp8_blockwise", "mxfp8", "nvfp4", "mixed")
SIZES: Final = (1, 1, 2, 4, 8, 16, 32, 64)
KNOWN: Final[Mapping[str, tuple[object, ...]]] = {
    # observed
    "moe": (True, True, True, False), "framework": ("megatron", "pytorch", "jax", "none"),
    "gpu": ("A100", "H100", "H100", "B200", "GB200", "GB200", "VR200"),
    "capability": ((7, 0), (7, 5), (8, 0), (9, 0), (10, 0)), "memory_bytes": (80 * GB,),
    "peak_bytes": (30 * GB, 40 * GB, 70 * GB, 71 * GB, 79 * GB),
    "dispatcher": ("alltoall", "allgather", "deepep", "hybridep", "none", "unknown"),
    "allocator_calls_per_step": (0.0, 1.0, 2.0),
    "precision": PRECISIONS, "expert_gemms_per_layer": (6.0, 7.0, 64.0),
    "router_kernels_per_layer": (3.0, 31.0, 32.0, 72.0), "out_of_memory": ("setup", "forward", "optimizer"),
    "late_cause": ("slow_device", "slow_host", "slow_link", "routing_imbalance"),
    "recorder": ("nsys", "kineto"), "in_use": ((), ("compiled",), ("fused_optimizer", "dali")),
    # given
    "nvlink_domain": (8, 36, 72), "world_size": SIZES, "gpus_per_node": (4, 8),
    "ep": (1, 4, 7, 8, 12, 16, 31, 32, 64, 128), "etp": (1, 2),
    "tp": SIZES, "cp": SIZES, "pp": SIZES, "vpp": (1, 2), "stage": ("bring_up", "tuned"),
    "routing": ("dropless", "force_balance", "drop_pad"),
    "family": ("dsv3", "qwen3_235b", "qwen3_30b", "qwen3_next", "vlm", "moonlight", "other"),
    "core_version": ("0.14.0", "0.15.3", "0.16.0", "0.16.1", "0.17.1", "0.18.0", "0.19.0"),
    "bridge_version": ("0.3.1", "0.4.0", "0.5.0", "0.6.0"),
    "torch_version": ("2.5.1", "2.6.0", "2.8.0", "2.9.0"),
    "te_version": ("2.0.0", "2.1.0", "2.2.0", "2.3.0", "2.5.0",
                   "2.6.0", "2.7.0", "2.11.0", "2.12.0", "2.14.0"),
    "container": ("nvcr.io/nvidia/nemo:26.02",),
    "graph_impl": ("none", "local", "full_iteration", "transformer_engine"),
    "guidance": ("seed", "main-2026-08"),
}  # fmt: skip
"""What a field may be that is neither a part nor yes or no."""
KNOBS: Final[Mapping[str, tuple[Value, ...]]] = {
    "pipeline_model_parallel_layout": (
        "Et|tL", "Et|t|t|tL", "Et|(tt|)*2mL", "Et|tmmL", "tE|tL", "Et|Lt", "EEt|tL", "Et|LL", "Etm|tL",
        "Et|t|mm|tL", "Et|m|t|tL", "Et|t|m|mL", "Et|x", None),
    "hybrid_layer_pattern": ("ME|M*/M|M", "MEM", "ME|M*|E", "ME|M*", "M|E|M|E"),
    "num_layers": (2, 3, 8, 16, 94, 96), "pipeline_model_parallel_size": (1, 2, 4),
    "virtual_pipeline_model_parallel_size": (None, 2, 4),
    "num_layers_in_first_pipeline_stage": (None, 3, 4, 6),
    "num_layers_in_last_pipeline_stage": (None, 2, 3, 4, 5),
    "account_for_embedding_in_pipeline_split": (True, False),
    "account_for_loss_in_pipeline_split": (True, False),
    "moe_flex_dispatcher_backend": ("deepep", "hybridep", None), "moe_enable_deepep": (True, False),
    "env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN": ("8", "x", None),
    "moe_pad_expert_input_to_capacity": (True, False), "fp8": ("e4m3", None), "bf16": (True, False),
    "fp16": (False,),
    "ddp.use_megatron_fsdp": (True, False), "ddp.megatron_fsdp_version": (1, 2),
    "use_torch_fsdp2": (True, False),
    "fp8_recipe": ("blockwise", "mxfp8", "delayed"), "cp_comm_type": ("p2p", "a2a", ("p2p", "a2a"),
    "all_gather"),
    "moe_router_load_balancing_type": ("aux_loss", ("aux_loss",), ("aux_loss", "z")),
    "moe_aux_loss_coeff": (0.1, (0.1,), (0.1, 0.2), (0.1, 0.2, 0.3)),
    "hierarchical_context_parallel_sizes": ((4, 2), (4, "x"), None),
    "env.CUDA_DEVICE_MAX_CONNECTIONS": ("1", "8", "32"), "optimizer.optimizer": ("adam", "sgd", "muon"),
    "ddp.use_distributed_optimizer": (True, False), "ddp.nccl_ub": (True, False),
    "optimizer.optimizer_cpu_offload": (True, False), "mtp_num_layers": (None, 1, 2),
    "overlap_moe_expert_parallel_comm": (True, False), "cpu_offloading": (True, False),
    "seq_length": (4096, 8192, 32768),
    "offload_modules": (("core_attn",), ("moe_act",)), "variable_seq_lengths": (True, False),
    "num_attention_heads": (7, 8, 32), "moe_shared_expert_intermediate_size": (512, None),
    "transformer_impl": ("local", "transformer_engine"), "gated_linear_unit": (True, False),
    "moe_expert_rank_capacity_factor": (1.5, None), "moe_flex_dispatcher_num_sms": (16, 32),
    "overlap_p2p_comm": (True, False), "comm_overlap.overlap_p2p_comm": (True, False),
    "comm_overlap.bucket_size": (5, None), "comm_overlap.data_parallel_size": (1, 2),
    "data_parallel_size": (1, 2), "rng.te_rng_tracker": (True, False), "use_te_rng_tracker": (True, False),
    "cuda_graph_impl": ("none", "local", "transformer_engine"), "enable_cuda_graph": (True, False),
    "external_cuda_graph": (True, False), "cuda_graph_modules": (("full",), ("attn", "full_iteration"), ()),
    "moe_layer_recompute": (True, False), "recompute_granularity": ("full", "selective", None),
    "recompute_modules": (("moe", "mlp"), ("mlp",), None), "moe_deepep_num_sms": (24,),
    "moe_hybridep_num_sms": (32,), "hidden_size": (96, 100, 2048), "ffn_hidden_size": (64, None),
    "kv_channels": (None,), "num_query_groups": (None, 4), "moe_ffn_hidden_size": (None, 64),
    "position_embedding_type": ("none", "rope"), "apply_rope_fusion": (True,),
    "activation_func": ("silu", "gelu"), "cpu_offloading_num_layers": (0, 2),
    "params_dtype": ("fp16", "bf16", None), "pipeline_dtype": (None,), "sequence_parallel": (True, False),
    "expert_tensor_parallel_size": (None, 1), "expert_model_parallel_size": (1, 2, 8),
    "tensor_model_parallel_size": (1, 2, 4), "moe_token_dispatcher_type": ("flex", "alltoall"),
    "comm_overlap.tp_comm_overlap": (True, False), "group_query_attention": (True, False),
    "squared_relu": (True,), "num_layers_per_virtual_pipeline_stage": (0, 1, 2, 3, 8),
    "world_size": (12, 16, 64), "context_parallel_size": (1, 2),
    "mixed_precision": ("fp16_mixed", "own"), "mixed_precision.bf16": (True,),
    "train.global_batch_size": (24, 1024), "add_bias_linear": (True, False),
    "delay_wgrad_compute": (True, False),
}  # fmt: skip
KINDS: Final = {
    "memory": ("recompute", "offload", "allocator"),
    "communication": ("ep_dispatch", "ep_combine", "tp", "pp_p2p"),
    "host_overhead": ("launch", "gc", "python", "data", "cpu_optimizer"),
    "compute": ("gemm", "permute", "router"),
}  # fmt: skip


def draw_parts(seed: int) -> Run:
    """A run of a configuration with knobs left out and changed, of which a part is observed and given."""
    dice = Random(f"cards {seed}")
    drawn = drawn_run(dice).configured.settings
    left = {0: 0.0, 1: 1.0, 2: 0.5, 3: 0.9}[seed % 4]
    values = {knob: one.value for knob, one in drawn.by_knob.items() if dice.random() < left}
    values |= {knob: dice.choice(several) for knob, several in KNOBS.items() if dice.random() < 0.2}
    share = (0.2, 0.5, 0.9)[seed % 3]
    costs = {
        wall: {one: dice.choice((1, 5, 50)) for one in KINDS[wall] if dice.random() < 0.5}
        for wall in WALL_IDS
    }
    return Run(
        Observed(**_part(dice, Observed, share)),
        Given(**_part(dice, Given, share)),
        {wall: cost for wall, cost in costs.items() if cost and dice.random() < 0.7},
        100,
        {wall: sum(cost.values()) for wall, cost in costs.items()},
        dice.random() < 0.1,
        settings=settings(values, "drawn", drawn.framework),
    )


def _part(dice: Random, kind: type, share: float) -> dict[str, Any]:
    """So large a share of the fields of what may be known."""
    hints, found = get_type_hints(kind), {}
    for one in fields(kind):
        hint = str(hints[one.name])
        known = KNOWN.get(one.name) or {"bool | None": (True, False), "float | None": FRACTIONS}.get(hint)
        if one.name in ("recompute_modules", "graph_modules"):
            known = (tuple(dice.sample(MODULES, dice.randint(0, 3))),)
        if known and dice.random() < share:
            found[one.name] = dice.choice(known)
    return found


def cards(_: Path, first: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What each fix needs and sets, what each fact is, and what the guides choose."""
    for seed in range(first, first + EACH):
        run = draw_parts(seed)
        draft = Draft("drawn", by_knob=dict(run.settings.by_knob))
        add_derived(draft, is_complete=seed % 5 == 0)
        several = {**CATALOGUE, **{f"pytorch {name}": fix for name, fix in fixes_of("pytorch").items()}}
        asked = {Run: run, Config: run.view(Trust.CHECKED)}
        told = vars(Sizes) | vars(Config)
        questions = [name for name, one in told.items() if isinstance(one, property | cached_property)]
        said = {name: fact.of(asked[fact.view]) for name, fact in all_facts().items() if fact.view in asked}
        yield (
            f"{seed}",
            {
                "needs": {name: fix.preconditions(run) for name, fix in several.items()},
                "lines": {name: fix.knobs(run) for name, fix in several.items()},
                "facts": said,
                "derived": with_ranks(Settings(draft.by_knob)),
                "effective": effective(run.settings, run.given.core_version),
                "active": run.active,
                "questions": {name: getattr(run.config, name) for name in sorted(questions)},
                "choices": choose_all(run),
            },
        )
