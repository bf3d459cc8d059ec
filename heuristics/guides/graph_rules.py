"""Which CUDA graphs first, by workload: NVIDIA's guides as an ordered table, in two editions.

`seed`: the CUDA-graph and MoE workflow skills of Megatron-Bridge up to v0.6.0. `main-2026-08`: the same on
main, which starts narrower. The order of the rows is ours: what forbids graphs first, then the workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from heuristics.guides.graph_choice import Impl
from heuristics.guides.table import When
from heuristics.run.given import Guidance
from traces.limits import Limit
from traces.settings.settings import Value

PP_DEEP: Final = Limit(
    4,
    "pipeline stages",
    "ours: no guide has a number; a stage keeps a graph per layer and microbatch, over 10 GB in all",
)

ROUTER: Final = ("moe_router", "moe_preprocess")
STASH: Final[Mapping[str, Value]] = {"moe_paged_stash": True, "moe_expert_rank_capacity_factor": 1.5}
"""What keeps expert sizes off the host, beside HybridEP and Transformer Engine's op fuser."""
ATTN_ROUTER: Final = ("attn", *ROUTER)
_SKILL: Final = "Megatron-Bridge, skill perf-cuda-graphs"
_FLOW: Final = "Megatron-Bridge, skill perf-moe-optimization-workflow"


@dataclass(frozen=True, slots=True)
class GraphRule:
    """One row: under `when`, capture `modules` with `impl`; after an A/B `then` may widen it, `never` not.

    `sets`: knobs that belong to it.
    """

    id: str
    when: When
    impl: Impl
    modules: tuple[str, ...]
    then: tuple[str, ...]
    never: tuple[str, ...]
    note: str
    source: str
    sets: Mapping[str, Value] = field(default_factory=dict)


_FORBIDDING: Final = (
    GraphRule(
        "host-quiet",
        {"graphs_run": (False,), "host_visible": (False,)},
        "none",
        (),
        (),
        ("transformer_engine", "full_iteration"),
        "CUDA graphs remove launch overhead, and this run has little of it",
        _SKILL,
    ),
    GraphRule(
        "full-recompute-dense",
        {"full_recompute": (True,), "moe": (False,)},
        "full_iteration",
        (),
        (),
        ("transformer_engine",),
        "full recompute works only with a graph of the full iteration; or use selective recompute",
        _SKILL,
    ),
    GraphRule(
        "full-recompute-drop-pad",
        {"full_recompute": (True,), "routing": ("drop_pad",)},
        "full_iteration",
        (),
        (),
        ("transformer_engine",),
        "full recompute works only with a graph of the full iteration; or use selective recompute",
        _SKILL,
    ),
    GraphRule(
        "full-recompute-sync-free",
        {"full_recompute": (True,), "sync_free": (True,)},
        "full_iteration",
        (),
        (),
        ("transformer_engine",),
        "full recompute works only with a graph of the full iteration; or use selective recompute",
        _SKILL,
        STASH,
    ),
    GraphRule(
        "full-recompute",
        {"full_recompute": (True,)},
        "none",
        (),
        ROUTER,
        ("transformer_engine", "full_iteration"),
        "full recompute does not allow graphs of parts of a layer, and dropless experts do not allow "
        "one of the full iteration: first selective recompute (MEM-2), then graphs",
        _SKILL,
    ),
    GraphRule(
        "packed-sequences",
        {"packed": (True,)},
        "none",
        (),
        ("full_iteration", "attn"),
        ("transformer_engine",),
        "no graphs with packed sequences; full iteration or attn only with pad_cu_seqlens and "
        "pad_to_max_length; Energon's own packing does not allow graphs",
        "Megatron-Bridge, training/config.py",
    ),
    GraphRule(
        "dense",
        {"moe": (False,)},
        "transformer_engine",
        ("attn",),
        ("mlp",),
        ("moe", "moe_router"),
        "a model without experts: attention first, then the MLP",
        _SKILL,
    ),
    GraphRule(
        "vlm-bring-up",
        {"moe": (True,), "family": ("vlm",), "stage": ("bring_up",)},
        "none",
        (),
        ROUTER,
        ("transformer_engine", "full_iteration"),
        "graphs only when training on real vision data is stable",
        _SKILL,
    ),
    GraphRule(
        "drop-pad",
        {"moe": (True,), "routing": ("drop_pad",)},
        "transformer_engine",
        ("moe",),
        ("full_iteration",),
        ("moe_router",),
        "experts have a fixed size: the whole MoE layer or the full iteration, never moe with moe_router",
        _FLOW,
    ),
    GraphRule(
        "memory-tight",
        {"moe": (True,), "memory_tight": (True,)},
        "transformer_engine",
        ROUTER,
        (),
        ("attn", "mlp", "moe", "full_iteration"),
        "graphs need memory and memory is short: the narrowest scope or none",
        _SKILL,
    ),
    GraphRule(
        "pp-deep",
        {"moe": (True,), "pp_deep": (True,)},
        "transformer_engine",
        ROUTER,
        (),
        ("mlp", "moe", "full_iteration"),
        "with pipeline parallelism each layer and microbatch has its own graph: the narrowest scope or none",
        "Megatron-Bridge, docs/performance-guide.md",
    ),
)

_UNKNOWN: Final = GraphRule(
    "unknown-model",
    {},
    "none",
    (),
    (),
    (),
    "it is unknown whether the model has experts, and so what a graph could capture",
    _SKILL,
)

SEED_RULES: Final = (
    *_FORBIDDING,
    GraphRule(
        "dropless",
        {"moe": (True,)},
        "transformer_engine",
        ATTN_ROUTER,
        (),
        ("moe", "full_iteration"),
        "dropless experts cannot be captured",
        _FLOW,
    ),
    _UNKNOWN,
)

MAIN_RULES: Final = (
    *_FORBIDDING,
    GraphRule(
        "dropless-sync-free",
        {"moe": (True,), "sync_free": (True,)},
        "full_iteration",
        (),
        (),
        ("moe",),
        "the host reads no size of an expert: the full iteration, with paged stash and rank capacity 1.5 "
        "(--moe-paged-stash --moe-expert-rank-capacity-factor 1.5); not where steps are often run again",
        "Megatron-Bridge, perf_recipes; Megatron-LM, paged_stash.md",
        STASH,
    ),
    GraphRule(
        "dropless",
        {"moe": (True,)},
        "transformer_engine",
        ROUTER,
        ("attn", "mlp"),
        ("moe", "full_iteration"),
        "the narrowest scope first; add attn after an A/B test, mlp if the first layers are dense",
        _SKILL,
    ),
    _UNKNOWN,
)

RULES: Final[Mapping[Guidance, tuple[GraphRule, ...]]] = {"seed": SEED_RULES, "main-2026-08": MAIN_RULES}
