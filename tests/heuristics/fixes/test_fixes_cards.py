"""Single cards: what each needs of a run, and what it sets there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.change import Change, lines
from heuristics.run.run import Run
from tests.doubles.fixes import complete, configured, states
from traces.sections.tables import WallId
from traces.settings.settings import Value

MEM_4 = CATALOGUE["MEM-4"]
HST_2 = CATALOGUE["HST-2"]
HST_9 = CATALOGUE["HST-9"]


@pytest.mark.parametrize(("presets", "harness"), [
    (("bf16", "fp8_cs", "fp8_sc"), ("--compute_dtype fp8_sc",)),
    (("bf16", "fp8_cs"), ("--compute_dtype fp8_cs",)), (("bf16",), ()),
])  # fmt: skip
def test_a_run_of_bridges_scripts_gets_a_precision_that_has_a_preset(
    presets: tuple[str, ...], harness: tuple[str, ...]
) -> None:
    run = configured({"launcher.precisions": presets}, gpu="H100", stage="tuned", precision="bf16")
    assert MEM_4.knobs(run).bridge_harness == harness
    assert any("have a preset" in one.text for one in MEM_4.preconditions(run)) is not bool(harness)


@pytest.mark.parametrize(
    ("given", "core"),
    [
        (Given(core_version="0.17.1"), "0.17.1"),
        (Given(core_version="0.17.1", bridge_version="0.6.0"), "0.17.1"),
        *((Given(bridge_version="0.3.1"), "0.16.1"), (Given(bridge_version="v0.6.0"), "0.19.0")),
        *((Given(bridge_version="0.9.0"), None), (Given(), None)),
    ],
)
def test_the_core_is_the_one_given_else_that_of_the_bridge(given: Given, core: str | None) -> None:
    assert Run(given=given).config.core_text == core


def test_a_layout_that_equals_the_split_as_it_is_is_no_change() -> None:
    sizes: dict[str, Value] = {
        "num_layers": 94,
        "pipeline_model_parallel_size": 8,
        "virtual_pipeline_model_parallel_size": 4,
    }
    counted: dict[str, Value] = {
        "account_for_embedding_in_pipeline_split": True,
        "account_for_loss_in_pipeline_split": True,
    }
    fix = CATALOGUE["COM-6"]
    made = [
        any("is not set yet" in one.text for one in fix.preconditions(configured(sizes, more)))
        for more in (counted, {}, counted | {"num_layers": 96})
    ]
    assert made == [True, False, False]


def test_less_of_the_optimizer_goes_to_the_cpu_where_its_pause_is_seen() -> None:
    costs: dict[WallId, dict[str, int]] = {"host_overhead": {"cpu_optimizer": 9, "python": 1}}
    seen = Run(cost_by_kind_ns=costs, total_ns={"host_overhead": 10})
    assert [one.state for one in HST_9.preconditions(seen)] == ["met", "unknown"]
    assert [one.state for one in HST_9.preconditions(Run())] == ["unmet", "unknown"]
    assert HST_9.knobs(seen).megatron_lm[0] == "--optimizer-offload-fraction 0.5"
    half = configured({"optimizer.optimizer_offload_fraction": 0.5})
    assert HST_9.knobs(half).megatron_bridge[0] == "optimizer.optimizer_offload_fraction=0.25"


@pytest.mark.parametrize(("recorder", "asked"), [(None, True), ("nsys", False)])
def test_collections_that_no_figure_names_may_be_in_the_time_of_python(
    recorder: str | None, asked: bool
) -> None:
    run = Run(Observed(recorder=recorder), cost_by_kind_ns={"host_overhead": {"python": 100, "launch": 100}})
    assert ("python" in HST_2.of_run(HST_2, run).kinds) is asked


def test_a_change_lists_only_what_is_new_also_for_the_harness() -> None:
    there: dict[str, Value] = {"ddp.overlap_grad_reduce": True, "env.NVTE_FWD_LAYERNORM_SM_MARGIN": "16"}
    run = configured({**there, "moe_token_dispatcher_type": "alltoall", "moe_flex_dispatcher_backend": None})
    flag = "--moe_flex_dispatcher_backend None"
    new = lines(Change({**there, "moe_router_dtype": "fp32"}, harness=(flag,)), run)
    assert new.megatron_bridge == ("model.moe_router_dtype=fp32",)
    assert (new.bridge_harness, new.environment) == ((), ())


OVERLAP: dict[str, Value] = {"overlap_moe_expert_parallel_comm": True}


@pytest.mark.parametrize("module", ["attn", "moe_router"])
def test_delayed_gradients_want_a_newer_transformer_engine_inside_graphs(module: str) -> None:
    values: dict[str, Value] = {
        **OVERLAP,
        "ddp.overlap_grad_reduce": True,
        "cuda_graph_impl": "transformer_engine",
        "cuda_graph_modules": (module,),
    }
    older, newer = (complete(values, te_version=version) for version in ("2.11.0", "2.12.0"))
    text = "Engine 2.12"
    as_lm = [replace(one, settings=replace(one.settings, framework="megatron_lm")) for one in (older, newer)]
    assert states(CATALOGUE["COM-9"], text, *as_lm) == ["unmet", "met"]


@pytest.mark.parametrize(
    ("values", "flags"),
    [
        ({"context_parallel_size": 16}, ("--cp-comm-type p2p",)),
        ({"context_parallel_size": 16, "cp_comm_type": "a2a"}, ()),  # the last kind to try
        ({"context_parallel_size": 16, "cp_comm_type": "p2p", "num_attention_heads": 8},
         ("--cp-comm-type a2a+p2p", "--hierarchical-context-parallel-sizes 8 2")),
        ({"context_parallel_size": 4, "cp_comm_type": "p2p", "num_attention_heads": 8},
         ("--cp-comm-type a2a",)),
        ({"context_parallel_size": 8, "cp_comm_type": "p2p", "num_query_groups": 4},
         ("--cp-comm-type a2a+p2p", "--hierarchical-context-parallel-sizes 4 2")),
    ],
)  # fmt: skip
def test_a_ring_that_runs_is_cut_in_two_levels_that_heads_and_domain_hold(
    values: dict[str, Value], flags: tuple[str, ...]
) -> None:
    assert CATALOGUE["COM-7"].knobs(configured(values, gpu="H100")).megatron_lm == flags
