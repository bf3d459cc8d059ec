"""How a model is cut, as a matter of memory: given back, over more ranks for long sequences, by stage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.guides.memory_use import stage_memory
from heuristics.run.run import Run
from tests.configurations.sizes import published
from tests.doubles.fixes import complete, need, states
from traces.settings.settings import Value

MEM_15 = CATALOGUE["MEM-15"]
MEM_16 = CATALOGUE["MEM-16"]
MEM_17 = CATALOGUE["MEM-17"]
HALF_USED = Observed(memory_bytes=80, peak_bytes=40)
FULL = Observed(memory_bytes=80, peak_bytes=79)


def qwen(pp: int, **more: Value) -> Run:
    """Qwen3-30B of 48 layers on 64 ranks, 4096 tokens, two sequences a microbatch."""
    return Run(
        settings=published(
            "qwen3_30b_a3b",
            world_size=64,
            tensor_model_parallel_size=1,
            pipeline_model_parallel_size=pp,
            expert_model_parallel_size=8,
            expert_tensor_parallel_size=1,
            seq_length=4096,
            train__micro_batch_size=2,
            train__global_batch_size=2048,
            ddp__use_distributed_optimizer=True,
            **more,
        )
    )


@pytest.mark.parametrize(
    ("knobs", "lines"),
    [
        ({"seq_length": 4_096, "context_parallel_size": 4}, ("--context-parallel-size 1",)),
        ({}, ("--tensor-model-parallel-size 2",)),
        ({"tensor_model_parallel_size": 1}, ("--pipeline-model-parallel-size 1",)),
        ({"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1}, ()),
    ],
)
def test_what_is_given_back_is_one_axis_at_a_time(knobs: dict[str, Value], lines: tuple[str, ...]) -> None:
    assert MEM_15.knobs(complete(knobs)).megatron_lm == lines


def test_parallelism_is_given_back_only_where_memory_has_room() -> None:
    runs = [replace(complete(), observed=shown) for shown in (HALF_USED, FULL, Observed())]
    assert states(MEM_15, "at most 50 %", *runs) == ["met", "unmet", "unknown"]
    assert need(MEM_15, runs[2], "at most 50 %").stops


@pytest.mark.parametrize(
    ("length", "cp", "lines"),
    [
        (32_768, 1, ("--context-parallel-size 8",)),
        (131_072, 1, ("--context-parallel-size 8",)),  # DP 8 gives no more
        (12_292, 1, ("--context-parallel-size 2",)),  # CP4 takes 8 pieces, which do not divide it
        (4_096, 1, ()),
        (32_768, 8, ()),
    ],
)
def test_context_parallelism_follows_the_length_as_far_as_ranks_divide(
    length: int, cp: int, lines: tuple[str, ...]
) -> None:
    """Audit W7."""
    run = complete({"seq_length": length, "context_parallel_size": cp})
    assert MEM_16.knobs(run).megatron_lm == lines


def test_short_sequences_refuse_context_parallelism() -> None:
    runs = [complete({"seq_length": length}) for length in (8_192, 8_191)]
    assert states(MEM_16, "sequences are long", *runs, complete()) == ["met", "unmet", "unknown"]


def test_layers_move_off_the_stage_that_memory_fills() -> None:
    """Audit item 189."""
    run = qwen(4)
    found = stage_memory(run)
    assert found is not None
    assert found.stages[0] == max(found.stages)
    assert found.is_uneven
    first, *_, last = found.layout.split("|")
    assert (first[0], last[-1]) == ("E", "L")
    assert first.count("t") < 12 < last.count("t")
    assert found.layout.count("t") == 48
    assert max(stage.count("t") for stage in found.layout.split("|")) <= 15
    line = f'model.pipeline_model_parallel_layout="{found.layout}"'
    assert line in MEM_17.knobs(run).megatron_bridge
    assert states(MEM_17, "uneven in memory", run) == ["met"]
