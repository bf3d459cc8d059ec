"""Dispatches and combines of a step against layers and microbatches of the configuration."""

from __future__ import annotations

import pytest

from heuristics.findings.contradictions import find_contradictions
from heuristics.findings.passes import ConfiguredPasses, configured, difference
from heuristics.result.configured import ConfigFinding
from heuristics.run.run import Run
from tests.doubles.workflow import Config, run_with
from traces.measure.moe.passes import PassCount

EIGHT: Config = {
    "num_layers": 8, "num_moe_experts": 16, "moe_layer_freq": 1, "mtp_num_layers": None,
    "tensor_model_parallel_size": 1, "context_parallel_size": 1, "pipeline_model_parallel_size": 1,
    "expert_model_parallel_size": 8, "world_size": 8, "train.micro_batch_size": 1,
    "train.global_batch_size": 16,
}  # fmt: skip
"""8 MoE layers, 2 microbatches: 16 passes a step in each direction."""
SPLIT: Config = {
    "virtual_pipeline_model_parallel_size": None, "pipeline_model_parallel_layout": None,
    "num_layers_in_first_pipeline_stage": None, "num_layers_in_last_pipeline_stage": None,
    "account_for_embedding_in_pipeline_split": False, "account_for_loss_in_pipeline_split": False,
}  # fmt: skip
TWO_STAGES: Config = {**EIGHT, **SPLIT, "pipeline_model_parallel_size": 2, "world_size": 16}


def steps(*each: int | tuple[int, int], recompute: int = 0) -> tuple[PassCount, ...]:
    pairs = [(one, one) if isinstance(one, int) else one for one in each]
    return tuple(PassCount(forward, recompute, backward) for forward, backward in pairs)


def run_of(config: Config, *ranks: tuple[PassCount, ...], training: bool | None = True) -> Run:
    return run_with(config, shown={"moe_passes": ranks, "training": training})


def found(run: Run) -> list[ConfigFinding]:
    return [one for one in find_contradictions(run) if one.id == "CFG-counts-differ"]


def expected(config: Config) -> ConfiguredPasses | None:
    return configured(run_with(config).config)


@pytest.mark.parametrize(
    ("changes", "layers", "microbatches"),
    [
        *(({}, (8,), 2), ({"moe_layer_freq": (0, 0, 0, 1, 1, 1, 1, 1)}, (5,), 2)),
        *(({"moe_layer_freq": 2}, (4,), 2), ({"mtp_num_layers": 1}, (9,), 2)),
        ({"mtp_num_layers": 1, "moe_layer_freq": (1, 1, 1, 1, 1, 1, 1, 0)}, (7,), 2),
        *(({"train.global_batch_size": 64}, (8,), 8), ({"context_parallel_size": 2}, (8,), 4)),
        ({**TWO_STAGES, "mtp_num_layers": 1}, (4, 5), 2),
        ({**TWO_STAGES, "pipeline_model_parallel_layout": "Ettt|tttttL"}, (3, 5), 2),
        ({**TWO_STAGES, "moe_layer_freq": (0, 0, 0, 0, 1, 1, 1, 1)}, (0, 4), 2),
        ({**TWO_STAGES, "moe_layer_freq": (0, 0, 1, 1, 1, 1, 1, 1),
         "virtual_pipeline_model_parallel_size": 2}, (2, 4), 2),
    ],
)  # fmt: skip
def test_layers_and_microbatches_are_those_of_the_stages(
    changes: Config, layers: tuple[int, ...], microbatches: int
) -> None:
    assert expected({**EIGHT, **changes}) == ConfiguredPasses(layers, microbatches)


@pytest.mark.parametrize("unknown", [
    {"train.rampup_batch_size": (2, 2, 100)}, {"hybrid_context_parallel": True},
    {"hybrid_layer_pattern": "MEME"}, {"pipeline_model_parallel_size": 2, "world_size": 16},
    {**TWO_STAGES, "num_layers_per_virtual_pipeline_stage": 2},
])  # fmt: skip
def test_what_layers_or_microbatches_hang_on_besides_is_unknown(unknown: Config) -> None:
    assert expected({**EIGHT, **unknown}) is None


@pytest.mark.parametrize("unsaid", sorted(EIGHT.keys() - {"expert_model_parallel_size"}))
def test_a_setting_that_a_recipe_may_have_set_is_not_taken_at_its_default(unsaid: str) -> None:
    assert expected({knob: value for knob, value in EIGHT.items() if knob != unsaid}) is None


@pytest.mark.parametrize(
    ("counts", "explanation", "fix"),
    [
        (steps(32, 32), "each step has 32 dispatches forward and 32 backward, the configuration gives 16 "
         "each (MoE layers: 8, microbatches: 2): a step here "
         "holds 2 steps of the configuration, or the microbatches differ", "--nvtx"),
        (steps(4, 4, 4), "holds 1/4 of a step of the configuration, or the microbatches differ", "--nvtx"),
        (steps(12), "neither is a multiple of the other: the configuration is that of another run", "give"),
        (steps((9, 16), 16, 16), "the first step has 9 dispatches forward and 16 backward,", "whole steps"),
        (steps(16, 16, (16, 5)), "the last step has 16 dispatches forward and 5 backward", "whole steps"),
    ],
)  # fmt: skip
def test_which_explanation_fits(counts: tuple[PassCount, ...], explanation: str, fix: str) -> None:
    (one,) = found(run_of(EIGHT, counts))
    assert one.state == "counted_otherwise"
    assert explanation in one.text
    assert fix in one.fix
    assert "(MoE layers: 8, microbatches: 2)" in one.text


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(run_of(EIGHT, steps(16, 16)), id="as configured"),
        pytest.param(run_of(EIGHT, steps(16, 16, recompute=16)), id="with its forward again"),
        pytest.param(run_of(EIGHT), id="not counted"),
        pytest.param(run_of(EIGHT, steps(12, 14, 12)), id="steps that are not alike"),
        pytest.param(run_of(EIGHT, steps((32, 16))), id="more forward than backward"),
        pytest.param(run_of(EIGHT, steps(12), training=None), id="perhaps no training"),
        pytest.param(run_of({**TWO_STAGES, "mtp_num_layers": 1}, steps(8), steps(10)), id="any stage"),
        pytest.param(run_of({}, steps(12)), id="no configuration"),
    ],
)
def test_what_fits_or_is_unknown_is_no_difference(run: Run) -> None:
    assert found(run) == []


def test_a_step_that_nothing_was_left_of_is_cut_too() -> None:
    one = difference(steps(0, 16, 16), ConfiguredPasses((8,), 2))
    assert one is not None
    assert (one.why, one.forward, one.which) == ("cut", 0, "the first")
