"""Sizes and parameters of a model from a configuration, FLOP and least bytes of operators by shapes."""

from __future__ import annotations

import pytest

from tests.configurations.sizes import TINY, estimated, published, sized, tiny
from traces.missing import Missing
from traces.problems import OperatorProblem
from traces.settings.read import configuration_of
from traces.settings.settings import Value, settings
from traces.sizes.layout import Chunk, Layout, chunks_in_flight, layout_of
from traces.sizes.model import ModelSize, model_size
from traces.sizes.operator_work import operator_work
from traces.sizes.parameters import Part, WeightShards, chunk_counts, rank_counts


def laid_out(model: str, **run: Value) -> tuple[ModelSize, Layout]:
    known = published(model, seq_length=4096, train__micro_batch_size=1, **run)
    size = sized(known)
    found = layout_of(known, size)
    assert isinstance(found, Layout), found.reason
    return size, found


def whole_counts(model: ModelSize) -> dict[Part, int]:
    """Parameters of the whole model by part; a tied output has none of its own."""
    layers = Chunk(
        model.is_moe.count(False), model.is_moe.count(True), model.mtp_layers, embedding=True, output=True
    )
    return chunk_counts(model, layers, WeightShards(), both_ends=True)


def activated(model: ModelSize) -> int:
    """Parameters that one token passes: of the routed experts only the top k."""
    counts = whole_counts(model)
    if model.experts:
        counts["experts"] = counts["experts"] * model.experts.topk // model.experts.count
    return sum(counts.values())


def test_parameters_of_a_tiny_model_add_up_by_hand() -> None:
    # Attention: 4 matrices of 8 x 8. Dense MLP: 2 of 8 x 16. Experts: 4 times 2 of 8 x 5. Five norms.
    assert dict(whole_counts(sized(tiny()))) == {
        "embedding": 800, "attention": 2 * 256, "router": 32, "experts": 320, "shared_experts": 0,
        "dense_mlp": 256, "norms": 5 * 8, "mtp": 0, "output": 800,
    }  # fmt: skip


def test_tensor_and_expert_parallel_ranks_share_what_they_cut() -> None:
    known = tiny(tensor_model_parallel_size=2, expert_model_parallel_size=2, expert_tensor_parallel_size=1,
                 world_size=2)  # fmt: skip
    found = layout_of(known, sized(known))
    assert isinstance(found, Layout)
    counts = rank_counts(sized(known), found, 0)
    assert (counts["attention"], counts["experts"], counts["embedding"]) == (256, 160, 400)
    assert counts["router"] == 32


@pytest.mark.parametrize(
    ("model", "total", "active"),
    [
        ("qwen3_30b_a3b", 30.5, 3.3), ("qwen3_235b_a22b", 235.1, 22.2), ("gpt_oss_120b", 116.8, 5.7),
        ("kimi_k2", 1026.4, 32.9), ("llama3_70b", 70.6, 70.6), ("moonlight_16b", 16.0, 3.0),
    ],
)  # fmt: skip
def test_published_models_have_their_published_parameters(model: str, total: float, active: float) -> None:
    size = sized(published(model, seq_length=4096))
    assert sum(whole_counts(size).values()) / 1e9 == pytest.approx(total, abs=0.06)
    assert activated(size) / 1e9 == pytest.approx(active, abs=0.9)


def test_what_is_missing_is_named() -> None:
    found = model_size(settings({"num_layers": 2, "num_moe_experts": 4}, "test"))
    assert isinstance(found, Missing)
    for knob in ("hidden_size", "num_attention_heads", "moe_router_topk", "vocab_size", "seq_length"):
        assert knob in found.reason
    assert "num_layers" not in found.reason


def test_a_knob_taken_at_its_default_is_said() -> None:
    known = settings({k: v for k, v in TINY.items() if k != "gated_linear_unit"}, "test")
    assert "gated_linear_unit off (not given)" in sized(known).assumed
    assert not sized(tiny()).assumed


def test_a_pattern_of_the_wrong_length_is_refused() -> None:
    assert isinstance(model_size(tiny(moe_layer_freq=(1, 1, 1))), Missing)


def test_every_second_layer_is_of_experts() -> None:
    assert sized(tiny(num_layers=4, moe_layer_freq=2)).is_moe == (True, False, True, False)


def test_a_pipeline_layout_string_says_what_each_stage_holds() -> None:
    _, found = laid_out(
        "deepseek_v3", pipeline_model_parallel_size=4, expert_model_parallel_size=64, world_size=256,
        train__global_batch_size=2048, pipeline_model_parallel_layout="Et*4|(t*4|)*14tmL",
    )  # fmt: skip
    first, last = found.stages[0][0], found.stages[3][3]
    assert (first.dense, first.moe, first.embedding) == (3, 1, True)
    assert (last.moe, last.mtp, last.output) == (1, 1, True)
    assert sum(chunk.dense + chunk.moe for stage in found.stages for chunk in stage) == 61
    assert (found.dp, found.edp, found.vpp) == (64, 1, 4)


@pytest.mark.parametrize("said", ["Et*4|t", "(t|)*999)*999", "Ex|L", "E" * 5])
def test_a_layout_that_does_not_fit_is_missing_not_wrong(said: str) -> None:
    known = tiny(pipeline_model_parallel_size=2, world_size=2, pipeline_model_parallel_layout=said)
    assert isinstance(layout_of(known, sized(known)), Missing)


def test_experts_that_do_not_divide_over_their_ranks_are_refused() -> None:
    known = tiny(expert_model_parallel_size=3, expert_tensor_parallel_size=1, world_size=3)
    assert isinstance(layout_of(known, sized(known)), Missing)


def test_a_layer_count_beyond_reason_is_refused() -> None:
    assert isinstance(model_size(tiny(num_layers=10**12)), Missing)


def test_layers_that_do_not_divide_need_a_layout() -> None:
    known = tiny(num_layers=3, moe_layer_freq=1, pipeline_model_parallel_size=2, world_size=2)
    found = layout_of(known, sized(known))
    assert isinstance(found, Missing)
    assert "pipeline_model_parallel_layout" in found.cure
    uneven = known.changed({"num_layers_in_first_pipeline_stage": 1}, "test")
    assert isinstance(layout_of(uneven, sized(uneven)), Layout)


@pytest.mark.parametrize("wrong", [{"world_size": 3}, {"train.global_batch_size": 3}, {"world_size": 0}])
def test_sizes_that_do_not_divide_are_refused(wrong: dict[str, Value]) -> None:
    known = tiny(tensor_model_parallel_size=2, world_size=4).changed(wrong, "test")
    assert isinstance(layout_of(known, sized(known)), Missing)


def test_a_plain_pipeline_holds_as_many_micro_batches_as_stages_are_left() -> None:
    known = tiny(pipeline_model_parallel_size=2, world_size=2).changed({"train.global_batch_size": 8}, "test")
    found = layout_of(known, sized(known))
    assert isinstance(found, Layout)
    assert [chunks_in_flight(found, rank, (1,)) for rank in (0, 1)] == [(2,), (1,)]


def test_interleaved_ranks_of_four_hold_19_17_15_13_chunks() -> None:
    _, found = laid_out(
        "deepseek_v3", pipeline_model_parallel_size=4, expert_model_parallel_size=64, world_size=256,
        train__global_batch_size=2048, pipeline_model_parallel_layout="Et*4|(t*4|)*14tmL",
    )  # fmt: skip
    flying = [chunks_in_flight(found, rank, (1, 1, 1, 1)) for rank in range(4)]
    assert [sum(counts) for counts in flying] == [19, 17, 15, 13]
    assert flying[0] == (7, 4, 4, 4)


def test_few_micro_batches_bound_what_is_in_flight() -> None:
    known = tiny(pipeline_model_parallel_size=2, world_size=2)
    assert estimated(known, stage=0).layer_microbatches == 1


def test_mamba_layers_are_not_counted_as_attention() -> None:
    text = "model:\n  num_layers: 4\n  hybrid_override_pattern: MEM*\n"  # as it was called before 0.17
    assert configuration_of(text, "run.yaml").settings.value("hybrid_layer_pattern") == "MEM*"
    assert isinstance(model_size(tiny(hybrid_layer_pattern="MEM*")), Missing)


BF16 = "c10::BFloat16"
Shapes = tuple[tuple[int, ...] | None, ...]


def flop_and_bytes(
    operator: str, shapes: Shapes, values: tuple[str, ...] = (), kind: str = BF16
) -> tuple[int, int] | None:
    types = tuple(kind if shape else "" for shape in shapes)
    found = operator_work(OperatorProblem(operator, shapes, types, values or ("",) * len(shapes)))
    return None if found is None else (found.flop, found.bytes_at_least)


def test_a_matrix_product_is_two_operations_for_each_pair() -> None:
    assert flop_and_bytes("aten::mm", ((10, 20), (20, 5))) == (2_000, 2 * (200 + 100 + 50))
    assert flop_and_bytes("aten::addmm", ((5,), (10, 20), (20, 5))) == (2_000, 700)
    assert flop_and_bytes("aten::linear", ((2, 5, 20), (5, 20), None)) == (2_000, 700)
    assert flop_and_bytes("aten::bmm", ((3, 10, 20), (3, 20, 5))) == (6_000, 2_100)


def test_attention_counts_the_pairs_under_its_mask_alone() -> None:
    """Two heads of four tokens of ten: 16 pairs, 10 under a causal mask, each over twice ten."""
    heads, name = (1, 2, 4, 10), "aten::_scaled_dot_product_flash_attention"
    whole = flop_and_bytes(name, (heads,) * 3 + ((),) * 2, ("",) * 4 + ("False",))
    assert whole == (2 * 2 * 16 * 20, 4 * 80 * 2)
    assert flop_and_bytes(name, (heads,) * 3 + ((),) * 2, ("",) * 4 + ("True",)) == (2 * 2 * 10 * 20, 640)
    back = f"{name}_backward"
    shapes, values = (heads,) * 5 + ((),) * 7, ("",) * 11 + ("False",)
    assert flop_and_bytes(back, shapes, values) == (2 * 2 * 16 * 50, 1_280)


def test_attention_whose_mask_is_not_told_is_not_counted() -> None:
    name = "aten::_scaled_dot_product_flash_attention"
    assert flop_and_bytes(name, ((1, 2, 4, 10),) * 3 + ((),) * 2) is None


def test_a_convolution_counts_each_output_over_its_filter() -> None:
    """Ten by ten, a filter of three, stride two, one of padding: five by five outputs of 8 channels."""
    shapes: Shapes = ((1, 4, 10, 10), (8, 4, 3, 3), None, (), (), (), (), (), ())
    values = ("", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1")
    assert flop_and_bytes("aten::convolution", shapes, values) == (14_400, 2 * (400 + 288 + 200))
    shapes = ((1, 8, 5, 5), (1, 4, 10, 10), (8, 4, 3, 3), *((),) * 8)
    masked = ("",) * 3 + ("[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]")
    both = flop_and_bytes("aten::convolution_backward", shapes, masked)
    assert both == (28_800, 2 * (2 * 200 + 2 * (400 + 288)))


@pytest.mark.parametrize(
    ("operator", "shapes", "values"),
    [
        *(("aten::mm", ((10, 20), (30, 5)), ()), ("aten::mm", ((10, 20), None), ())),
        *(("aten::mm", ((10, 20),), ()), ("aten::bmm", ((3, 10, 20), (4, 20, 5)), ())),
        ("aten::relu", ((10, 20),), ()),
        ("aten::convolution", ((1, 4, 9, 9), (8, 4, 3, 3), None, *((),) * 6), ()),
        ("aten::convolution", ((1, 4, 9, 9), (8, 4, 3, 3), None, *((),) * 6),
         ("", "", "", "[0, 0]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1")),
    ],
)  # fmt: skip
def test_what_no_shape_tells_is_not_guessed(operator: str, shapes: Shapes, values: tuple[str, ...]) -> None:
    assert flop_and_bytes(operator, shapes, values) is None


def test_a_format_that_is_not_known_is_not_counted() -> None:
    assert flop_and_bytes("aten::mm", ((10, 20), (20, 5)), kind="c10::complex<float>") is None
