"""Precision recipes and recompute modules: every row of the guides' tables.

seed 002 and seed 003: Megatron-Bridge's skill perf-moe-optimization-workflow as published up to 0.6.
"""

from __future__ import annotations

import pytest

from heuristics.config.about import Given, Stage
from heuristics.config.observed import Observed
from heuristics.guides.modules import _LEGAL, MODULES
from heuristics.guides.precision import ROUTER, choose_precision
from heuristics.guides.recompute import choose_recompute
from heuristics.guides.table import EDITIONS
from heuristics.run.run import Run
from tests.doubles.fixes import complete
from traces.settings.settings import Value

GOOD_FIRST_CHOICES = {"layernorm", "core_attn", "moe_act", "mlp", "shared_experts", "mla_up_proj"}
GROUPED = Observed(moe=True, grouped_gemm=True, precision="bf16", graph_frac=0.0, ep_overlap=False)


def refusals(run: Run) -> dict[str, str]:
    return {refusal.what: refusal.reason for refusal in choose_recompute(run).refused}


@pytest.mark.parametrize(
    ("gpu", "stage", "precision", "recipe"),
    [
        ("H100", None, "bf16", "fp8_blockwise"),
        ("H200", None, "bf16", "fp8_blockwise"),
        ("B200", None, "bf16", "mxfp8"),
        ("B300", None, "bf16", "mxfp8"),
        ("GB200", None, "bf16", "mxfp8"),
        ("GB300", "tuned", "bf16", "mxfp8"),
        ("GB200", "tuned", "mxfp8", "nvfp4"),
    ],
)
def test_seed_003_fp8_recipe_table(gpu: str, stage: Stage | None, precision: str, recipe: str) -> None:
    given = Given(gpu=gpu, stage=stage, precision=precision, te_version="2.14", guidance="seed")
    assert choose_precision(Run(given=given)).recipe == recipe


def test_seed_003_the_router_stays_in_fp32() -> None:
    assert ROUTER == "fp32"


@pytest.mark.parametrize("stage", ["bring_up", None])
def test_seed_003_fp4_only_once_a_wider_run_is_stable(stage: Stage | None) -> None:
    given = Given(gpu="GB200", precision="mxfp8", stage=stage, guidance="seed")
    assert choose_precision(Run(given=given)).recipe == "mxfp8"


def test_main_names_candidates_on_hopper_and_seed_one_recipe() -> None:
    run = Run(given=Given(gpu="H100", stage="tuned", precision="bf16"))
    choice = choose_precision(run)
    assert choice.row.id == "hopper-precision"
    assert choice.candidates == ("fp8_blockwise", "fp8_current", "fp8_delayed")
    assert choose_precision(run, "seed").candidates == ("fp8_blockwise",)
    assert choice.asks == ()


def test_main_names_candidates_on_blackwell_too() -> None:
    run = Run(given=Given(gpu="B200", stage="tuned", precision="bf16"))
    assert choose_precision(run).candidates == ("mxfp8", "fp8_current")
    assert choose_precision(run, "seed").candidates == ("mxfp8",)


@pytest.mark.parametrize(("gpu", "seed"), [("H100", "fp8_blockwise"), ("GB200", "mxfp8")])
def test_main_wants_a_bf16_run_first(gpu: str, seed: str) -> None:
    run = Run(given=Given(gpu=gpu, stage="bring_up", precision="bf16"))
    choice = choose_precision(run)
    assert (choice.recipe, choice.candidates) == ("bf16", ("bf16",))
    assert choose_precision(run, "seed").candidates == (seed,)


def test_both_profiles_agree_on_fp4() -> None:
    run = Run(given=Given(gpu="B300", stage="tuned", precision="mxfp8"))
    assert {choose_precision(run, edition).recipe for edition in EDITIONS} == {"nvfp4"}


def test_an_unknown_gpu_stays_with_bf16_and_is_asked_for() -> None:
    choice = choose_precision(Run())
    assert choice.recipe == "bf16"
    assert choice.asks == ("--gpu-model",)


def test_a_gpu_in_no_row_stays_with_bf16_and_nothing_is_asked() -> None:
    choice = choose_precision(Run(given=Given(gpu="A100")))
    assert (choice.recipe, choice.row.id, choice.asks) == ("bf16", "unlisted-gpu-precision", ())


def test_the_traces_compute_capability_tells_the_architecture() -> None:
    assert choose_precision(Run(Observed(capability=(9, 0), precision="bf16"))).row.id == "hopper-precision"
    assert (
        choose_precision(Run(Observed(capability=(10, 3), precision="bf16"))).row.id == "blackwell-precision"
    )


def test_an_unknown_precision_and_stage_are_asked_for_where_they_matter() -> None:
    choice = choose_precision(Run(given=Given(gpu="GB200")))
    assert set(choice.asks) == {"--precision", "--stage"}


def test_all_labels_of_megatron_core_are_there() -> None:
    assert set(MODULES) == {
        "core_attn",
        "moe_act",
        "layernorm",
        "mla_up_proj",
        "mlp",
        "moe",
        "shared_experts",
        "gdn_norm_out",
        "gdp_in_proj",
        "gdp_qkv",
        "mhc",
    }


def test_low_pressure_recomputes_nothing() -> None:
    choice = choose_recompute(Run(GROUPED, Given(memory_tight=False)))
    assert (choice.granularity, choice.modules) == ("none", ())


def test_moderate_pressure_starts_with_the_expert_activation_and_adds_one_at_a_time() -> None:
    choice = choose_recompute(Run(GROUPED, Given(memory_tight=True, family="moonlight")))
    assert choice.row.id == "recompute-first"
    assert choice.modules == ("moe_act",)
    assert choice.then == ("layernorm", "mla_up_proj", "mlp", "shared_experts")


def test_high_pressure_adds_the_up_projection_to_what_is_recomputed() -> None:
    shown = Observed(
        moe=True,
        grouped_gemm=True,
        precision="bf16",
        recompute_modules=("swiglu", "norm", "mlp"),
        graph_frac=0.0,
        ep_overlap=False,
    )
    choice = choose_recompute(Run(shown, Given(memory_tight=True, family="dsv3")))
    assert choice.row.id == "recompute-more"
    assert choice.modules == ("moe_act", "layernorm", "mla_up_proj", "mlp")


def test_the_whole_moe_layer_comes_last_and_covers_what_is_inside() -> None:
    shown = Observed(
        moe=True,
        grouped_gemm=True,
        precision="bf16",
        recompute_modules=("moe_act", "layernorm"),
        graph_frac=0.0,
        ep_overlap=False,
    )
    choice = choose_recompute(Run(shown, Given(memory_tight=True, family="qwen3_30b")))
    assert choice.modules == ("layernorm", "moe")
    assert choice.then == ()


def test_extreme_pressure_leaves_only_full_recompute() -> None:
    shown = Observed(
        moe=True,
        grouped_gemm=True,
        precision="bf16",
        recompute_modules=("moe", "layernorm"),
        graph_frac=0.0,
        ep_overlap=False,
    )
    choice = choose_recompute(Run(shown, Given(memory_tight=True, family="qwen3_30b")))
    assert (choice.granularity, choice.modules) == ("full", ())


def test_seed_003_full_recompute_gives_way_to_selective_modules() -> None:
    shown = Observed(moe=True, grouped_gemm=True, precision="bf16", recompute_full=True)
    choice = choose_recompute(Run(shown, Given(family="dsv3")))
    assert choice.row.id == "recompute-instead-of-full"
    assert choice.modules == ("moe_act", "layernorm", "mla_up_proj")


@pytest.mark.parametrize("family", ["dsv3", "qwen3_235b", "qwen3_next", None])
@pytest.mark.parametrize("full", [True, False])
def test_seed_002_and_seed_003_modules_are_among_the_good_first_choices(
    family: str | None, full: bool
) -> None:
    shown = Observed(moe=True, grouped_gemm=True, precision="bf16", recompute_full=full)
    modules = choose_recompute(Run(shown, Given(family=family))).modules
    assert modules
    assert set(modules) <= GOOD_FIRST_CHOICES


def test_recompute_of_the_whole_moe_layer_is_swapped_for_its_cheap_parts() -> None:
    shown = Observed(moe=True, grouped_gemm=True, precision="bf16", recompute_modules=("moe",))
    choice = choose_recompute(Run(shown))
    assert choice.row.id == "recompute-instead-of-moe"
    assert choice.modules == ("moe_act", "layernorm")


def test_core_attention_is_refused_as_next_to_nothing_is_saved() -> None:
    assert "next to nothing" in refusals(Run(GROUPED))["core_attn"]


def test_the_expert_activation_needs_grouped_gemm() -> None:
    run = Run(Observed(moe=True, grouped_gemm=False, precision="bf16"))
    assert "grouped GEMM" in refusals(run)["moe_act"]
    assert choose_recompute(run).modules == ("layernorm",)


def test_delayed_scaling_leaves_the_up_projection_of_an_mla_model() -> None:
    run = Run(
        Observed(moe=True, grouped_gemm=True),
        Given(precision="fp8_delayed", family="dsv3", memory_tight=True),
    )
    assert choose_recompute(run).modules == ("mla_up_proj",)
    assert {"moe_act", "layernorm"} <= set(refusals(run))


@pytest.mark.parametrize(("te", "modules"), [("2.5.0", ("mla_up_proj",)), ("2.6.0", ("moe_act",))])
def test_fp8_needs_transformer_engine_2_6_for_modules_that_drop_their_output(
    te: str, modules: tuple[str, ...]
) -> None:
    given = Given(precision="mxfp8", family="dsv3", te_version=te)
    assert choose_recompute(Run(Observed(moe=True, grouped_gemm=True), given)).modules == modules


def test_the_up_projection_needs_mla() -> None:
    assert "multi-latent" in refusals(Run(GROUPED, Given(family="qwen3_235b")))["mla_up_proj"]
    assert "mla_up_proj" not in refusals(Run(GROUPED, Given(family="dsv3")))


def test_an_unknown_family_is_asked_for_and_its_modules_are_not_taken() -> None:
    choice = choose_recompute(Run(GROUPED))
    assert "--family" in choice.asks
    assert "unknown here" in refusals(Run(GROUPED))["mla_up_proj"]


def test_dense_mlp_needs_dense_layers() -> None:
    assert "dense layers" in refusals(Run(GROUPED, Given(family="qwen3_30b")))["mlp"]
    assert "mlp" not in refusals(Run(Observed(moe=False, precision="bf16")))


def test_a_dense_model_gets_no_moe_module() -> None:
    choice = choose_recompute(Run(Observed(moe=False, precision="bf16"), Given(memory_tight=True)))
    assert choice.modules == ("layernorm",)
    assert not {"moe_act", "moe", "shared_experts"} & set(
        refusals(Run(Observed(moe=False, precision="bf16")))
    )


@pytest.mark.parametrize(("core", "refused"), [("0.16.1", False), ("0.17.0", True), (None, True)])
def test_whole_moe_recompute_clashes_with_overlap_since_0_17(core: str | None, refused: bool) -> None:
    shown = Observed(moe=True, grouped_gemm=True, precision="bf16", ep_overlap=True, graph_frac=0.0)
    assert ("moe" in refusals(Run(shown, Given(core_version=core)))) is refused


def test_whole_moe_recompute_clashes_with_a_graph_of_the_router() -> None:
    shown = Observed(moe=True, ep_overlap=False, graph_frac=0.5)
    given = Given(graph_impl="transformer_engine", graph_modules=("moe_router", "moe_preprocess"))
    assert "moe" in refusals(Run(shown, given))
    assert "moe" not in refusals(Run(shown, Given(graph_impl="transformer_engine", graph_modules=("attn",))))


def test_shared_experts_need_some_and_core_0_14() -> None:
    assert "shared_experts" in refusals(Run(GROUPED, Given(family="qwen3_30b")))
    assert "shared_experts" in refusals(Run(GROUPED, Given(family="dsv3", core_version="0.13.1")))
    assert "shared_experts" not in refusals(Run(GROUPED, Given(family="dsv3", core_version="0.14.0")))


@pytest.mark.parametrize(("core", "refused"), [("0.18.2", True), ("0.19.0", False), (None, False)])
def test_the_gated_delta_nets_norm_came_with_0_19(core: str | None, refused: bool) -> None:
    run = Run(GROUPED, Given(family="qwen3_next", core_version=core))
    assert ("gdn_norm_out" in refusals(run)) is refused


@pytest.mark.parametrize("label", ["mhc", "gdp_in_proj", "gdp_qkv"])
def test_labels_of_models_a_trace_cannot_tell_are_refused(label: str) -> None:
    assert "models of that kind" in refusals(Run(GROUPED))[label]


def test_memory_pressure_is_asked_for() -> None:
    assert "--memory-tight" in choose_recompute(Run(GROUPED)).asks


def test_what_is_recomputed_beside_a_whole_moe_layer_stays_when_that_goes() -> None:
    modules = ("mla_up_proj", "moe")
    values: dict[str, Value] = {"multi_latent_attention": True, "recompute_granularity": "selective"}
    choice = choose_recompute(complete({**values, "recompute_modules": modules}))
    assert choice.row.id == "recompute-instead-of-moe"
    assert choice.modules == ("moe_act", "layernorm", "mla_up_proj")


def test_what_is_asked_of_a_run_is_asked_for_a_label_of_the_table() -> None:
    assert {*_LEGAL} <= {*MODULES}
    assert {label for label, module in MODULES.items() if not module.avoid} <= {*_LEGAL}
