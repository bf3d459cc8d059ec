"""An estimate of memory beside what the GPU has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.observed import Observed
from heuristics.findings.contradictions import find_contradictions
from heuristics.findings.defects import defects_of
from heuristics.result.configured import ConfigFinding
from heuristics.run.run import Run
from tests.configurations.sizes import estimated, published, tiny
from tests.doubles.workflow import BY_ID
from traces.settings.settings import Settings

NAME = "CFG-memory-estimate"
NEEDED = estimated(tiny()).total_bytes


def run_on(capacity: float, known: Settings | None = None) -> Run:
    return Run(observed=Observed(memory_bytes=round(capacity)), settings=known or tiny())


def entry(run: Run) -> ConfigFinding | None:
    return next((one for one in find_contradictions(run) if one.id == NAME), None)


def large() -> Run:
    known = published(
        "qwen3_30b_a3b", seq_length=4096, world_size=8, expert_model_parallel_size=8,
        tensor_model_parallel_size=1, pipeline_model_parallel_size=1, train__micro_batch_size=2,
        train__global_batch_size=16, ddp__use_distributed_optimizer=True,
    )  # fmt: skip
    return run_on(80 * 2**30, known)


def test_an_estimate_beyond_its_own_error_does_not_fit() -> None:
    run = run_on(0.8 * NEEDED)
    found = entry(run)
    assert found is not None
    assert found.state == "does_not_fit"
    assert run.tells("fits") is False
    assert BY_ID["fit-first"].judge(run).state == "violated"


def test_an_estimate_within_its_own_error_is_a_warning() -> None:
    run = run_on(0.9 * NEEDED)
    found = entry(run)
    assert found is not None
    assert found.state == "may_not_fit"
    assert run.tells("fits") is None
    assert [one.kind for one in defects_of(run, (), (found,), ())] == ["warned"]


def test_the_entry_says_how_much_of_how_much_and_what_frees_most() -> None:
    found = entry(large())
    assert found is not None
    assert found.text == "each GPU needs about 130 GB (estimated, 110 GB to 149 GB), and the GPU has 85.9 GB"
    assert found.fix.startswith("in this order: MEM-2 (moe_act; frees ")
    assert "MEM-6" not in found.fix or found.fix.index("MEM-3") < found.fix.index("MEM-6")


@pytest.mark.parametrize("capacity", [NEEDED / 0.94, 2 * NEEDED])
def test_an_estimate_that_leaves_head_room_makes_no_entry(capacity: float) -> None:
    assert entry(run_on(capacity)) is None


def test_a_run_that_ran_needs_no_estimate() -> None:
    assert entry(replace(run_on(0.5 * NEEDED), window_ns=100)) is None


def test_weights_that_are_not_trained_make_no_estimate() -> None:
    assert entry(run_on(0.5 * NEEDED, tiny(**{"peft.dim": 16}))) is None
