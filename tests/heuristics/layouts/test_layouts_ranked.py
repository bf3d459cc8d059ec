"""Layouts in their order: what fits, with the least recompute; NVIDIA's among the first; the own one."""

from __future__ import annotations

import pytest

from heuristics.layouts.choose import Found
from tests.configurations.layouts import found, run_as_typed, without
from traces.sizes.memory import MemoryEstimate, estimate


@pytest.fixture(scope="module")
def qwen() -> Found:
    return found("Qwen3-30B-A3B", "H100", 16, 1024, without("Qwen3-30B-A3B", "H100"))


@pytest.mark.parametrize("place", [0, 1, 2, 5, 9])
def test_the_lines_to_type_make_the_layout_and_its_memory(qwen: Found, place: int) -> None:
    one, run = qwen.layouts[place], run_as_typed(qwen, place)
    sizes = (run.config.tp, run.config.cp, run.config.pp, run.config.ep, run.config.micro_batch)
    assert sizes == (one.tp, one.cp, one.pp, one.ep, one.micro_batch)
    held = estimate(run.config.settings, precision="bf16")
    assert isinstance(held, MemoryEstimate)
    assert isinstance(one.memory, MemoryEstimate)
    assert held.total_bytes == one.memory.total_bytes


def test_where_nothing_fits_the_least_need_is_known() -> None:
    layouts = found("DeepSeek-V3", "H100", 16, 64)
    assert layouts.layouts == ()
    assert layouts.least_bytes is not None
    assert layouts.least_bytes > 80 << 30


def test_experts_inside_the_nvlink_domain_come_before_those_across_it() -> None:
    layouts = found("GPT-OSS-20B", "H100", 16, 1024, ())
    by_ep = {one.ep: one.place for one in layouts.layouts if (one.tp, one.pp) == (1, 1)}
    assert by_ep[8] < by_ep[16]
