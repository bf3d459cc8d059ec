"""Phases 1 and 2 of the workflow and parallel folding: each row under the document it is from."""

from __future__ import annotations

import pytest

from heuristics.workflow.facts import expert_ranks, meshes, sanity_line
from heuristics.workflow.walk import RuleState
from tests.doubles.workflow import BY_ID, GIB, Config, Row, log_of, rows, run_with

H100 = {"gpu": "H100"}
CUT: Config = {
    "tensor_model_parallel_size": 4,
    "context_parallel_size": 2,
    "pipeline_model_parallel_size": 4,
    "expert_model_parallel_size": 8,
    "expert_tensor_parallel_size": 1,
    "num_moe_experts": 64,
    "world_size": 256,
}
"""The documents' example: 256 GPUs, TP4 CP2 DP8 PP4."""
ONE: Config = dict.fromkeys(
    ("tensor_model_parallel_size", "context_parallel_size", "pipeline_model_parallel_size"), 1
)

LENGTHS: tuple[tuple[int, int, RuleState], ...] = (
    (4_096, 1, "met"),
    (65_536, 1, "violated"),
    (65_536, 4, "violated"),
)

FIT: tuple[Row, ...] = (
    *rows(
        "002",
        "fit-first",
        met=run_with(log=log_of(steps=3, peak_gib=60)),
        violated=run_with(log=log_of(oom=2)),
    ),
    Row("003", "fit-first", "violated", run_with(log=log_of(steps=3, peak_gib=97))),
    Row("003", "fit-first", "met", run_with(log=log_of(steps=3))),
    *rows(
        "002",
        "fit-smallest-model-parallel",
        met=run_with(CUT, log=log_of(steps=3, peak_gib=51)),
        violated=run_with(CUT, log=log_of(steps=3, peak_gib=50)),
        unknown=run_with(CUT),
    ),
    Row("003", "fit-smallest-model-parallel", "met", run_with(ONE)),
    Row("003", "fit-smallest-model-parallel", "met", run_with(CUT, log=log_of(oom=1, peak_gib=50))),
    *rows(
        "002",
        "fit-selective-before-full",
        met=run_with({"recompute_granularity": "selective"}),
        violated=run_with({"recompute_granularity": "full"}),
    ),
    Row("003", "fit-selective-before-full", "violated", run_with(shown={"recompute_full": True})),
    Row(
        "003",
        "fit-selective-before-full",
        "met",
        run_with({"recompute_granularity": "full"}, log=log_of(oom=1)),
    ),
    *rows(
        "003",
        "fit-recompute-modules",
        met=run_with({"recompute_granularity": "selective", "recompute_modules": ("moe_act", "layernorm")}),
        violated=run_with({"recompute_granularity": "selective", "recompute_modules": ("moe",)}),
        not_applicable=run_with({"recompute_granularity": "full"}),
    ),
    *rows(
        "002",
        "fit-offload-last",
        met=run_with({"cpu_offloading": True, "recompute_granularity": "selective"}),
        violated=run_with({"optimizer.optimizer_cpu_offload": True, "recompute_granularity": None}),
        unknown=run_with({"fine_grained_activation_offloading": True}),
    ),
    Row(
        "003",
        "fit-offload-last",
        "violated",
        run_with({"cpu_offloading": True}, shown={"recompute_modules": ()}),
    ),
    *rows(
        "002",
        "fit-single-gpu-sanity",
        met=run_with({"fake_process_group": True, "moe_token_dispatcher_type": "alltoall"}),
        violated=run_with({"fake_process_group": True, "moe_token_dispatcher_type": "flex"}),
        unknown=run_with(CUT),
        not_applicable=run_with(given={"core_version": "0.15.3"}),
    ),
    Row("003", "fit-single-gpu-sanity", "unknown", run_with(CUT)),
)

EVEN: Config = {
    "pipeline_model_parallel_layout": None,
    "num_layers_in_first_pipeline_stage": None,
    "num_layers_in_last_pipeline_stage": None,
    "account_for_embedding_in_pipeline_split": False,
    "account_for_loss_in_pipeline_split": False,
}
STAGES: Config = {"num_layers": 16, "pipeline_model_parallel_size": 4}

SCALE: tuple[Row, ...] = (
    *rows(
        "002",
        "scale-dp-first",
        met=run_with(CUT, log=log_of(steps=1, peak_gib=80)),
        violated=run_with(CUT, log=log_of(steps=1, peak_gib=40)),
        unknown=run_with(CUT),
        not_applicable=run_with(CUT, log=log_of(oom=1)),
    ),
    Row("003", "scale-dp-first", "violated", run_with({**CUT, "ddp.use_distributed_optimizer": False})),
    *rows(
        "002",
        "scale-fast-domain",
        met=run_with(CUT, given=H100),
        violated=run_with({**CUT, "expert_model_parallel_size": 16}, given=H100),
        unknown=run_with(CUT),
    ),
    Row("003", "scale-fast-domain", "violated", run_with({"tensor_model_parallel_size": 16}, given=H100)),
    Row(
        "003",
        "scale-fast-domain",
        "met",
        run_with({**CUT, "expert_model_parallel_size": 64}, given={"gpu": "GB200"}),
    ),
    *rows(
        "002",
        "scale-pp-across-nodes",
        met=run_with(CUT, given=H100),
        violated=run_with({**ONE, "tensor_model_parallel_size": 16, "world_size": 32}, given=H100),
        not_applicable=run_with({**ONE, "world_size": 8}, given=H100),
    ),
    *rows(
        "003",
        "scale-vpp",
        met=run_with({"pipeline_model_parallel_size": 4, "virtual_pipeline_model_parallel_size": 2}),
        violated=run_with({"pipeline_model_parallel_size": 4, "virtual_pipeline_model_parallel_size": None}),
        not_applicable=run_with(ONE),
    ),
    Row(
        "002",
        "scale-vpp",
        "met",
        run_with({"pipeline_model_parallel_size": 8, "pipeline_model_parallel_layout": "Et|(tt|)*30L"}),
    ),
    *rows(
        "000",
        "layers-per-stage",
        met=run_with({**EVEN, "num_layers": 32, "pipeline_model_parallel_size": 4}),
        violated=run_with({**EVEN, "num_layers": 61, "pipeline_model_parallel_size": 8}),
        not_applicable=run_with({"pipeline_model_parallel_layout": "Et|tL"}),
    ),
    *rows(
        "000",
        "layers-per-virtual-stage",
        met=run_with({**EVEN, **STAGES, "virtual_pipeline_model_parallel_size": 2}),
        violated=run_with({**EVEN, **STAGES, "virtual_pipeline_model_parallel_size": 3}),
        not_applicable=run_with({**EVEN, **STAGES, "virtual_pipeline_model_parallel_size": None}),
    ),
    Row("002", "one-of-everything", "unknown"),
    Row("002", "one-of-everything", "not_applicable", run_with({**CUT, "expert_tensor_parallel_size": 1})),
    Row("002", "one-of-everything", "violated", run_with({**CUT, "expert_tensor_parallel_size": 2})),
    Row(
        "003",
        "one-of-everything",
        "met",
        run_with({**CUT, "expert_tensor_parallel_size": 2, "expert_model_parallel_size": 64}),
    ),
    *rows(
        "002",
        "scale-cp-long-context",
        met=run_with({"seq_length": 32_768, "context_parallel_size": 8}),
        violated=run_with({"seq_length": 4_096, "context_parallel_size": 2}),
        unknown=run_with({"seq_length": 8_192, "context_parallel_size": 1}),
    ),
    Row("003", "scale-cp-long-context", "met", run_with({"seq_length": 4_096, "context_parallel_size": 1})),
    Row(
        "003",
        "scale-cp-long-context",
        "violated",
        run_with({"seq_length": 65_536, "context_parallel_size": 1}),
    ),
    Row(
        "003",
        "scale-cp-long-context",
        "violated",
        run_with({"seq_length": 65_536, "context_parallel_size": 4}),
    ),
    Row(
        "003",
        "scale-cp-long-context",
        "violated",
        run_with({"seq_length": 8_192, "context_parallel_size": 1}, given={"memory_tight": True}),
    ),
    Row(
        "003",
        "scale-cp-long-context",
        "met",
        run_with({"seq_length": 8_192, "context_parallel_size": 1}, log=log_of(steps=1, peak_gib=50)),
    ),
)

FOLDING: tuple[Row, ...] = (
    *rows(
        "002",
        "world-attention-mesh",
        met=run_with(CUT),
        violated=run_with({**CUT, "world_size": 100}),
        unknown=run_with({**CUT, "world_size": None}),
    ),
    *rows(
        "003",
        "world-expert-mesh",
        met=run_with(CUT),
        violated=run_with({**CUT, "expert_model_parallel_size": 128}),
        unknown=run_with({**CUT, "world_size": None}),
    ),
    *rows(
        "002",
        "experts-per-rank",
        met=run_with(CUT),
        violated=run_with({"num_moe_experts": 64, "expert_model_parallel_size": 6}),
    ),
    *rows(
        "003",
        "folding-own-layout",
        met=run_with(CUT),
        violated=run_with({**CUT, "expert_tensor_parallel_size": None}),
        not_applicable=run_with({**ONE, "expert_model_parallel_size": 8}),
    ),
    *rows(
        "002",
        "folding-larger-ep",
        met=run_with({**CUT, "expert_model_parallel_size": 64}),
        violated=run_with(CUT, given={"gpu": "GB200"}),
        not_applicable=run_with({**ONE, "expert_model_parallel_size": 8, "world_size": 8}),
    ),
    Row("003", "folding-larger-ep", "met", run_with(CUT, given=H100)),
)


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
