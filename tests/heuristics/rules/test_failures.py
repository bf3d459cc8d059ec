from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.incidents.incident import incidents
from heuristics.rules.failures import (
    SIGNS,
    Failure,
    FailureRow,
    corrections,
    explain_failures,
    failures,
    rules_by_line,
)
from heuristics.rules.rules import known_lines, rules
from heuristics.run.run import Run
from tests.configurations.logs import EXCERPTS, crash, iteration, log_of, out_of_memory
from traces.settings.knobs import knobs
from traces.settings.settings import Value, settings
from traces.training_log.log import TrainingLog

KNOWN = [
    (row.partition("\t")[0], row.partition("\t")[2])
    for row in (EXCERPTS / "known_lines.txt").read_text(encoding="utf-8").splitlines()
    if "\t" in row
]
FACTS = {
    "graph-capture-begins",
    "graph-captured",
    "graph-built",
    "ended",
    "training-begins",
    "checkpoint",
    "profiler-begins",
    "profiler-ends",
    "tp-overlap-on",
    "tp-overlap-default",
    "ddp-config",
}
NEED_SETTINGS = {"kernel-sums", "illegal-access", "collective-timeout"}
OF_FAILURES = {line for row in failures().values() for line in row.lines}
OF_INCIDENTS = {line for row in incidents().values() for line in row.lines} - OF_FAILURES
"""Lines that nothing but an incident explains."""
BY_LINE = [(id, line) for id, line in KNOWN if id not in FACTS | NEED_SETTINGS | OF_INCIDENTS]
HEAD = ("Fixed order, fixed shapes", "> training on 16 ranks")


RULES = {line: [rule.id for rule in several] for line, several in rules_by_line().items()}
OTHERS = {"deepep-device-timeout": ["deepep-timeout"]}
"""Lines of one failure that has an id of its own."""


def explained(log: TrainingLog, **values: Value) -> dict[str, Failure]:
    given: Mapping[str, Value] = {name.replace("__", "."): value for name, value in values.items()}
    run = Run(settings=settings(given, "config.yaml"), log=log)
    return {failure.id: failure for failure in explain_failures(run)}


def test_a_line_of_the_frameworks_is_explained(tmp_path: Path) -> None:
    for id, line in BY_LINE:
        failures = explained(log_of(tmp_path, *HEAD, line))
        (failure,) = failures.values()
        assert failure.id in (RULES.get(id) or OTHERS.get(id, [id])), line
        assert failure.line == 3, line
        assert all((failure.text, failure.confirm, failure.cure, failure.source)), line


def test_every_known_line_is_known_by_its_own_id(tmp_path: Path) -> None:
    for id, line in KNOWN:
        assert [message.id for message in log_of(tmp_path, line).messages] == [id]


def test_the_source_that_a_traceback_shows_is_no_failure(tmp_path: Path) -> None:
    for id, line in BY_LINE:
        if "Error: " in line:
            words = line.partition("Error: ")[2]
            shown = "[rank0]: Traceback (most recent call last):", f"[rank0]:     ), '{words}'"
            assert id not in explained(log_of(tmp_path, *shown)), line


OVERLAP = {"overlap_moe_expert_parallel_comm": True}
STEP = iteration(4, 100.0)
LINES = dict(KNOWN)
TIMEOUT, ILLEGAL, SUMS = (LINES[id] for id in ("collective-timeout", "illegal-access", "kernel-sums"))
FUSED: dict[str, Value] = dict.fromkeys(("moe_grouped_gemm", "use_transformer_engine_op_fuser"), True)
FUSED["num_moe_experts"] = 8
TORCH_25, TORCH_26 = "> PyTorch version ................ 2.5.1", "> PyTorch version ................ 2.6.0"
CAPTURED = "Time spent in CUDA Graphs capture on rank 0: 3.5s"
REPORT = "[Rank 0] (after 2 iterations) memory (MB) | allocated: 1.0 | max allocated: 75.0 | reserved: 1.0 | "
ALLTOALL: dict[str, Value] = {"moe_token_dispatcher_type": "alltoall"}
GRAPHS: dict[str, Value] = {"cuda_graph_impl": "transformer_engine"}
STAGES: dict[str, Value] = {"pipeline_model_parallel_size": 4}
LOGITS: dict[str, Value] = {"seq_length": 32768, "vocab_size": 131072, "train__micro_batch_size": 1}
OWN = "Including non-PyTorch memory, this process has"
SHARED = (
    "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 3 has a total capacity of 80.00 GiB of which "
    "1.00 GiB is free. {} 36.00 GiB memory in use. Of the allocated memory 30.00 GiB is allocated by "
    "PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
)
WAITS = (
    "[rank{}]:[E1 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={}, OpType={}, NumelIn={}, NumelOut=8, Timeout(ms)=600000) ran for 600021 milliseconds"
)
FORWARD = crash("train_step", "forward_step", last=out_of_memory())

Case = tuple[str, tuple[str, ...], dict[str, Value]]
SEEN: list[Case] = [
    ("hang-overlap-torch", (TORCH_25, STEP), {**OVERLAP}),
    ("hang-overlap-torch", (TORCH_25, STEP, TIMEOUT),
     {"comm_overlap__overlap_moe_expert_parallel_comm": True}),
    ("hang-collective", (TORCH_26, STEP, TIMEOUT), {**OVERLAP}),
    ("memory-fragmented", crash("forward_step", last=out_of_memory("1.00 GiB", "70.00 GiB", "1.00 GiB")), {}),
    ("memory-fragmented", (REPORT + "max reserved: 100.0",), {}),
    ("memory-fragmented-beside-pool", (out_of_memory("1.00 GiB", "70.00 GiB", "1.00 GiB"),),
     {"launcher__colocated": True}),
    ("memory-elsewhere", (SHARED.format("Process 7 has 9.00 GiB memory in use. " + OWN),), {}),
    ("memory-elsewhere", (SHARED.format("Process 7 has 9.00 GiB memory in use. Process 8 has"),), {}),
    ("memory-one-tensor", (SHARED.format("This").replace("3.00 GiB", "96.00 GiB"),), {}),
    ("memory-library", ("ncclUnhandledCudaError: Cuda failure 2 'out of memory'",), {}),
    ("memory-logits", (out_of_memory("8.00 GiB"),), {**LOGITS}),
    ("hang-losses-of-layers", (WAITS.format(3, 5, "ALLREDUCE", 8),), {"num_layers": 8, **STAGES}),
    ("hang-two-at-once", (WAITS.format(3, 5, "ALLTOALL_BASE", 8), WAITS.format(3, 6, "ALLREDUCE", 8)), {}),
    ("hang-unlike", (WAITS.format(3, 5, "ALLREDUCE", 8), WAITS.format(4, 5, "ALLREDUCE", 16)), {}),
    ("hang-unlike", (WAITS.format(3, 5, "ALLREDUCE", 8), WAITS.format(4, 5, "BROADCAST", 8)), {}),
    ("memory-activations", FORWARD, {}),
    ("memory-activations", crash("backward_step", last=out_of_memory()), {}),
    ("memory-optimizer", crash("step_with_ready_grads", "_init_group", last=out_of_memory()), {}),
    ("memory-optimizer", crash("step_with_ready_grads", last=out_of_memory()), {}),
    ("memory-parameters", crash("setup_model_and_optimizer", last=out_of_memory()), {}),
    ("memory-unknown-stage", (out_of_memory("1.20 GiB"),), {}),
    ("memory-too-much", (out_of_memory("8.00 GiB", "79.00 GiB", "1.00 GiB"),), {}),
    ("memory-graphs", crash("create_cudagraphs", last=out_of_memory()), {}),
    ("memory-graphs", (CAPTURED, *FORWARD), {}),
    ("memory-graphs",
     (out_of_memory(pools=" with 3.00 GiB allocated in private pools (e.g., CUDA Graphs),"),), {}),
    ("memory-overlap", FORWARD, {**OVERLAP}),
    ("graph-illegal-access", (CAPTURED, ILLEGAL), {}),
    ("graph-illegal-access", (ILLEGAL,),
     {**GRAPHS, "env__PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    ("kernel-sums", (SUMS,), {**OVERLAP}),
    # of rules that share a line the broken one before one that is unknown, that before one that is met
    ("fused-experts-etp", (LINES["fused-experts"],), {**FUSED, "expert_tensor_parallel_size": 2}),
    ("dispatcher-alltoall-seq", (LINES["dispatcher-name"],), {"moe_token_dispatcher_type": "alltoall_seq"}),
    ("mxfp8-te", (LINES["fp8-recipe-te"],), {"fp8": "hybrid", "fp8_recipe": "mxfp8"}),
]  # fmt: skip
NOT_SEEN: list[Case] = [
    ("hang-losses-of-layers", (WAITS.format(3, 5, "ALLREDUCE", 8),), {"num_layers": 8}),
    ("hang-losses-of-layers", (WAITS.format(3, 5, "ALLREDUCE", 7),), {"num_layers": 8, **STAGES}),
    ("hang-overlap-torch", (TORCH_26, STEP), {**OVERLAP}),
    ("hang-overlap-torch", (TORCH_25, STEP), {"overlap_moe_expert_parallel_comm": False}),
    ("hang-overlap-torch", (STEP, TIMEOUT), {**OVERLAP}),
    ("hang-collective", (TORCH_25, STEP, TIMEOUT), {**OVERLAP}),
    ("memory-fragmented", crash("forward_step", last=out_of_memory("1.01 GiB", "70.00 GiB", "1.00 GiB")), {}),
    ("memory-fragmented", (REPORT + "max reserved: 90.0",), {}),
    (
        "memory-fragmented",
        (out_of_memory("1.00 GiB", "70.00 GiB", "1.00 GiB"),),
        {"env__PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    ),
    (
        "memory-elsewhere",
        (
            SHARED.format(
                "Process 7 has 0.50 GiB memory in use. Including non-PyTorch memory, this process has"
            ),
        ),
        {},
    ),
    ("memory-elsewhere", (SHARED.format("Including non-PyTorch memory, Process 8 has"),), {}),
    ("hang-two-at-once", (WAITS.format(3, 5, "ALLREDUCE", 8), WAITS.format(4, 6, "ALLREDUCE", 8)), {}),
    ("hang-unlike", (WAITS.format(3, 5, "ALLREDUCE", 8), WAITS.format(4, 5, "ALLREDUCE", 8)), {}),
    ("memory-activations", crash("forward_step", last=out_of_memory("1.00 GiB")), {}),
    ("memory-activations", crash("step_with_ready_grads", last=out_of_memory()), {}),
    *(("memory-optimizer", FORWARD, {}), ("memory-parameters", FORWARD, {})),
    ("memory-unknown-stage", FORWARD, {}),
    ("memory-unknown-stage", (out_of_memory("8.00 GiB", "79.00 GiB", "1.00 GiB"),), {}),
    *(("memory-too-much", FORWARD, {}), ("memory-graphs", FORWARD, {**GRAPHS})),
    ("memory-overlap", FORWARD, {**OVERLAP, "ep_overlap_early_attn_memory_release": True}),
    *(("memory-overlap", FORWARD, {}), ("graph-illegal-access", (ILLEGAL,), {})),
    ("graph-illegal-access", (CAPTURED, ILLEGAL), {"env__NCCL_GRAPH_REGISTER": "0"}),
    ("graph-illegal-access", (CAPTURED, ILLEGAL), {"env__PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}),
    ("kernel-sums", (SUMS,), {}),
]


@pytest.mark.parametrize(("id", "lines", "values"), SEEN)
def test_a_symptom_is_explained_with_the_settings(
    tmp_path: Path, id: str, lines: tuple[str, ...], values: dict[str, Value]
) -> None:
    assert id in explained(log_of(tmp_path, *HEAD, *lines), **values)


@pytest.mark.parametrize(("id", "lines", "values"), NOT_SEEN)
def test_a_near_miss_is_not_explained(
    tmp_path: Path, id: str, lines: tuple[str, ...], values: dict[str, Value]
) -> None:
    assert id not in explained(log_of(tmp_path, *HEAD, *lines), **values)


@pytest.mark.parametrize("row", failures().values(), ids=lambda row: row.id)
def test_a_row_names_what_exists(row: FailureRow) -> None:
    assert row.fix in {*CATALOGUE, *corrections()}
    assert set(row.set) <= set(knobs())
    assert set(row.lines) <= set(known_lines().by_id)
    assert set(row.signs) <= set(SIGNS)
    assert set(row.unless) <= set(failures())
    assert not row.rule or row.rule in rules()


def test_a_failure_without_a_source_has_that_of_its_first_line() -> None:
    row = failures()["deepep-timeout"]
    assert row.source == known_lines().by_id["deepep-timeout"].source


def test_failures_come_in_the_order_of_their_lines(tmp_path: Path) -> None:
    lines = [LINES[id] for id in ("router-dtype-cast", "graphs-graph-register")]
    values: dict[str, Value] = {**ALLTOALL, "moe_flex_dispatcher_backend": "ncclep"}
    run = Run(settings=settings(values, "config.yaml"), log=log_of(tmp_path, *lines))
    found = explain_failures(run)
    assert [(one.id, one.line) for one in found] == [("flex-router-dtype", 1), ("graphs-graph-register", 2)]


def test_a_rule_that_the_log_prints_and_the_configuration_keeps_was_not_handed_on(tmp_path: Path) -> None:
    log = log_of(tmp_path, *HEAD, LINES["world-expert-mesh"])
    ones = dict.fromkeys(("expert_tensor_parallel_size", "pipeline_model_parallel_size"), 1)
    for ep, held in ((4, True), (3, False)):
        found = explained(log, **ones, world_size=4, expert_model_parallel_size=ep)["world-expert-mesh"]
        assert ("did not get" in found.cure) is held


def test_a_run_without_a_log_has_no_failure() -> None:
    assert explain_failures(Run()) == ()


def test_a_log_that_stops_before_its_first_step_names_no_line() -> None:
    log = TrainingLog("a.log", 9, versions={"torch": "2.5.1"}, stopped=True)
    assert explained(log, **OVERLAP)["hang-overlap-torch"].line is None
    assert "hang-overlap-torch" not in explained(replace(log, stopped=False), **OVERLAP)


def test_a_log_that_stops_names_its_last_step(tmp_path: Path) -> None:
    found = explained(log_of(tmp_path, *HEAD, TORCH_25, STEP, iteration(5, 100.0)), **OVERLAP)
    assert found["hang-overlap-torch"].line == 5


def test_nothing_of_a_log_or_a_configuration_is_in_a_failure(tmp_path: Path) -> None:
    lines = [f"hunter2 {line} hunter2" for _, line in KNOWN]
    values: dict[str, Value] = {
        **ALLTOALL,
        "moe_flex_dispatcher_backend": "hybridep",
        "env__SECRET": "hunter2",
    }
    run = Run(settings=settings(values, "hunter2.yaml"), log=log_of(tmp_path, *lines))
    found = explain_failures(run)
    assert len(found) > 60
    assert "hunter2" not in repr(found)
