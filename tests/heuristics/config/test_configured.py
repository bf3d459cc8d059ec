"""What options and trace say as settings, and what settings give beside what was given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.config.given import given_and_configured, only_data_parallel
from heuristics.config.observed import Observed
from heuristics.config.trust import by_trust, files_by_trust, given_settings, observed_settings
from heuristics.config.view import Config
from heuristics.run.run import Run
from tests.doubles.fixes import configured
from traces.settings.settings import Framework, Settings, Value, settings


def filled(values: dict[str, Value], given: Given | None = None, **versions: str) -> Given:
    own = replace(given or Given(), **{f"{package}_version": one for package, one in versions.items()})  # type: ignore[arg-type]
    return given_and_configured(own, Config(own, Observed(), settings(values, "config.yaml:1"), None))


SIZES: dict[str, Value] = {
    "tensor_model_parallel_size": 1,
    "expert_model_parallel_size": 1,
    "pipeline_model_parallel_size": 1,
    "context_parallel_size": 1,
}


def test_a_run_is_parallel_over_data_alone_where_all_other_sizes_are_said_to_be_1() -> None:
    def alone(
        values: dict[str, Value], given: Given | None = None, framework: Framework | None = None
    ) -> bool:
        said = replace(settings(values, "config.yaml:1"), framework=framework)
        return only_data_parallel(given or Given(), said)

    assert alone(SIZES)
    assert not alone({**SIZES, "context_parallel_size": 2})
    assert not alone({**SIZES, "expert_tensor_parallel_size": 2})
    three: dict[str, Value] = {knob: 1 for knob in SIZES if knob != "context_parallel_size"}
    assert not alone(three)
    assert alone(three, Given(cp=1))
    assert alone(three, framework="megatron_lm")
    assert alone({}, Given(tp=1, ep=1, pp=1, cp=1))
    assert not alone(SIZES, Given(tp=2))
    assert not alone({})


@pytest.mark.parametrize("backend", ["deepep", "hybridep", "ncclep"])
def test_kernels_of_a_flex_backend_tell_type_and_backend(backend: str) -> None:
    found = observed_settings(Observed(dispatcher=backend))
    assert found.value("moe_token_dispatcher_type") == "flex"
    assert found.value("moe_flex_dispatcher_backend") == backend
    assert found.said("moe_token_dispatcher_type") == "trace"


@pytest.mark.parametrize("dispatcher", ["none", "unknown"])
def test_no_dispatcher_in_the_trace_tells_nothing(dispatcher: str) -> None:
    assert observed_settings(Observed(dispatcher=dispatcher)) == Settings()


def test_kernels_in_bf16_do_not_tell_that_nothing_is_in_fp8() -> None:
    assert "fp8" not in observed_settings(Observed(precision="bf16"))
    given = given_settings(Given(precision="bf16"))
    assert "fp8" in given
    assert given.value("fp8") is None


def test_some_modules_that_run_again_are_selective_recompute() -> None:
    shown = Observed(recompute_modules=("moe", "moe_act"), recompute_full=False)
    found = observed_settings(shown)
    assert (found.value("recompute_granularity"), found.value("recompute_modules")) == ("selective", ("moe",))
    assert observed_settings(Observed(recompute_modules=("moe",), recompute_full=True)) == Settings()
    assert observed_settings(Observed(recompute_modules=(), recompute_full=False)) == Settings()


def test_sources_are_trusted_in_order_option_file_log_trace() -> None:
    file_says: dict[str, Value] = {"expert_model_parallel_size": 8, "moe_token_dispatcher_type": "flex"}
    log_says: dict[str, Value] = {"moe_token_dispatcher_type": "allgather", "num_layers": 16}
    file, log = settings(file_says, "a.yaml:1"), settings(log_says, "a.log:1")
    found = by_trust(
        Given(ep=4), Observed(dispatcher="alltoall", grouped_gemm=True), files_by_trust(file, log)
    )
    assert found.value("expert_model_parallel_size") == 4
    assert found.value("moe_token_dispatcher_type") == "flex"
    assert found.value("num_layers") == 16
    assert (found.value("moe_grouped_gemm"), found.said("moe_grouped_gemm")) == (True, "trace")


def test_settings_fill_what_was_not_given_and_nothing_else() -> None:
    given = filled(
        {
            "expert_model_parallel_size": 8, "tensor_model_parallel_size": 2,
            "expert_tensor_parallel_size": None, "pipeline_model_parallel_size": 4,
            "virtual_pipeline_model_parallel_size": None, "launcher.numa_binding": True,
        },
        Given(ep=16),
        core="0.16.1",
        te="2.9.0",
    )  # fmt: skip
    assert (given.ep, given.tp, given.etp, given.pp, given.vpp) == (16, 2, 2, 4, 1)
    assert (given.core_version, given.te_version, given.bridge_version) == ("0.16.1", "2.9.0", None)
    assert given.cpu_bound_to_numa is True
    assert given.cp is None


@pytest.mark.parametrize(("values", "routing"), [
    ({"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True}, "drop_pad"),
    ({"moe_router_force_load_balancing": True}, "force_balance"),
    ({"moe_expert_capacity_factor": None, "moe_router_force_load_balancing": False}, "dropless"),
    ({"moe_expert_capacity_factor": None}, None),
    ({"moe_expert_capacity_factor": 1.0, "moe_router_force_load_balancing": False}, None),
])  # fmt: skip
def test_routing_is_told_where_it_is_certain(values: dict[str, Value], routing: str | None) -> None:
    assert filled(values).routing == routing


@pytest.mark.parametrize(("values", "precision"), [
    *(({"bf16": True, "fp8": None, "fp4": None}, "bf16"), ({"bf16": True}, None)),
    ({"bf16": True, "fp8": "e4m3", "fp8_recipe": "blockwise"}, "fp8_blockwise"),
    *(({"fp4": "e2m1"}, "nvfp4"), ({"mixed_precision": "bf16_with_mxfp8_mixed"}, "mxfp8")),
    ({"mixed_precision": "bf16_with_fp8_subchannel_scaling_mixed"}, "fp8_blockwise"),
    ({"mixed_precision.fp8": "e4m3", "mixed_precision.fp8_recipe": "mxfp8"}, "mxfp8"),
    ({"bf16": False, "fp16": False, "fp8": None, "fp4": None}, "fp32"),
])  # fmt: skip
def test_precision_comes_from_formats_and_recipes(values: dict[str, Value], precision: str | None) -> None:
    assert filled(values).precision == precision


def test_graphs_come_from_the_older_switches_as_well() -> None:
    assert filled({"enable_cuda_graph": True}).graph_impl == "local"
    assert filled({"external_cuda_graph": True, "cuda_graph_impl": "none"}).graph_impl == "transformer_engine"
    assert filled({"cuda_graph_impl": "none"}).graph_impl == "none"
    assert filled({}).graph_impl is None
    assert filled({"cuda_graph_modules": ("attn", "moe_router")}).graph_modules == ("attn", "moe_router")
    assert filled({"cuda_graph_modules": "full"}).graph_modules == ()


def test_a_family_is_named_only_where_all_its_sizes_are_known() -> None:
    sizes: dict[str, Value] = {"num_layers": 61, "hidden_size": 7168, "num_moe_experts": 256}
    assert filled({**sizes, "moe_router_topk": 8}).family == "dsv3"
    assert filled(sizes).family is None
    assert filled({**sizes, "num_moe_experts": 384, "moe_router_topk": 8}).family is None


LAYOUT = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 4, "context_parallel_size": 1}


def trusted(given: Given, file: dict[str, Value], log: dict[str, Value] | None = None) -> Settings:
    from_log = settings(log, "train.log:1") if log else None
    return by_trust(given, Observed(), files_by_trust(settings(file, "run.yaml:1"), from_log))


@pytest.mark.parametrize(("given", "file", "log", "ranks"), [
    (Given(world_size=64), {}, None, (64, 8)), (Given(), {"data_parallel_size": 8}, None, (64, 8)),
    (Given(world_size=128), {"data_parallel_size": 8, "world_size": 64}, None, (128, 16)),
    (Given(), {}, {"world_size": 64}, (64, 8)),
    (Given(), {"world_size": 128}, {"world_size": 64, "data_parallel_size": 8}, (128, 16)),
])  # fmt: skip
def test_w5_ranks_in_all_and_data_parallel_ones_agree_whoever_says_them(
    given: Given, file: dict[str, Value], log: dict[str, Value] | None, ranks: tuple[int, int]
) -> None:
    found = trusted(given, {**LAYOUT, **file}, log)
    assert (found.value("world_size"), found.value("data_parallel_size")) == ranks


@pytest.mark.parametrize(
    ("given", "domain"),
    [
        (Given(gpu="H100"), 8), (Given(gpu="H100", gpus_per_node=4), 4),
        (Given(gpu="GB200", gpus_per_node=4), 72), (Given(gpus_per_node=8), 8),
        (Given(gpus_per_node=4), None), (Given(gpu="H100", gpus_per_node=8, nvlink_domain=16), 16),
    ],
)  # fmt: skip
def test_item_115_a_node_is_a_domain_of_nvlink_where_no_rack_is(given: Given, domain: int | None) -> None:
    assert Run(given=given).config.nvlink_domain == domain


def test_a_whole_shape_without_a_word_on_experts_is_a_dense_model() -> None:
    shape: dict[str, Value] = {
        "num_layers": 80, "hidden_size": 8192, "ffn_hidden_size": 28672, "num_attention_heads": 64,
    }  # fmt: skip
    assert configured(shape).active.moe is False
    assert configured({**shape, "moe_router_topk": 8}).active.moe is None
    assert configured({"num_layers": 80}).active.moe is None


def test_the_first_knob_with_a_value_is_taken() -> None:
    run = configured({"comm_overlap.overlap_grad_reduce": None, "ddp.overlap_grad_reduce": True})
    assert run.config.overlap("overlap_grad_reduce") is True
    assert run.config.first("comm_overlap.overlap_grad_reduce", "ddp.overlap_grad_reduce") is True


def test_bridges_own_section_outweighs_the_field() -> None:
    run = configured({"comm_overlap.delay_wgrad_compute": False, "delay_wgrad_compute": True})
    assert run.config.delayed_wgrad is False
