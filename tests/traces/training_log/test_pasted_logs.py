"""What people paste: a line from the middle, out of memory in any spelling, fragments, other trainers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.configurations.logs import iteration, log_of
from traces.training_log.iterations import steady_step
from traces.training_log.memory import inactive_memory, most_unallocated
from traces.training_log.own_lines import loading_frac

REPORT = "[Rank 0] (after 1 iterations) memory (GB) | mem-allocated-gigabytes: 208.0 | "
TITAN = "[rank0]:[titan] 2025-11-21 15:15:{at},000 - root - INFO - step: {step}  loss: 8.2  grad_norm: 0.4  "


def titan(at: int, step: int, rank: int = 0) -> str:
    text = TITAN.format(at=at, step=step).replace("rank0", f"rank{rank}")
    rates = "memory: 64.00GiB(82.98%)  tps: 1,482  tflops: 86.61  mfu: 8.76%"
    return f"{text}{rates}  time_metrics/data_loading(%): 76.0"


@pytest.mark.parametrize(
    "line",
    [
        "[rank52]: RuntimeError: Triton Error [CUDA]: out of memory",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.00 GiB.",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "CUDA driver error: CUDA_ERROR_OUT_OF_MEMORY",
        "terminate called: cudaErrorMemoryAllocation",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.",
    ],
)
def test_memory_runs_out_in_any_spelling(tmp_path: Path, line: str) -> None:
    (error,) = log_of(tmp_path, "> training", line).out_of_memory
    assert error.line == 2


def test_fragments_that_a_trainer_reports_are_memory_that_nobody_uses(tmp_path: Path) -> None:
    log = log_of(tmp_path, f"{REPORT}mem-inactive-gigabytes: 60.0 | mem-reserved-gigabytes: 240.0")
    report, most = inactive_memory(log), most_unallocated(log)
    assert report is not None
    assert most is not None
    assert (report.inactive_bytes, most.unallocated_frac) == (60_000_000_000, 0.25)


def test_lines_from_the_middle_are_all_steady(tmp_path: Path) -> None:
    steady = steady_step(log_of(tmp_path, *(iteration(index, 1000) for index in range(10, 14))))
    assert steady is not None
    assert steady.count == 4


def test_a_log_from_its_start_still_warms_up(tmp_path: Path) -> None:
    begun = log_of(
        tmp_path, "using world size: 8, data-parallel size: 8", *(iteration(n, 1000) for n in range(10, 14))
    )
    steady = steady_step(begun)
    assert steady is not None
    assert steady.count == 1


def test_torchtitans_lines_give_steps_rates_memory_and_the_wait_for_data(tmp_path: Path) -> None:
    log = log_of(tmp_path, titan(10, 10), titan(20, 20), titan(20, 20, rank=1), titan(30, 30))
    assert [(one.index, one.length_ns) for one in log.iterations] == [
        (20, 1_000_000_000),
        (30, 1_000_000_000),
    ]
    assert log.iterations[0].tokens_per_s_per_gpu == 1482
    assert log.memory[0].peak_reserved_bytes == 64 << 30
    assert loading_frac(log, steady_step(log)) == 0.76


def test_a_timer_of_batches_tells_the_wait_for_data(tmp_path: Path) -> None:
    timer = "    batch-generator ................................: (10.00, 500.00)"
    log = log_of(tmp_path, *(line for index in range(20, 24) for line in (iteration(index, 1000), timer)))
    assert loading_frac(log, steady_step(log)) == 0.5


def test_versions_of_transports_and_adapters_are_read(tmp_path: Path) -> None:
    egg = '  File "/lib/python3.12/deep_ep-1.2.1+309785a-py3.12.egg/deep_ep/buffer.py", line 1, in f'
    lines = ("NVSHMEM v3.6.5", "peft==0.15.2", "DeepSpeed info: version=0.17.2, git-hash=x", egg)
    log = log_of(
        tmp_path, *lines, "| NVIDIA-SMI 595.71.05    Driver Version: 595.71.05    CUDA Version: 13.2 |"
    )
    expected = {"nvshmem": "3.6.5", "peft": "0.15.2", "deepspeed": "0.17.2", "deepep": "1.2.1"}
    assert expected.items() <= log.versions.items()
    assert (log.versions["driver"], log.versions["cuda"]) == ("595.71.05", "13.2")


def test_a_watchdogs_line_gives_operation_sequence_number_and_size(tmp_path: Path) -> None:
    line = (
        "[E ProcessGroupNCCL.cpp:467] [Rank 6] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=202558, OpType=_ALLGATHER_BASE, NumelIn=4, NumelOut=32, Timeout(ms)=1800000) ran"
    )
    (message,) = log_of(tmp_path, line).messages
    assert message.said == {
        **{"rank": "6", "sequence": "202558", "operation": "_ALLGATHER_BASE"},
        **{"numel_in": "4", "numel_out": "32", "timeout_ms": "1800000"},
    }
