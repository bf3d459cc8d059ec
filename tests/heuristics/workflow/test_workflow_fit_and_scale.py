"""Phases 1 and 2 of the workflow: what is typed, and what is not repeated."""

from __future__ import annotations

from tests.doubles.workflow import BY_ID, Config, run_with
from tests.doubles.workflow_lists import CUT


def because(rule: str, *knobs: object, **what: object) -> str:
    return BY_ID[rule].judge(run_with(*knobs, **what)).because  # type: ignore[arg-type]


def test_the_single_gpu_line_has_the_real_flag_and_no_flex() -> None:
    flex: Config = {**CUT, "moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
    line = run_with(flex).tells("sanity_line")
    assert line.startswith("WORLD_SIZE=256 RANK=0 python pretrain_gpt.py --fake-process-group")
    assert "--tensor-model-parallel-size 4" in line
    assert "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1" in line
    assert line.endswith("--moe-token-dispatcher-type alltoall")
    assert "flex" not in line


def test_virtual_stages_follow_from_the_layers_of_one() -> None:
    cut: Config = {
        "num_layers": 32,
        "pipeline_model_parallel_size": 4,
        "num_layers_per_virtual_pipeline_stage": 2,
    }
    assert run_with(cut).config.vpp == 4


def test_an_unknown_label_of_recompute_is_not_repeated() -> None:
    said: Config = {"recompute_granularity": "selective", "recompute_modules": ("hunter2",)}
    assert "hunter2" not in because("fit-recompute-modules", said)
