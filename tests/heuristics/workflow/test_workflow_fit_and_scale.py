"""Phases 1 and 2 of the workflow and parallel folding: each row under the document it is from."""

from __future__ import annotations

import pytest

from tests.doubles.workflow import BY_ID, Config, Row, run_with
from tests.doubles.workflow_phases import CUT, FIT, FOLDING, SCALE


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in (*FIT, *SCALE, *FOLDING)])
def test_a_rule_of_the_phases_says_what_its_document_does(row: Row) -> None:
    assert row.judged.state == row.state


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
