"""What the configuration answers: readers of it, the run it makes, and the older cards that ask it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.guides.cuda_graphs import choose_graphs
from heuristics.guides.dispatcher import choose_dispatcher
from heuristics.guides.recompute import choose_recompute
from heuristics.run.run import Run
from heuristics.run.sizes import batch_divides, deeper, even_layout, virtual_stages, wider_ep
from tests.doubles.fixes import complete, configured
from tests.doubles.opinions import paying
from traces.settings.settings import Value
from traces.training_log.log import TrainingLog


def test_the_first_knob_with_a_value_is_taken() -> None:
    run = configured({"comm_overlap.overlap_grad_reduce": None, "ddp.overlap_grad_reduce": True})
    assert run.config.overlap("overlap_grad_reduce") is True
    assert run.config.first("comm_overlap.overlap_grad_reduce", "ddp.overlap_grad_reduce") is True


def test_bridges_own_section_outweighs_the_field() -> None:
    run = configured({"comm_overlap.delay_wgrad_compute": False, "delay_wgrad_compute": True})
    assert run.config.delayed_wgrad is False


def test_options_and_the_trace_outweigh_the_configuration() -> None:
    run = complete({"moe_grouped_gemm": False}, ep=8)
    found = Run(Observed(grouped_gemm=True, dispatcher="deepep"), run.given, settings=run.settings)
    assert (found.config.ep, found.config.tp) == (8, 4)
    assert (found.active.grouped_gemm, found.active.dispatcher) == (True, "deepep")


@pytest.mark.parametrize(
    ("values", "fact"),
    [
        ({"num_moe_experts": 8}, ("moe", True)),
        ({"num_moe_experts": None}, ("moe", False)),
        ({"moe_token_dispatcher_type": "alltoall"}, ("dispatcher", "alltoall")),
        ({"moe_flex_dispatcher_backend": "hybridep"}, ("dispatcher", "unknown")),
        (
            {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"},
            ("dispatcher", "hybridep"),
        ),
        ({"moe_token_dispatcher_type": "flex", "moe_enable_deepep": True}, ("dispatcher", "deepep")),
        ({"recompute_granularity": None}, ("recompute_modules", ())),
        (
            {"recompute_granularity": "selective", "recompute_modules": None},
            ("recompute_modules", ("core_attn",)),
        ),
        ({"recompute_granularity": "full"}, ("recompute_full", True)),
        ({"cuda_graph_impl": "none"}, ("graph_frac", 0.0)),
        ({"overlap_moe_expert_parallel_comm": True}, ("ep_overlap", True)),
    ],
)
def test_what_no_trace_shows_is_what_the_configuration_asks_for(
    values: dict[str, Value], fact: tuple[str, object]
) -> None:
    assert getattr(configured(values).active, fact[0]) == fact[1]


@pytest.mark.parametrize(
    ("values", "fact"),
    [
        ({"virtual_pipeline_model_parallel_size": None}, ("vpp", 1)),
        ({"moe_router_force_load_balancing": True}, ("routing", "force_balance")),
        ({"moe_expert_capacity_factor": None}, ("dropless", True)),
        (
            {"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True},
            ("routing", "drop_pad"),
        ),
        ({"cuda_graph_modules": ("attn", "moe_router")}, ("graph_modules", ("attn", "moe_router"))),
        ({"launcher.numa_binding": True}, ("cpu_bound_to_numa", True)),
        ({"moe_router_padding_for_fp8": True}, ("router_padding", True)),
    ],
)
def test_what_nobody_gave_is_what_the_configuration_says(
    values: dict[str, Value], fact: tuple[str, object]
) -> None:
    assert getattr(configured(values).config, fact[0]) == fact[1]


@pytest.mark.parametrize(
    ("seen", "told"), [("fp8", "fp8_delayed"), ("mixed", "fp8_delayed"), ("bf16", "bf16")]
)
def test_the_configuration_refines_what_the_trace_shows_and_does_not_contradict_it(
    seen: str, told: str
) -> None:
    run = configured({"fp8": "hybrid", "fp8_recipe": "delayed"})
    assert Run(Observed(precision=seen), settings=run.settings).precision == told


def test_versions_are_those_of_the_log_where_none_were_given() -> None:
    log = TrainingLog("train.log", 10, versions={"core": "0.17.0", "torch": "2.8.0"})
    run = configured(log=log, torch_version="2.9.0")
    assert (run.config.core_text, run.config.version_text("torch")) == ("0.17.0", "2.9.0")


# ---- sizes that divide ----


def test_data_parallel_ranks_and_microbatches_are_what_is_left() -> None:
    run = complete()
    assert (run.config.dp, run.config.microbatches) == (8, 128)
    assert complete({"world_size": 60}).config.dp is None
    assert configured({"world_size": 64}).config.dp is None


def test_a_doubled_micro_batch_divides_the_batch_or_does_not() -> None:
    assert batch_divides(complete()) is True
    assert batch_divides(complete({"train.global_batch_size": 24})) is False
    assert batch_divides(configured({"train.micro_batch_size": 1})) is None


@pytest.mark.parametrize(
    ("layers", "pp", "stages"),
    [(48, 2, 6), (48, 4, 4), (48, 8, 3), (48, 16, 3), (48, 48, None), (61, 8, None)],
)
def test_virtual_stages_divide_the_layers_of_a_rank(layers: int, pp: int, stages: int | None) -> None:
    run = configured({"num_layers": layers, "pipeline_model_parallel_size": pp})
    assert virtual_stages(run) == stages


def test_a_layout_names_every_layer_once_and_ends_with_the_loss() -> None:
    run = configured({"num_layers": 14, "pipeline_model_parallel_size": 4})
    assert even_layout(run) == ("Et|tt|tt|tt|tt|tt|tt|tL", 2)


def test_a_layout_keeps_the_virtual_stages_there_are_and_one_place_for_mtp() -> None:
    values: dict[str, Value] = {
        "num_layers": 5,
        "pipeline_model_parallel_size": 2,
        "virtual_pipeline_model_parallel_size": 2,
        "mtp_num_layers": 2,
    }
    assert even_layout(configured(values)) == ("Et|tt|tt|mmL", 2)


def test_fewer_layers_than_stages_have_no_layout() -> None:
    assert even_layout(configured({"num_layers": 4, "pipeline_model_parallel_size": 8})) is None


def test_ep_doubles_only_where_experts_ranks_and_the_domain_hold_it() -> None:
    on_gb200 = {"gpu": "GB200"}
    assert wider_ep(complete(**on_gb200)) == 32
    assert wider_ep(complete({"num_moe_experts": 80}, **on_gb200)) is None
    assert wider_ep(complete({"world_size": 48}, **on_gb200)) is None
    assert wider_ep(complete()) is None


def test_pp_grows_to_what_divides_layers_and_leaves_experts_their_ranks() -> None:
    def next_pp(run: Run) -> object:
        return next((one["pipeline_model_parallel_size"] for one in deeper(run)), None)

    assert next_pp(complete()) == 4
    assert next_pp(complete({"expert_model_parallel_size": 32})) is None
    assert next_pp(configured({"pipeline_model_parallel_size": 3})) == 6


def test_layers_that_do_not_divide_get_a_layout_by_name() -> None:
    first = next(deeper(complete({"num_layers": 6})))
    assert first["pipeline_model_parallel_size"] == 4
    assert first["pipeline_model_parallel_layout"] == "Et|tt|tt|tL"


# ---- cards and choosers that ask the configuration ----


@pytest.mark.parametrize(
    ("number", "values"),
    [
        ("COM-1", {"overlap_moe_expert_parallel_comm": True}),
        ("COM-2", {"moe_token_dispatcher_type": "alltoall"}),
        ("COM-4", {"ddp.overlap_grad_reduce": True, "ddp.overlap_param_gather": True}),
        ("COM-5", {"comm_overlap.tp_comm_overlap": True}),
        ("HST-1", {"launcher.numa_binding": True}),
        ("HST-2", {"train.manual_gc": True}),
        (
            "HST-3",
            {
                "cuda_graph_impl": "transformer_engine",
                "cuda_graph_modules": ("attn", "moe_router", "moe_preprocess"),
                "num_moe_experts": 8,
            },
        ),
        ("HST-4", {"moe_router_fusion": True, "moe_permute_fusion": True, "num_moe_experts": 8}),
        ("HST-6", {"moe_expert_rank_capacity_factor": 1.5}),
        ("CMP-1", {"moe_grouped_gemm": True}),
        ("MEM-1", {"env.PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128,expandable_segments:True"}),
        ("MEM-7", {"optimizer.optimizer_cpu_offload": True}),
        ("MEM-9", {"recompute_granularity": "full"}),
    ],
)
def test_what_is_on_already_is_refused(number: str, values: dict[str, Value]) -> None:
    before, after = configured(), configured(values)
    unmet = [
        {one.text for one in CATALOGUE[number].preconditions(run) if one.state == "unmet"}
        for run in (before, after)
    ]
    assert unmet[1] - unmet[0]


def test_a_collector_that_is_seen_although_it_is_set_is_not_refused() -> None:
    run = paying("host_overhead", {"gc": 10})
    seen = Run(cost_by_kind_ns=run.cost_by_kind_ns, settings=configured({"train.manual_gc": True}).settings)
    assert "unmet" not in {one.state for one in CATALOGUE["HST-2"].preconditions(seen)}


OFF = ("model.cpu_offloading=false", "model.cpu_offloading_num_layers=0")


@pytest.mark.parametrize(
    ("tight", "bridge", "megatron", "state"),
    [
        (False, OFF, "--cpu-offloading-num-layers 0", "met"),
        (None, OFF, "--cpu-offloading-num-layers 0", "unknown"),
        (True, ("model.cpu_offloading_num_layers=12",), "--cpu-offloading-num-layers 12", "unknown"),
    ],
)
def test_offload_of_whole_layers_is_turned_off_or_halved_where_its_copies_cost(
    tight: bool | None, bridge: tuple[str, ...], megatron: str, state: str
) -> None:
    values: dict[str, Value] = {"cpu_offloading": True, "cpu_offloading_num_layers": 24}
    run = replace(configured(values, memory_tight=tight), observed=Observed(offload=True))
    knobs = CATALOGUE["MEM-6"].knobs(run)
    assert (knobs.megatron_bridge, knobs.megatron_lm) == (bridge, (megatron,))
    assert [one.state for one in CATALOGUE["MEM-6"].preconditions(run) if "room" in one.text] == [state]
    assert not [one for one in CATALOGUE["MEM-6"].preconditions(run) if one.state == "unmet"]


@pytest.mark.parametrize(("core", "pp", "states"), [("0.16.1", 1, ["unmet"]), ("0.17.0", 2, [])])
def test_an_mtp_layer_wanted_stages_beside_the_overlap_for_two_releases(
    core: str, pp: int, states: list[str]
) -> None:
    run, newest = (configured({"mtp_num_layers": 1}, pp=pp, core_version=one) for one in (core, None))
    needs = CATALOGUE["COM-1"].preconditions(run)
    assert [one.state for one in needs if "with an MTP layer" in one.text] == states
    assert not [one for one in CATALOGUE["COM-1"].preconditions(newest) if "with an MTP" in one.text]


def test_concrete_sizes_take_the_place_of_n() -> None:
    knobs = {
        number: CATALOGUE[number].knobs(complete()).megatron_lm for number in ("HST-5", "MEM-8", "COM-10")
    }
    assert knobs["HST-5"][:2] == ("--micro-batch-size 2", "--tensor-model-parallel-size 2")
    assert knobs["MEM-8"] == ("--pipeline-model-parallel-size 4",)
    assert knobs["COM-10"][0] == "--expert-model-parallel-size 8"
    assert CATALOGUE["COM-6"].knobs(complete()).megatron_lm == ("--num-virtual-stages-per-pipeline-rank 6",)


@pytest.mark.parametrize(("now", "states"), [(16, []), (24, []), (32, ["unmet"])])
def test_the_guides_sm_count_is_tried_once(now: int, states: list[str]) -> None:
    flex: dict[str, Value] = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"}
    run = configured(flex, {"moe_hybridep_num_sms": now}, core_version="0.18.0")
    needs = CATALOGUE["COM-3"].preconditions(run)
    assert [one.state for one in needs if "32 SMs" in one.text] == states


def test_choosers_read_the_configuration() -> None:
    shared = configured({"moe_shared_expert_intermediate_size": 2048, "multi_latent_attention": True})
    refused = {one.what for one in choose_recompute(shared).refused}
    assert not {"mla_up_proj", "shared_experts"} & refused
    alone = configured({"moe_shared_expert_intermediate_size": None})
    assert "shared_experts" in {one.what for one in choose_recompute(alone).refused}
    assert choose_dispatcher(configured({"expert_model_parallel_size": 4}, gpu="H100")).rule == (
        choose_dispatcher(Run(given=Given(ep=4, gpu="H100"))).rule
    )
    offloaded = configured({"num_moe_experts": 8, "cpu_offloading": True})
    assert choose_graphs(offloaded).impl == "none"
    assert choose_graphs(configured({"num_moe_experts": 8})).impl == "transformer_engine"


def test_an_even_layout_without_virtual_stages_is_cut_finer() -> None:
    """GLM-4.5-Air on PP8: one stage a rank leaves a large part of the step to warm-up and cool-down."""
    values: dict[str, Value] = {
        "num_layers": 46,
        "mtp_num_layers": 1,
        "pipeline_model_parallel_size": 8,
        "virtual_pipeline_model_parallel_size": None,
        "pipeline_model_parallel_layout": "Et*5|(t*6|)*6t*5mL",
    }
    coarse, fix = complete(values), CATALOGUE["COM-6"]
    assert not [one for one in fix.preconditions(coarse) if "as even as they can be" in one.text]
    layout = str(fix.change(coarse).set["pipeline_model_parallel_layout"])
    assert (layout.count("|") + 1) % 8 == 0
    assert layout.count("|") + 1 >= 16
    finer = complete({**values, "pipeline_model_parallel_layout": layout})
    assert [one.state for one in fix.preconditions(finer) if "as even as they can be" in one.text] == [
        "unmet"
    ]


def test_hardware_queues_claim_no_time_of_the_pipeline_and_none_of_an_overlap_that_is_off() -> None:
    plain = complete({"overlap_moe_expert_parallel_comm": False})
    kinds = CATALOGUE["COM-13"].of_run(CATALOGUE["COM-13"], plain).kinds
    assert kinds
    assert not {"pp_p2p", "ep_dispatch", "ep_a2a"} & {*kinds}
