"""One defect is told once: rules, findings and steps of the workflow know who tells the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.findings.contradictions import find_contradictions
from heuristics.findings.defects import defects_of
from heuristics.result.configured import Defect
from heuristics.rules.check import check_rules
from heuristics.rules.failures import explain_failures
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.rules import rules
from heuristics.run.run import Run
from heuristics.workflow.walk import RULES as WORKFLOW
from tests.configurations.constraints import run_with
from tests.read_back.source import finding_ids
from traces.training_log.log import Message, TrainingLog

OVERLAP = {"overlap_moe_expert_parallel_comm": True}
FLEX_TYPE = {"moe_token_dispatcher_type": "alltoall", "moe_flex_dispatcher_backend": "hybridep"}
FULL = {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
LOG = TrainingLog("test", 9, messages=(Message("ep-overlap-shared-experts", 7),))


def test_what_a_rule_names_as_the_same_exists() -> None:
    known = {one.id for one in WORKFLOW} | finding_ids()
    starts = tuple(one for one in known if one.endswith("-"))
    named = {one for rule in rules().values() for one in rule.same}
    assert {one for one in named if one not in known and not one.startswith(starts)} == set()


def entries(**knobs: object) -> list[Defect]:
    run = run_with({name.replace("__", "."): value for name, value in knobs.items()})
    return list(defects_of(run, check_rules(run), find_contradictions(run), ()))


def test_a_rule_and_the_finding_that_tells_the_same_are_one_entry() -> None:
    (found,) = entries(mb=True, **FLEX_TYPE)
    assert (found.id, found.kind) == ("flex-backend-inert", "not_as_written")
    assert "CFG-flex-type" in found.of
    assert [at.source for at in found.seen][-1] == "evidence"


def test_rules_that_one_cure_meets_are_one_entry() -> None:
    (found,) = entries(core="0.17.0", **OVERLAP, **FULL)
    assert found.id == "ep-overlap-full-recompute"
    assert len(found.also) == 2
    assert "ep-overlap-recompute-layers" in found.of


def test_wrong_hardware_queues_are_one_entry_where_a_rule_refuses_them() -> None:
    plain = {
        "overlap_moe_expert_parallel_comm": False,
        "ddp.use_megatron_fsdp": False,
        "use_torch_fsdp2": False,
    }
    cut = {"env.CUDA_DEVICE_MAX_CONNECTIONS": "8", "tensor_model_parallel_size": 2, **plain}
    assert [one.id for one in entries(lm=True, gpu="H100", **cut)] == ["max-connections-one"]
    sharded = {"env.CUDA_DEVICE_MAX_CONNECTIONS": "1", "ddp.use_megatron_fsdp": True}
    assert [one.id for one in entries(mb=True, **sharded) if "CONNECTIONS" in one.what] == [
        "max-connections-fsdp"
    ]


FULL_GRAPHS = {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"], **FULL}
DELAYED = {
    "fp8": "hybrid",
    "fp8_recipe": "delayed",
    "recompute_granularity": "selective",
    "recompute_modules": ["layernorm"],
}


@pytest.mark.parametrize(
    ("knobs", "cure"),
    [
        ({**FULL_GRAPHS, "num_moe_experts": 8}, "selective recompute"),
        ({**FULL_GRAPHS, "num_moe_experts": "null"}, "selective recompute, or a graph of the full iteration"),
        (
            {**DELAYED, "gpu": "H100", "multi_latent_attention": True},
            "another FP8 recipe, or recompute mla_up_proj instead, "
            "or take moe_act and layernorm out of recompute_modules",
        ),
        ({**DELAYED, "gpu": "A100"}, "take moe_act and layernorm out of recompute_modules"),
    ],
)
def test_a_cure_names_only_what_the_model_and_the_gpu_have(knobs: dict[str, object], cure: str) -> None:
    assert cure in [one.cure for one in entries(**knobs)]


def test_a_line_of_the_log_is_where_the_rule_was_seen() -> None:
    run = replace(run_with({**OVERLAP, "moe_shared_expert_overlap": True}), log=LOG)
    (found,) = defects_of(run, check_rules(run), (), explain_failures(run))
    assert [(at.source, at.where) for at in found.seen][-1] == ("log", "line 7")


def test_an_entry_says_since_when_its_cure_and_what_it_costs() -> None:
    (found,) = entries(core="0.16.0", **OVERLAP, mtp_num_layers=1, pipeline_model_parallel_size=1)
    assert (found.since, found.until) == ("Megatron-Core 0.16.0", "Megatron-Core 0.18.0")
    assert (found.fix, found.cost) == ("ENV-2", "training does not start")


def test_what_megatron_core_says_of_a_broken_rule_is_the_same_entry() -> None:
    run = run_with({**OVERLAP, "moe_shared_expert_overlap": True})
    text = "AssertionError: disable moe_shared_expert_overlap when enabling overlap_moe_expert_parallel_comm"
    answers = (Answer("config", "rejected", text), Answer("config", "rejected", "something else"))
    found = defects_of(run, check_rules(run), (), (), answers)
    assert [one.id for one in found] == ["ep-overlap-shared-experts", ""]


def test_an_optimizer_that_offloads_nothing_is_one_entry_with_one_value() -> None:
    found = entries(**{"optimizer.optimizer_cpu_offload": True, "optimizer.optimizer_offload_fraction": 0.0})
    (told,) = [one for one in found if "offloaded fraction" in one.what]
    assert told.set == {"optimizer.optimizer_offload_fraction": 0.25}
    assert not [one for one in found if one is not told and "offload" in one.id]


def test_what_nobody_refuses_before_it_runs_is_not_called_rejected() -> None:
    kinds = {
        one.by: defects_of(Run(), (one,), (), ())[0].kind for one in rules().values() if one.level == "error"
    }
    assert kinds.pop("ours") == "fails"
    assert {*kinds.values()} == {"rejected"}
    assert len(kinds) == 6
