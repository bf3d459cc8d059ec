"""Values that a cure names fit the run."""

from __future__ import annotations

from heuristics.config.view import Trust
from heuristics.rules.rules import rules
from tests.configurations.constraints import run_with


def test_expert_ranks_divide_the_experts_and_fit_the_ranks() -> None:
    sizes = {"num_moe_experts": 64, "world_size": 24, "expert_tensor_parallel_size": 1}
    run = run_with({**sizes, "expert_model_parallel_size": 12, "pipeline_model_parallel_size": 1})
    assert rules()["experts-per-rank"].cure_of(run.view(Trust.CHECKED)).endswith("here EP 2, 4 or 8")


def test_the_first_level_of_context_parallelism_divides_the_query_groups() -> None:
    sizes = {"num_attention_heads": 32, "num_query_groups": 8, "tensor_model_parallel_size": 2}
    run = run_with({**sizes, "context_parallel_size": 16, "cp_comm_type": "a2a+p2p"})
    assert rules()["context-hierarchy"].cure_of(run.view(Trust.CHECKED)).endswith("here [2, 8] or [4, 4]")


def test_a_cure_has_no_example_where_the_sizes_are_unknown() -> None:
    rule = rules()["experts-per-rank"]
    assert rule.cure_of(run_with({"num_moe_experts": 64}).view(Trust.CHECKED)) == rule.cure
