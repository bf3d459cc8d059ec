"""The CUDA-graph chooser: every row of its decision table, and the spelling of each release."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from heuristics.config.about import Guidance
from heuristics.config.observed import Observed
from heuristics.guides.cuda_graphs import Graphs, Impl, choose_graphs, graph_change
from heuristics.guides.table import EDITIONS, fire, table
from heuristics.run.run import Run
from tests.doubles.runs import BOTH, run_by, run_that
from traces.settings.settings import Framework, Value, settings
from traces.settings.spelling import can_spell, spell

ROUTER = ("moe_router", "moe_preprocess")
MOE = Observed(moe=True, recompute_full=False)
NEW: dict[str, object] = {"guidance": "main-2026-08", "routing": "dropless"}


def with_host(run: Run, cost_ns: int) -> Run:
    return replace(run, cost_by_kind_ns={"host_overhead": {"launch": cost_ns, "gc": 50}})


@pytest.mark.parametrize("guidance", BOTH)
def test_no_graphs_where_few_launches_show(guidance: str) -> None:
    run = run_by(NEW | {"guidance": guidance}, MOE)
    quiet = choose_graphs(with_host(run, 9))
    assert (quiet.impl, quiet.rule) == ("none", "host-quiet")
    assert quiet.row.never == ("transformer_engine", "full_iteration")
    assert quiet.needs == {}
    assert choose_graphs(with_host(run, 10)).rule == "dropless"


SYNC_FREE = NEW | {"gpu": "GB200", "precision": "mxfp8", "te_op_fuser": True, "ep": 64}


def test_dropless_without_syncs_captures_the_iteration_with_paged_stash() -> None:
    run = run_by(SYNC_FREE, replace(MOE, dispatcher="hybridep"))
    choice = choose_graphs(run)
    assert (choice.impl, choice.modules, choice.rule) == ("full_iteration", (), "dropless-sync-free")
    assert "--moe-paged-stash --moe-expert-rank-capacity-factor 1.5" in choice.notes[0]
    assert "not where steps are often run again" in choice.notes[0]
    assert choice.needs == {
        "moe_paged_stash": True,
        "moe_expert_rank_capacity_factor": 1.5,
        "rerun.check_for_nan_in_loss": False,
        "ddp.check_for_nan_in_grad": False,
        "use_te_rng_tracker": True,
        "rng.te_rng_tracker": True,
    }
    assert choose_graphs(run, "seed").modules == ("attn", *ROUTER)


def configured(knobs: dict[str, Value], framework: Framework | None = None) -> Run:
    return replace(run_by(NEW | {"guidance": "seed"}, MOE), settings=settings(knobs, "t", framework))


def test_what_is_set_with_graphs_is_named_until_it_is_known_to_be_set() -> None:
    needs = choose_graphs(configured({})).needs
    assert needs == {"env.NCCL_GRAPH_REGISTER": "0", "use_te_rng_tracker": True, "rng.te_rng_tracker": True}
    known: dict[str, Value] = {"use_te_rng_tracker": True, "env.PYTORCH_CUDA_ALLOC_CONF": None}
    assert choose_graphs(configured(known, "megatron_bridge")).needs == {}


def test_a_rule_that_is_broken_for_certain_leaves_its_module_out() -> None:
    bias: dict[str, Value] = {"delay_wgrad_compute": True, "add_qkv_bias": True}
    choice = choose_graphs(configured(bias, "megatron_bridge"))
    assert choice.modules == ROUTER
    assert [(one.what, one.reason) for one in choice.refused] == [
        ("attn", "delayed weight gradients of captured attention do not allow an attention bias")
    ]
    assert choose_graphs(configured({"delay_wgrad_compute": True}, "megatron_bridge")).modules == (
        "attn",
        *ROUTER,
    )


def picked(impl: Impl, *modules: str) -> Graphs:
    return Graphs(impl, modules)


def spelled(graphs: Graphs, framework: Framework, core: str | None) -> tuple[str, ...]:
    made = graph_change(graphs, core)
    return spell({one: made[one] for one in made if can_spell(one, framework, core)}, framework, core)


ROUTED = picked("transformer_engine", *ROUTER)
WHOLE = picked("full_iteration")
ATTENTION = picked("transformer_engine", "attn")


@pytest.mark.parametrize(
    ("choice", "core", "flags"),
    [
        (ATTENTION, "0.12.0", ("--external-cuda-graph", "--cuda-graph-scope attn")),
        (ROUTED, "0.15.0", ()),
        (WHOLE, "0.13.0", ()),
        (WHOLE, "0.14.0", ("--enable-cuda-graph", "--cuda-graph-scope full_iteration")),
        (picked("transformer_engine"), "0.14.0", ("--external-cuda-graph", "--cuda-graph-scope full")),
        (WHOLE, "0.15.0", ("--cuda-graph-impl local", "--cuda-graph-scope full_iteration")),
        (picked("none"), "0.15.0", ("--cuda-graph-impl none",)),
        (ROUTED, "0.16.1",
         ("--cuda-graph-impl transformer_engine", "--cuda-graph-scope moe_router moe_preprocess")),
        (ROUTED, "core_v0.18.0",
         ("--cuda-graph-impl transformer_engine", "--cuda-graph-modules moe_router moe_preprocess")),
        (WHOLE, "0.19.0", ("--cuda-graph-impl full_iteration",)),
        (picked("local"), "0.18.0", ("--cuda-graph-impl local",)),
    ],
)  # fmt: skip
def test_each_release_spells_graphs_its_own_way(
    choice: Graphs, core: str | None, flags: tuple[str, ...]
) -> None:
    assert spelled(choice, "megatron_lm", core) == flags


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_row_of_the_table_can_fire(edition: Guidance) -> None:
    unmet: dict[str, object] = {
        "no_memory_error": True, "graphs_run": True, "host_visible": True, "layers_recomputed": False,
        "experts_run": None, "sync_free": False,
    }  # fmt: skip
    unmet |= {"routing": "dropless", "packed": False, "family": "other", "stage_now": "tuned"}
    unmet |= {"memory_tight": False}
    for rule in table("cuda_graphs")[edition]:
        assert fire("cuda_graphs", run_that(rule, unmet), edition).row is rule
        assert rule.how in get_args(Impl)
