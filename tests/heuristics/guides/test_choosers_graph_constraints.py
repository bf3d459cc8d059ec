"""What each graph scope is legal with, and what graphs as a whole clash with: a case a row and its cure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.guides.graph_config import GraphConfig
from heuristics.guides.graph_conflicts import CONFLICTS
from heuristics.guides.graph_constraints import graph_needs, graph_refusals
from heuristics.guides.graph_scopes import SCOPES

ROWS = {row.id: row for row in (*SCOPES, *CONFLICTS)}


def te(*modules: str, **what: object) -> GraphConfig:
    return replace(GraphConfig(impl="transformer_engine", modules=modules), **what)  # type: ignore[arg-type]


def full(**what: object) -> GraphConfig:
    return replace(GraphConfig(impl="full_iteration"), **what)  # type: ignore[arg-type]


def local(*modules: str, **what: object) -> GraphConfig:
    return replace(GraphConfig(impl="local", modules=modules), **what)  # type: ignore[arg-type]


DROPOUT = {"attention_dropout": True, "recompute_modules": ("core_attn",)}
HIDDEN = {"hidden_dropout": True, "recompute_modules": ("mlp",)}
JITTER = {"input_jitter": True, "recompute_modules": ("moe",)}
WGRAD = {"delay_wgrad": True, "te_version": "2.12.0", "wgrad_fusion": True}
OFFLOAD = {"offload_modules": ("attn_proj",)}

CASES = [
    ("attn-dropout", te("attn", **DROPOUT), te("moe_router", **DROPOUT)),
    ("attn-dropout", full(**DROPOUT), full(**DROPOUT | {"recompute_modules": ()})),
    ("attn-dropout", te(**DROPOUT), te(**DROPOUT | {"attention_dropout": False})),
    ("mlp-dense", te("mlp", moe=True, dense_layers=False), te("mlp", moe=True, dense_layers=True)),
    ("moe-drop-pad", te("moe", drop_pad=False), te("moe", drop_pad=True)),
    ("moe-and-router", te("moe", "moe_router"), te("moe")),
    ("moe-model", te("moe_router", moe=False), te("moe_router", moe=True)),
    ("moe-model", te("moe", moe=False), te("attn", moe=False)),
    (
        "router-recompute",
        te("moe_router", recompute_modules=("moe",)),
        te("moe_router", recompute_modules=()),
    ),
    ("router-recompute", te("moe_router", recompute_modules=("moe",)), local("moe_router", **JITTER)),
    ("preprocess-router", te("moe_preprocess"), te("moe_router", "moe_preprocess")),
    ("preprocess-router", te("moe_preprocess"), local("moe_preprocess")),
    ("preprocess-copies", te("moe_preprocess", count_copies=True), te("moe_preprocess", count_copies=False)),
    ("mamba-layers", te("mamba", mamba_layers=False), te("mamba", mamba_layers=True)),
    ("full-iteration-modules", full(modules=("attn",)), full()),
    (
        "full-iteration-sync-free",
        full(moe=True, drop_pad=False, sync_free=False),
        full(moe=True, drop_pad=False, sync_free=True),
    ),
    (
        "full-iteration-sync-free",
        full(moe=True, drop_pad=False, sync_free=False),
        full(moe=True, drop_pad=True, sync_free=False),
    ),
    ("full-iteration-nan", full(nan_checks=True), full(nan_checks=False)),
    ("full-iteration-nan", full(nan_checks=True), te("attn", nan_checks=True)),
    ("modules-by-version", te("moe_router", core_version="0.15.0"), te("moe_router", core_version="0.16.0")),
    ("modules-by-version", te("mlp", core_version="0.15.0"), te("attn", core_version="0.15.0")),
    ("bridge-local", local("attn", bridge=True), local("attn", bridge=False)),
    ("rng-tracker", te("attn", te_rng_tracker=False), te("attn", te_rng_tracker=True)),
    (
        "graph-register",
        te("attn", expandable_segments=True, graph_register_off=False),
        te("attn", expandable_segments=True, graph_register_off=True),
    ),
    (
        "graph-register",
        te("attn", expandable_segments=True, graph_register_off=False),
        te("attn", expandable_segments=False, graph_register_off=False),
    ),
    ("cpu-offloading", te("attn", cpu_offloading=True), te("attn", cpu_offloading=False)),
    (
        "cpu-offloading",
        full(cpu_offloading=True, core_version="0.17.1"),
        full(cpu_offloading=True, core_version="0.18.0"),
    ),
    ("full-recompute", te("attn", full_recompute=True), full(full_recompute=True)),
    ("full-recompute", local("attn", full_recompute=True), te("attn", full_recompute=False)),
    ("hidden-dropout", te("mlp", **HIDDEN), te("attn", **HIDDEN)),
    ("hidden-dropout", te("moe", hidden_dropout=True, recompute_modules=("moe",)), te("moe", **HIDDEN)),
    ("input-jitter", te("moe", **JITTER), te("moe_router", **JITTER)),
    ("ep-overlap-mlp", te("mlp", ep_overlap=True), local("mlp", ep_overlap=True)),
    ("ep-overlap-moe", te("moe", ep_overlap=True), te("moe_router", ep_overlap=True)),
    (
        "ep-overlap-impl",
        full(ep_overlap=True, core_version="0.17.1"),
        full(ep_overlap=True, core_version="0.18.0"),
    ),
    ("offload-local", local("attn", **OFFLOAD), te("attn", **OFFLOAD)),
    ("offload-local", local(offload_modules=("moe_act",)), local("attn", offload_modules=("moe_act",))),
    ("offload-moe", te("moe", **OFFLOAD), te("moe", offload_modules=())),
    ("offload-warmup", te("attn", warmup_steps=0, **OFFLOAD), te("attn", warmup_steps=3, **OFFLOAD)),
    ("offload-in-flight", full(offloads_in_flight=-1, **OFFLOAD), full(offloads_in_flight=0, **OFFLOAD)),
    (
        "wgrad-te-version",
        te("moe_preprocess", delay_wgrad=True, te_version="2.9.0"),
        te("moe_preprocess", delay_wgrad=True, te_version="2.10.0"),
    ),
    ("wgrad-in-graph", te("attn", **WGRAD | {"te_version": "2.11.0"}), te("attn", **WGRAD)),
    ("wgrad-in-graph", te("attn", **WGRAD | {"wgrad_fusion": False}), te("attn", **WGRAD)),
    (
        "wgrad-in-graph",
        te("moe_router", shared_expert_in_router=True, **WGRAD | {"wgrad_fusion": False}),
        te("moe_router", shared_expert_in_router=False, **WGRAD | {"wgrad_fusion": False}),
    ),
    ("wgrad-bias", te("attn", attention_bias=True, **WGRAD), te("attn", attention_bias=False, **WGRAD)),
    ("hybrid-cp", te("attn", hybrid_cp=True), te("attn", hybrid_cp=False)),
    ("mfsdp-v2", te("attn", mfsdp_v2=True), te("attn", mfsdp_v2=False)),
    (
        "gtp-priority",
        te("attn", gtp_on_blackwell=True, node_priority=False),
        te("attn", gtp_on_blackwell=True, node_priority=True),
    ),
    ("static-shapes", te("attn", static_shapes=False), te("attn", static_shapes=True)),
    (
        "packed-sequences",
        te("attn", packed_sequences=True, padded_sequences=False),
        te("attn", packed_sequences=True, padded_sequences=True),
    ),
]


@pytest.mark.parametrize(("row", "broken", "fine"), CASES, ids=[f"{case[0]}" for case in CASES])
def test_a_row_refuses_what_breaks_it_and_nothing_else(
    row: str, broken: GraphConfig, fine: GraphConfig
) -> None:
    refusal = ROWS[row]
    assert (refusal.what, refusal.reason, refusal.source) in graph_refusals(broken)
    assert refusal.reason not in [found.reason for found in graph_refusals(fine)]


def test_every_row_has_a_case() -> None:
    assert {case[0] for case in CASES} == set(ROWS)


@pytest.mark.parametrize("config", [te("attn", "moe_router", "moe_preprocess"), te(), full(), local("attn")])
def test_what_is_unknown_refuses_nothing(config: GraphConfig) -> None:
    assert graph_refusals(config) == ()


def test_without_graphs_nothing_is_refused_and_nothing_needed() -> None:
    off = GraphConfig(cpu_offloading=True, full_recompute=True, nan_checks=True, te_rng_tracker=False)
    assert graph_refusals(off) == ()
    assert graph_needs(off) == ()


def test_what_must_be_set_with_graphs_is_named_until_it_is_known_to_be_set() -> None:
    unknown = " ".join(graph_needs(te("attn")))
    assert "--te-rng-tracker" in unknown
    assert "NCCL_GRAPH_REGISTER=0" in unknown
    assert "nan" not in unknown
    assert graph_needs(te("attn", te_rng_tracker=True, expandable_segments=False)) == ()
    assert any("--no-check-for-nan-in-loss-and-grad" in need for need in graph_needs(full()))
