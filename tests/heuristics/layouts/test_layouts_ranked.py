"""Layouts in their order: what fits, with the least recompute; NVIDIA's among the first; the own one."""

from __future__ import annotations

from itertools import combinations

import pytest

from heuristics.guides.memory_use import HEAD_ROOM
from heuristics.layouts.choose import Found
from heuristics.layouts.fit import module_costs
from heuristics.layouts.ranking import rules
from heuristics.run.run import Run
from tests.configurations.layouts import found, run_as_typed, without
from traces.settings.settings import Value, settings
from traces.sizes.memory import MemoryEstimate, estimate


@pytest.fixture(scope="module")
def qwen() -> Found:
    return found("Qwen3-30B-A3B", "H100", 16, 1024, without("Qwen3-30B-A3B", "H100"))


@pytest.fixture(scope="module")
def mixtral() -> Found:
    return found("Mixtral-8x7B", "H100", 64, 256, without("Mixtral-8x7B", "H100"))


def first_three(layouts: Found) -> list[tuple[int, int, int]]:
    return [(one.tp, one.pp, one.ep) for one in layouts.layouts[:3]]


def test_nvidias_layout_of_qwen3_30b_on_16_h100_is_among_the_first_three(qwen: Found) -> None:
    assert (1, 1, 16) in first_three(qwen)


def test_nvidias_layout_of_mixtral_8x7b_on_64_h100_is_among_the_first_three(mixtral: Found) -> None:
    assert (1, 4, 8) in first_three(mixtral)
    assert next(one.vpp for one in mixtral.layouts if (one.tp, one.pp, one.ep) == (1, 4, 8)) == 8


def test_costs_order_the_list_and_add_up(qwen: Found) -> None:
    costs = [one.cost_frac for one in qwen.layouts]
    assert costs == sorted(costs)
    assert [one.place for one in qwen.layouts] == [*range(1, len(costs) + 1)]
    for one in qwen.layouts:
        assert sum(cost.frac for cost in one.costs) == pytest.approx(one.cost_frac, abs=0.001 * len(rules()))


@pytest.mark.parametrize("place", [0, 1, 2, 5, 9])
def test_the_lines_to_type_make_the_layout_and_its_memory(qwen: Found, place: int) -> None:
    one, run = qwen.layouts[place], run_as_typed(qwen, place)
    sizes = (run.config.tp, run.config.cp, run.config.pp, run.config.ep, run.config.micro_batch)
    assert sizes == (one.tp, one.cp, one.pp, one.ep, one.micro_batch)
    held = estimate(run.config.settings, precision="bf16")
    assert isinstance(held, MemoryEstimate)
    assert isinstance(one.memory, MemoryEstimate)
    assert held.total_bytes == one.memory.total_bytes


def test_no_cheaper_recompute_than_the_listed_one_fits() -> None:
    layouts = found("DeepSeek-V2-Lite", "H100", 8, 64)
    costs = module_costs(layouts.model, Run(settings=layouts.settings))
    room = (1 - HEAD_ROOM.value) * (80 << 30)
    for place, one in enumerate(layouts.layouts):
        if one.recompute != "selective":
            continue
        price = sum(costs[module] for module in one.recompute_modules)
        run = run_as_typed(layouts, place)
        for count in range(len(costs)):
            for modules in combinations(costs, count):
                if sum(costs[module] for module in modules) >= price:
                    continue
                kept: dict[str, Value] = {
                    "recompute_granularity": "selective",
                    "recompute_modules": modules or ("none",),
                }
                held = estimate(run.config.settings.changed(kept, "test"), precision="bf16")
                assert isinstance(held, MemoryEstimate)
                crowded = held.total_bytes > 0.85 * (80 << 30)
                assert held.total_bytes > room or crowded, (one.place, modules)


def test_the_own_layout_stands_among_the_others_and_is_marked() -> None:
    own = settings(
        {
            "tensor_model_parallel_size": 2,
            "pipeline_model_parallel_size": 2,
            "expert_model_parallel_size": 4,
            "expert_tensor_parallel_size": 1,
            "train.micro_batch_size": 1,
        },
        "test",
    )
    layouts = found("Qwen3-30B-A3B", "H100", 16, 1024, own=own)
    marked = [one for one in layouts.layouts if one.own]
    assert [(one.tp, one.pp, one.ep) for one in marked] == [(2, 2, 4)]
    assert [one.cost_frac for one in layouts.layouts] == sorted(one.cost_frac for one in layouts.layouts)


def test_where_nothing_fits_the_least_need_is_known() -> None:
    layouts = found("DeepSeek-V3", "H100", 16, 64)
    assert layouts.layouts == ()
    assert layouts.least_bytes is not None
    assert layouts.least_bytes > 80 << 30


def test_experts_inside_the_nvlink_domain_come_before_those_across_it() -> None:
    layouts = found("GPT-OSS-20B", "H100", 16, 1024, ())
    by_ep = {one.ep: one.place for one in layouts.layouts if (one.tp, one.pp) == (1, 1)}
    assert by_ep[8] < by_ep[16]
