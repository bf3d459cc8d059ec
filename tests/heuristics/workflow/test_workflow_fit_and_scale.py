"""Phases 1 and 2 of the workflow and parallel folding: each row under the document it is from."""

from __future__ import annotations

import pytest

from heuristics.workflow.facts import expert_ranks, meshes, sanity_line
from tests.doubles.workflow import BY_ID, GIB, Config, Row, log_of, run_with
from tests.doubles.workflow_phases import CUT, FIT, FOLDING, SCALE


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in (*FIT, *SCALE, *FOLDING)])
def test_a_rule_of_the_phases_says_what_its_document_does(row: Row) -> None:
    assert row.judged.state == row.state


def because(rule: str, *knobs: object, **what: object) -> str:
    return BY_ID[rule].judge(run_with(*knobs, **what)).because  # type: ignore[arg-type]


def test_both_meshes_are_printed_with_their_numbers() -> None:
    assert because("world-attention-mesh", CUT) == "ranks 256, TP 4, PP 4, CP 2"
    assert because("world-expert-mesh", CUT) == "ranks 256, ETP 1, EP 8, PP 4"


def test_folding_lets_ep_grow_to_what_one_domain_holds() -> None:
    found = BY_ID["folding-larger-ep"].judge(run_with(CUT, given={"gpu": "GB200"}))
    assert "up to EP64" in found.advice


def test_what_memory_holds_decides_with_its_figure() -> None:
    assert "uses 50 % of its memory" in because(
        "fit-smallest-model-parallel", CUT, log=log_of(steps=1, peak_gib=50)
    )
    assert "3.0 % of the memory is free" in because("fit-first", log=log_of(steps=1, peak_gib=97))


def test_the_trace_tells_memory_where_no_log_does() -> None:
    assert "10 % of the memory free" in because("fit-first", shown={"peak_bytes": 90 * GIB})


def test_the_single_gpu_line_has_the_real_flag_and_no_flex() -> None:
    flex: Config = {**CUT, "moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
    line = sanity_line(run_with(flex))
    assert line.startswith("WORLD_SIZE=256 RANK=0 python pretrain_gpt.py --fake-process-group")
    assert "--tensor-model-parallel-size 4" in line
    assert "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1" in line
    assert line.endswith("--moe-token-dispatcher-type alltoall")
    assert "flex" not in line


def test_what_is_unknown_of_the_layout_stands_as_a_letter_in_the_line() -> None:
    assert "WORLD_SIZE=N" in sanity_line(run_with())
    assert "--pipeline-model-parallel-size PP" in sanity_line(run_with())


def test_options_outweigh_the_configuration_in_the_layout() -> None:
    run = run_with({"tensor_model_parallel_size": 2}, given={"tp": 8, "pp": 4, "ep": 16})
    assert meshes(run) == ("TP8 x CP? x DP? x PP4", "ETP8 x EP16 x EDP? x PP4")
    assert expert_ranks(run) == 128


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
