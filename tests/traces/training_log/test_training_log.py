"""Training logs: what each line tells, pasted or whole, and the steady step."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.configurations.logs import crash, frame, iteration, log_of, out_of_memory, read, step_time
from traces.errors import InputError
from traces.settings.settings import Value, settings
from traces.training_log.iterations import perturbation_frac, steady_step
from traces.training_log.log import Iteration, Message, Stage, TrainingLog
from traces.training_log.memory import inactive_memory, most_unallocated, peak_memory
from traces.training_log.own_lines import loading_frac
from traces.training_log.read import LONGEST_LINE

GIB = 1 << 30
MIB = 1 << 20


def test_an_iteration_line_of_megatron_lm_tells_number_length_and_throughput(tmp_path: Path) -> None:
    tail = " throughput per GPU (TFLOP/s/GPU): 199.1 |"
    (read,) = log_of(tmp_path, "starting", iteration(10, 31310.0, tail=tail)).iterations
    assert (read.index, read.line) == (10, 2)
    assert read.length_ns == 31_310_000_000
    assert read.tflops_per_gpu == 199.1
    assert read.global_batch_size == 8


@pytest.mark.parametrize(
    "prefix", ["", "0: ", "[rank7]: ", "2026-08-22T10:00:00Z ", "\x1b[32mnode 3 |\x1b[0m "]
)
def test_an_iteration_line_is_read_behind_any_prefix(tmp_path: Path, prefix: str) -> None:
    (read,) = log_of(tmp_path, prefix + iteration(2, 100.0)).iterations
    assert (read.index, read.length_ns) == (2, 100_000_000)


def test_a_step_time_line_adds_its_throughput_to_the_iteration_of_its_length(tmp_path: Path) -> None:
    lines = (step_time(1.00, 10.0), iteration(1, 1000.0), iteration(2, 2000.0), step_time(2.00, 5.0))
    log = log_of(tmp_path, *lines, iteration(3, 3000.0))
    assert [(one.index, one.tflops_per_gpu) for one in log.iterations] == [(1, 10.0), (2, 5.0), (3, None)]


@pytest.mark.parametrize("length", ["nan", "1.2.3", "1" * 400, "-5.0", ""])
def test_an_odd_length_is_no_iteration(tmp_path: Path, length: str) -> None:
    assert log_of(tmp_path, iteration(1, 7.0).replace("7.0", length)).iterations == ()


def test_megatron_lm_reports_binary_megabytes(tmp_path: Path) -> None:
    line = "[Rank 5] (after 2 iterations) memory (MB) | allocated: 10.00 | max allocated: 30.5 | "
    (told,) = log_of(tmp_path, line + "reserved: 20.00 | max reserved: 40.00").memory
    assert told.rank == 5
    assert (told.allocated_bytes, told.peak_allocated_bytes) == (10 * MIB, 61 * MIB // 2)
    assert (told.reserved_bytes, told.peak_reserved_bytes) == (20 * MIB, 40 * MIB)


def test_megatron_bridge_reports_decimal_gigabytes(tmp_path: Path) -> None:
    line = (
        "[Rank 0] (after 2 iterations) memory (GB) | mem-allocated-gigabytes: 10.5 | "
        "mem-active-gigabytes: 10.5 | mem-inactive-gigabytes: 1.5 | mem-reserved-gigabytes: 50.0 | "
        "mem-max-allocated-gigabytes: 40.0 | mem-max-reserved-gigabytes: 50.0 | mem-alloc-retires: 0"
    )
    log = log_of(tmp_path, line)
    assert log.memory[0].allocated_bytes == 10_500_000_000
    assert log.memory[0].peak_allocated_bytes == 40_000_000_000
    waste = most_unallocated(log)
    assert waste is not None
    assert (waste.unallocated_bytes, waste.unallocated_frac) == (10_000_000_000, 0.2)


def test_the_peak_is_the_largest_of_all_ranks(tmp_path: Path) -> None:
    ranks = (
        f"[Rank {rank}] (after 2 iterations) memory (MB) | allocated: 1.0 | max allocated: {peak}.0 | "
        f"reserved: 1.0 | max reserved: {peak + 5}.0"
        for rank, peak in ((0, 10), (8, 30), (16, 20))
    )
    peak = peak_memory(log_of(tmp_path, *ranks))
    assert peak is not None
    assert (peak.allocated_bytes, peak.reserved_bytes, peak.rank) == (30 * MIB, 35 * MIB, 8)


def test_the_trainers_own_sum_of_memory_is_read(tmp_path: Path) -> None:
    line = (
        "Theoretical memory footprints: weight and optimizer=100.00 MB, activation=20.00 MB, total=120.00 MB"
    )
    alone = "Theoretical memory footprints: weight and optimizer=100.00 MB"
    assert log_of(tmp_path, line, "Theoretical memory footprints:", alone).theoretical == (1, 3)


def test_an_out_of_memory_error_tells_its_sizes(tmp_path: Path) -> None:
    pools = " with 3.00 GiB allocated in private pools (e.g., CUDA Graphs),"
    (error,) = log_of(tmp_path, out_of_memory(pools=pools)).out_of_memory
    assert (error.rank, error.device) == (3, 3)
    assert (error.requested_bytes, error.free_bytes) == (2 * GIB, 512 * MIB)
    assert (error.capacity_bytes, error.allocated_bytes) == (80 * GIB, 70 * GIB)
    wrapped = log_of(tmp_path, *out_of_memory(pools=pools).replace(". ", ".\n").split("\n"), "", "80.00 GiB")
    assert wrapped.out_of_memory == (error,)
    assert error.reserved_bytes == 71 * GIB
    assert error.graph_pool_bytes == 3 * GIB


def test_the_error_of_older_pytorch_tells_its_sizes(tmp_path: Path) -> None:
    line = (
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 GiB (GPU 1; 80.00 GiB total capacity; "
        "60.00 GiB already allocated; 8.00 GiB free; 65.00 GiB reserved in total by PyTorch) If"
    )
    (error,) = log_of(tmp_path, line).out_of_memory
    assert (error.device, error.capacity_bytes) == (1, 80 * GIB)
    assert (error.allocated_bytes, error.reserved_bytes, error.free_bytes) == (60 * GIB, 65 * GIB, 8 * GIB)


def test_an_error_that_was_cut_tells_what_it_still_says(tmp_path: Path) -> None:
    line = "CUDA out of memory. Tried to allocate 8.00 GiB. 10.00 GiB is reserved by PyTorch but unallocated."
    (error,) = log_of(tmp_path, line).out_of_memory
    assert error.is_fragmented
    assert error.reserved_bytes is None


OPTIM = "/usr/lib/python3.12/site-packages/torch/optim/adam.py"
STAGES: list[tuple[Stage, tuple[str, ...]]] = [
    ("setup", ("pretrain", "setup_model_and_optimizer", "get_model")),
    ("forward", ("train_step", "forward_backward_no_pipelining", "forward_step", "forward")),
    ("backward", ("train_step", "backward_step", "custom_backward")),
    ("backward", ("train_step", "backward@/opt/torch/autograd/__init__.py", "forward", "forward")),
    ("optimizer", ("train_step", "step@/opt/megatron/core/optimizer/optimizer.py", "wrapper")),
    ("optimizer_state", ("train_step", f"step@{OPTIM}", f"_init_group@{OPTIM}")),
    (
        "graph_capture",
        ("train_step", "create_cudagraphs", "_make_graphed_callables", "forward", "backward_step"),
    ),
    ("unknown", ("main", "run")),
]


@pytest.mark.parametrize(
    ("stage", "names"), STAGES, ids=lambda value: value if isinstance(value, str) else None
)
def test_the_stage_is_that_of_the_tracebacks_frames(
    tmp_path: Path, stage: Stage, names: tuple[str, ...]
) -> None:
    (error,) = log_of(tmp_path, *crash(*names, last=out_of_memory())).out_of_memory
    assert error.stage == stage


def test_tracebacks_of_other_ranks_do_not_mix(tmp_path: Path) -> None:
    other = frame("forward_step").replace("rank3", "rank4")
    lines = ("[rank3]: Traceback (most recent call last):", frame("backward_step"), other, out_of_memory())
    late = out_of_memory().replace("[rank3]", "[rank4]")
    assert [error.stage for error in log_of(tmp_path, *lines, late).out_of_memory] == ["backward", "forward"]


def test_versions_are_those_the_log_prints(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        "NVIDIA Release 26.02 (build 12345)",
        "PyTorch Version 2.10.0a0+b4e4ee8",
        "> PyTorch version ................ 9.9.9",
        "> Megatron-Core version .......... 0.19.0",
        "> Transformer Engine version ... 2.14.0+abc",
        "NCCL version 2.29.3+cuda13.0",
        "megatron-bridge==0.6.0",
        frame("main", "/usr/local/lib/python3.12/dist-packages/x.py"),
    )
    assert log.versions == {
        "container": "26.02",
        "torch": "2.10.0a0",
        "core": "0.19.0",
        "te": "2.14.0",
        "nccl": "2.29.3",
        "cuda": "13.0",
        "bridge": "0.6.0",
        "python": "3.12",
    }


def test_bridges_summary_becomes_settings(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        "=" * 70,
        "Configuration Summary (Non-Default Values vs Megatron Core)",
        "=" * 70,
        "[ddp] Non-default values (vs Mcore DistributedDataParallelConfig):",
        "  overlap_grad_reduce: True  (Mcore default: False)",
        "",
        "[model] Non-default values (vs Mcore TransformerConfig):",
        "  cuda_graph_impl: 'transformer_engine'  (Mcore default: 'none')",
        "  cuda_graph_modules: [<CudaGraphModule.moe_router: 5>, <CudaGraphModule.attn: 1>]  (Mcore "
        "default: [])",
        "  num_layers: 48  (Mcore default: 0)",
        "[tokenizer]:",
        "  tokenizer_model: '/secret/path'",
        "=" * 70,
        iteration(1, 5.0),
    )
    assert log.settings is not None
    assert log.settings.framework == "megatron_bridge"
    assert log.settings.value("ddp.overlap_grad_reduce") is True
    assert log.settings.value("cuda_graph_impl") == "transformer_engine"
    assert log.settings.value("cuda_graph_modules") == ("moe_router", "attn")
    assert log.settings.value("num_layers") == 48
    assert not any("/secret" in str(one.value) for one in log.settings.by_knob.values())
    assert len(log.iterations) == 1


END = "[after training is done] datetime: 2026-08-22 10:00:00 "
BEGIN = "[before the start of training step] datetime: 2026-08-22 10:00:00 "


@pytest.mark.parametrize(
    ("lines", "stopped"),
    [
        *(((iteration(1, 5.0),), True), ((BEGIN,), True), ((iteration(1, 5.0), END), False)),
        ((iteration(100, 5.0),), False),
        ((iteration(1, 5.0), "[rank0]: Traceback (most recent call last):"), False),
        (("no training in it",), None),
    ],
    ids=["mid-training", "first step", "a word", "last iteration", "an error", "no training"],
)
def test_a_log_that_just_stops_is_told_from_one_that_ends(
    tmp_path: Path, lines: tuple[str, ...], stopped: bool | None
) -> None:
    assert log_of(tmp_path, *lines).stopped is stopped


def test_lines_that_are_no_text_or_too_long_are_skipped_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    long = b"Error: " + b"x" * int(LONGEST_LINE.value)
    good = iteration(7, 5.0).encode()
    path.write_bytes(b"\n".join([b"first", b"\xff\xfe Error: ", long, good, b"\xff"]))
    log = read(path)
    assert (log.skipped, log.skipped_count, log.line_count) == ((2, 3, 5), 3, 5)
    assert [(one.index, one.line) for one in log.iterations] == [(7, 4)]


def test_a_line_far_longer_than_a_chunk_does_not_shift_the_next(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"a\n" + b"x" * 3_000_000 + b"\n" + iteration(7, 5.0).encode())
    log = read(path)
    assert (log.skipped, log.iterations[0].line) == ((2,), 3)


def test_a_gzip_log_reads_as_the_plain_one(tmp_path: Path) -> None:
    text = (iteration(1, 5.0) + "\n" + iteration(2, 6.0) + "\n").encode()
    (tmp_path / "run.log.gz").write_bytes(gzip.compress(text))
    (tmp_path / "run.log").write_bytes(text)
    assert read(tmp_path / "run.log.gz").iterations == read(tmp_path / "run.log").iterations


def test_what_is_no_log_is_an_input_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "binary.log").write_bytes(b"SQLite format 3\x00" + bytes(range(256)))
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress(b"hello\n" * 1000)[:40])
    for name in ("empty.log", "binary.log", "cut.log.gz", "missing.log", "."):
        with pytest.raises(InputError, match="--log"):
            read(tmp_path / name)


def test_nothing_secret_of_a_log_is_in_what_we_show_of_it(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        "------------------------ arguments ------------------------",
        "  wandb_api_key ................................... hunter2",
        "  save ............................................ /home/hunter2/ckpt",
        "-------------------- end of arguments ---------------------",
        "hunter2: " + iteration(1, 5.0, tail=" hunter2 |"),
        "Disabling tensor parallel communication overlap due to hunter2",
        "[hunter2 rank 3]: AssertionError: DeepEP is not installed hunter2",
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=hunter2, x",
        "NCCL version 2.29.3+hunter2 on hunter2",
        "PyTorch Version 2.10.0a0+hunter2",
        *crash("hunter2@/home/hunter2/x.py", last=out_of_memory() + " hunter2"),
    )
    assert len(log.messages) == 2
    assert "hunter2" not in repr(log)


def test_an_assert_tells_the_version_it_found(tmp_path: Path) -> None:
    line = "AssertionError: TE version >= 2.7.0 is required for x. Current TE version: 2.6.0"
    assert log_of(tmp_path, line).versions == {"te": "2.6.0"}


REPORT = "[Rank 0] (after 1 iterations) memory (GB) | mem-allocated-gigabytes: 208.0 | "
TITAN = "[rank0]:[titan] 2025-11-21 15:15:{at},000 - root - INFO - step: {step}  loss: 8.2  grad_norm: 0.4  "


def titan(at: int, step: int, rank: int = 0) -> str:
    text = TITAN.format(at=at, step=step).replace("rank0", f"rank{rank}")
    rates = "memory: 64.00GiB(82.98%)  tps: 1,482  tflops: 86.61  mfu: 8.76%"
    return f"{text}{rates}  time_metrics/data_loading(%): 76.0"


@pytest.mark.parametrize("line", [
    "[rank52]: RuntimeError: Triton Error [CUDA]: out of memory",
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.00 GiB.",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "CUDA driver error: CUDA_ERROR_OUT_OF_MEMORY", "terminate called: cudaErrorMemoryAllocation",
])  # fmt: skip
def test_memory_runs_out_in_any_spelling(tmp_path: Path, line: str) -> None:
    (error,) = log_of(tmp_path, "> training", line).out_of_memory
    assert error.line == 2


def test_fragments_that_a_trainer_reports_are_memory_that_nobody_uses(tmp_path: Path) -> None:
    log = log_of(tmp_path, f"{REPORT}mem-inactive-gigabytes: 60.0 | mem-reserved-gigabytes: 240.0")
    report, most = inactive_memory(log), most_unallocated(log)
    assert report is not None
    assert most is not None
    assert (report.inactive_bytes, most.unallocated_frac) == (60_000_000_000, 0.25)


@pytest.mark.parametrize(("begin", "count"), [((), 4), (("using world size: 8, data-parallel size: 8",), 1)])
def test_lines_from_the_middle_are_all_steady_and_a_log_from_its_start_warms_up(
    tmp_path: Path, begin: tuple[str, ...], count: int
) -> None:
    steady = steady_step(log_of(tmp_path, *begin, *(iteration(index, 1000) for index in range(10, 14))))
    assert steady is not None
    assert steady.count == count


def test_torchtitans_lines_give_steps_rates_memory_and_the_wait_for_data(tmp_path: Path) -> None:
    log = log_of(tmp_path, titan(10, 10), titan(20, 20), titan(20, 20, rank=1), titan(30, 30))
    assert [(one.index, one.length_ns) for one in log.iterations] == [
        (20, 1_000_000_000),
        (30, 1_000_000_000),
    ]
    assert log.iterations[0].tokens_per_s_per_gpu == 1482
    assert log.memory[0].peak_reserved_bytes == 64 << 30
    assert loading_frac(log, steady_step(log)) == 0.76


@pytest.mark.parametrize(("line", "figures", "steady_ns"), [
    ("step 20 | epoch 0 | mem 58.50 GiB | tps 2,000.0", {"tokens_per_s": 2000, "allocated_gib": 58.5}, None),
    ("x - step:4 - timing_s/step:2.5 - perf/mfu/actor:0.1", {"step_s": 2.5, "mfu_frac": 0.1}, 2_500_000_000),
    ("{'global_step/max_steps': '5/8', 'train_speed(s/it)': 2.0}", {"step_s": 2}, 2_000_000_000),
    ("Step Time : 2.00s GPU utilization: 500.0MODEL_TFLOP/s/GPU", {"tflops_per_gpu": 500}, 2_000_000_000),
])  # fmt: skip
def test_one_line_of_a_trainer_that_was_copied_tells_its_figures(
    tmp_path: Path, line: str, figures: dict[str, float], steady_ns: int | None
) -> None:
    log = log_of(tmp_path, line)
    assert log.figures == {key: (value, value) for key, value in figures.items()}
    assert getattr(steady_step(log), "median_ns", None) == steady_ns


def test_a_timer_of_batches_tells_the_wait_for_data(tmp_path: Path) -> None:
    timer = "    batch-generator ................................: (10.00, 500.00)"
    log = log_of(tmp_path, *(line for index in range(20, 24) for line in (iteration(index, 1000), timer)))
    assert loading_frac(log, steady_step(log)) == 0.5


def test_a_watchdogs_line_gives_operation_sequence_number_and_size(tmp_path: Path) -> None:
    line = (
        "[E ProcessGroupNCCL.cpp:467] [Rank 6] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=202558, OpType=_ALLGATHER_BASE, NumelIn=4, NumelOut=32, Timeout(ms)=1800000) ran"
    )
    (message,) = log_of(tmp_path, line).messages
    assert message.said == {
        **{"in_group": "6", "sequence": "202558", "operation": "_ALLGATHER_BASE"},
        **{"numel_in": "4", "numel_out": "32", "timeout_ms": "1800000"},
    }


MS = 1_000_000
RECORDED: dict[str, Value] = {"profiling.profile_step_start": 4, "profiling.profile_step_end": 6}


def made(
    lengths_ms: list[int],
    *messages: Message,
    indexes: list[int] | None = None,
    knobs: dict[str, Value] | None = None,
) -> TrainingLog:
    """One logged iteration at every tenth line."""
    numbered = zip(indexes or range(1, len(lengths_ms) + 1), lengths_ms, strict=True)
    return TrainingLog(
        name="run.log",
        line_count=10 * len(lengths_ms),
        iterations=tuple(Iteration(at, ms * MS, 10 * (place + 1)) for place, (at, ms) in enumerate(numbered)),
        messages=messages,
        settings=settings(knobs or {}, "log"),
    )


def test_the_first_three_iterations_are_left_out() -> None:
    steady = steady_step(made([900, 200, 150, 100, 104, 102]))
    assert steady is not None
    assert [one.index for one in steady.used] == [4, 5, 6]
    assert (steady.median_ns, steady.mean_ns) == (102 * MS, 102 * MS)
    assert (steady.spread_ns, steady.count) == (4 * MS, 3)


def test_a_restart_has_first_iterations_of_its_own() -> None:
    log = made([900, 100, 100, 100, 100] * 2, indexes=[1, 2, 3, 4, 5, 4, 5, 6, 7, 8])
    steady = steady_step(log)
    assert steady is not None
    assert [one.line for one in steady.used] == [40, 50, 90, 100]


FIRST = {1: "first", 2: "first", 3: "first"}
GRAPHS: dict[str, Value] = {"cuda_graph_impl": "transformer_engine"}
LEFT_OUT: list[tuple[TrainingLog, dict[int, str]]] = [
    # a line for many iterations, if the first are among them
    (made([300, 100, 100], indexes=[10, 20, 30]), {10: "first"}),
    (made([900, 300, 100, 100], indexes=[1, 10, 20, 30]), {1: "first", 10: "first"}),
    (made([900, 300, 100, 100], indexes=[501, 510, 520, 530]), {501: "first", 510: "first"}),
    # what is far above is named by the checkpoint before it; without delay it stays
    (made([100, 100, 100, 100, 300, 100, 300, 100], Message("checkpoint", 45)),
     {**FIRST, 5: "checkpoint", 7: "far_above"}),
    (made([100] * 6, Message("checkpoint", 45)), FIRST),
    # warm-up and capture of graphs; the default of three warm-ups only with graphs
    (
        made(
            [100] * 8,
            *(Message("graph-capture-begins", 41), Message("graph-captured", 42)),
            knobs={**GRAPHS, "cuda_graph_warmup_steps": 4},
        ),
        {**FIRST, 4: "graph_warm_up", 5: "graph_capture"},
    ),
    (made([100] * 8, knobs={"cuda_graph_impl": "none"}), FIRST),
    (made([100] * 8, knobs=GRAPHS), {**FIRST, 4: "graph_warm_up"}),
    # what a profiler is set to record, where one is on, and what nsys says that it captures
    (made([100] * 8, knobs={**RECORDED, "profiling.use_nsys_profiler": True}),
     {**FIRST, 5: "profiled", 6: "profiled"}),
    (made([100] * 8, knobs=RECORDED), FIRST),
    (made([100] * 8, Message("profiler-begins", 41), Message("profiler-ends", 55)),
     {**FIRST, 5: "profiled", 6: "profiled"}),
]  # fmt: skip


@pytest.mark.parametrize(("log", "reasons"), LEFT_OUT)
def test_an_iteration_that_is_not_like_the_others_is_left_out_with_its_reason(
    log: TrainingLog, reasons: dict[int, str]
) -> None:
    steady = steady_step(log)
    assert steady is not None
    assert {one.iteration.index: one.reason for one in steady.left_out} == reasons


def test_a_log_of_first_iterations_has_no_steady_step() -> None:
    assert steady_step(made([900, 100, 100])) is None
    assert steady_step(made([])) is None


def test_a_profiled_step_is_compared_with_the_steady_one() -> None:
    steady = steady_step(made([900, 200, 150, 100, 100]))
    assert steady is not None
    assert perturbation_frac(125 * MS, steady) == 0.25
