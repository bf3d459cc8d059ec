"""Memory, hangs, and what a configuration and a log tell only together."""

from __future__ import annotations

from typing import Final

from heuristics.config.versions import numbers
from heuristics.rules.failures.failure import Finder, Row, Seen
from traces.limits import Limit
from traces.settings.settings import Settings
from traces.training_log.log import Stage, TrainingLog
from traces.training_log.peak import most_unallocated

FRAGMENTED: Final = Limit(
    0.2,
    "fraction of the reserved memory",
    "ours: a peak that has passed leaves some reserved and unused; a fifth of a GPU is worth an experiment",
)
LARGE_EP: Final = Limit(
    32, "ranks", "ours: where Megatron-Bridge's guidance speaks of large expert parallelism"
)
_MEMORY_SKILL: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-memory-tuning/SKILL.md at 067f987d"
_RECOMPUTE_SKILL: Final = (
    "Megatron-Bridge, skills/nemo-mbridge-perf-activation-recompute/SKILL.md at 067f987d"
)
_OVERLAP_SKILL: Final = (
    "Megatron-Bridge, skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md at 067f987d"
)
_HANG_LINES: Final = ("collective-timeout",)


def has_overlap(settings: Settings) -> bool:
    """EP overlap is asked for, in either place."""
    knobs = ("overlap_moe_expert_parallel_comm", "comm_overlap.overlap_moe_expert_parallel_comm")
    return any(settings.value(knob) is True for knob in knobs)


def _hang(log: TrainingLog) -> Seen | None:
    """A collective that timed out, or a log that just stops."""
    message = log.first(*_HANG_LINES)
    if message is not None:
        return Seen(message.line)
    if not log.stopped:
        return None
    return Seen(log.iterations[-1].line if log.iterations else None)


def _overlap_hang(log: TrainingLog, settings: Settings) -> Seen | None:
    torch = log.versions.get("torch")
    is_old = torch is not None and numbers(torch) < (2, 6, 0)
    return _hang(log) if is_old and has_overlap(settings) else None


def _other_hang(log: TrainingLog, settings: Settings) -> Seen | None:
    return _hang(log) if log.first(*_HANG_LINES) and _overlap_hang(log, settings) is None else None


def _fragmented(log: TrainingLog, settings: Settings) -> Seen | None:
    """What was asked for would have fitted into what was reserved and not allocated."""
    for error in log.out_of_memory:
        if None in (error.reserved_bytes, error.allocated_bytes, error.requested_bytes):
            continue
        unused = (error.reserved_bytes or 0) - (error.allocated_bytes or 0)
        if unused >= (error.requested_bytes or 0):
            return Seen(error.line)
    most = None if log.out_of_memory else most_unallocated(log)
    return Seen(most.line) if most and most.unallocated_frac >= FRAGMENTED.value else None


def _out_of_memory(*stages: Stage) -> Finder:
    def find(log: TrainingLog, settings: Settings) -> Seen | None:
        if _fragmented(log, settings) or _graph_memory(log, settings):
            return None
        found = next((error for error in log.out_of_memory if error.stage in stages), None)
        return None if found is None else Seen(found.line)

    return find


def _graph_memory(log: TrainingLog, settings: Settings) -> Seen | None:
    """Out of memory in a capture, with graphs' private pools, or after a capture that went through."""
    captured = log.first("graph-captured", "graph-built")
    for error in log.out_of_memory:
        after = captured is not None and captured.line < error.line
        if error.stage == "graph_capture" or error.graph_pool_bytes or after:
            return Seen(error.line)
    return None


def _overlap_memory(log: TrainingLog, settings: Settings) -> Seen | None:
    on = has_overlap(settings) and settings.value("ep_overlap_early_attn_memory_release") is not True
    found = _out_of_memory("forward", "backward")(log, settings)
    return found if on else None


def _overwritten(log: TrainingLog, settings: Settings) -> Seen | None:
    """Asked for on the model while CommOverlapConfig, which is there, does not ask for it."""
    group = "comm_overlap."
    there = any(knob.startswith(group) for knob in settings.by_knob)
    asked = settings.value("overlap_moe_expert_parallel_comm") is True
    kept = settings.value(f"{group}overlap_moe_expert_parallel_comm") is True
    return Seen(None) if there and asked and not kept else None


def _kernel_sums(log: TrainingLog, settings: Settings) -> Seen | None:
    message = log.first("kernel-sums")
    return Seen(message.line) if message and has_overlap(settings) else None


def _corrupted_alltoall(log: TrainingLog, settings: Settings) -> Seen | None:
    """The release's known issue: this NCCL, the alltoall dispatcher, many ranks."""
    nccl, ep = log.versions.get("nccl"), settings.value("expert_model_parallel_size")
    many = isinstance(ep, int) and ep >= LARGE_EP.value
    kind = settings.value("moe_token_dispatcher_type")
    return Seen(None) if nccl == "2.30.5" and many and kind == "alltoall" else None


RUN_ROWS: Final[tuple[Row, ...]] = (
    Row(
        "memory-fragmented",
        "memory",
        "failed",
        "memory is fragmented: what is reserved and not allocated would do, but lies in pieces",
        "reserved against allocated in the error or the report; allocating and freeing calls in steady steps",
        "expandable segments, and NCCL_GRAPH_REGISTER=0 with CUDA graphs; not beside NCCL user buffers",
        "MEM-1",
        _fragmented,
        {"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        _MEMORY_SKILL,
    ),
    Row(
        "memory-graphs",
        "memory",
        "failed",
        "CUDA graphs keep the memory of what they hold: the run fits without them",
        "a run with cuda_graph_impl none; private pools in the error",
        "capture less: moe_router and moe_preprocess before attn; then recompute more (MEM-2)",
        "HST-3",
        _graph_memory,
        {"cuda_graph_modules": ("moe_router", "moe_preprocess")},
        "Megatron-Bridge, docs/training/cuda-graphs.md at 067f987d",
    ),
    Row(
        "memory-overlap",
        "memory",
        "failed",
        "EP overlap holds two microbatches at once, which raises the peak",
        "the same run without overlap",
        "release attention's memory early, then recompute more (MEM-2)",
        "MEM-12",
        _overlap_memory,
        {"ep_overlap_early_attn_memory_release": True},
        "Megatron-LM, megatron/core/model_parallel_config.py at d98e8a64",
    ),
    Row(
        "memory-activations",
        "memory",
        "failed",
        "activations do not fit",
        "the error's stage is a forward or a backward; memory after two iterations is far below the peak",
        "expandable segments first, as they cost nothing (MEM-1); then recompute moe_act and layernorm",
        "MEM-2",
        _out_of_memory("forward", "backward"),
        {"recompute_granularity": "selective", "recompute_modules": ("moe_act", "layernorm")},
        _RECOMPUTE_SKILL,
    ),
    Row(
        "memory-optimizer",
        "memory",
        "failed",
        "the optimizer's state does not fit beside parameters and gradients",
        "the error's stage is the optimizer's step or the making of its state",
        "moments in BF16 by the precision-aware optimizer; then offload a part (MEM-7), or spread it (MEM-8)",
        "MEM-3",
        _out_of_memory("optimizer", "optimizer_state"),
        {
            "optimizer.use_precision_aware_optimizer": True,
            "optimizer.exp_avg_dtype": "bf16",
            "optimizer.exp_avg_sq_dtype": "bf16",
        },
        _RECOMPUTE_SKILL,
    ),
    Row(
        "memory-parameters",
        "memory",
        "failed",
        "parameters and gradients alone do not fit",
        "the error comes before the first step",
        "spread the model: EP before TP, PP over nodes",
        "MEM-8",
        _out_of_memory("setup"),
        source=_MEMORY_SKILL,
    ),
    Row(
        "memory-unknown-stage",
        "memory",
        "failed",
        "the GPU's memory ran out; the log does not show in which stage",
        "the traceback above the error, in the log of the rank that printed it",
        "expandable segments first, as they cost nothing (MEM-1); then selective recompute (MEM-2)",
        "MEM-1",
        _out_of_memory("unknown"),
        {"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        _MEMORY_SKILL,
    ),
    Row(
        "hang-overlap-torch",
        "ep_overlap",
        "hung",
        "EP overlap hangs with PyTorch before 2.6",
        "PyTorch's version in the log; the same run without overlap",
        "PyTorch 2.6.0 or newer",
        "ENV-1",
        _overlap_hang,
        source=_OVERLAP_SKILL,
    ),
    Row(
        "hang-collective",
        "collectives",
        "hung",
        "a collective timed out: a rank died, left the order, or waits in another one",
        "the first error of any rank, which comes before the timeouts; TORCH_NCCL_TRACE_BUFFER_SIZE for the "
        "order of collectives",
        "mend the rank that failed first; where none did, NCCL_DEBUG=INFO and the network",
        "ENV-5",
        _other_hang,
        source="PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp",
    ),
    Row(
        "overlap-overwritten",
        "ep_overlap",
        "skipped",
        "EP overlap is set on the model while CommOverlapConfig exists, whose own value (off by default) "
        "replaces it",
        "the configuration after setup, and no layer_<i>f-layer_<j>b range in a trace",
        "set it on comm_overlap",
        "CFG-26",
        _overwritten,
        {"comm_overlap.overlap_moe_expert_parallel_comm": True},
        "Megatron-Bridge, src/megatron/bridge/training/comm_overlap.py at 067f987d",
    ),
    Row(
        "kernel-sums",
        "profile",
        "ineffective",
        "summed kernel times are no measure with EP overlap: kernels that share a GPU take longer each while "
        "the step gets shorter",
        "exposed time by interval union, and steps without the profiler",
        "judge by unprofiled steps and exposed communication",
        "CAP-1",
        _kernel_sums,
        source="Megatron-Bridge, skills/nemo-mbridge-perf-moe-comm-overlap/SKILL.md at 067f987d",
    ),
    Row(
        "alltoall-corrupted",
        "expert_parallel",
        "failed",
        "NCCL 2.30.5 with the SPCX plug-in can corrupt alltoall payloads at large EP: results may be wrong",
        "NCCL's version, its network plug-in, and losses against another dispatcher",
        "NCCL's internal InfiniBand transport, or HybridEP",
        "ENV-5",
        _corrupted_alltoall,
        source="Megatron-Bridge 0.6.2, known issues (26.08)",
    ),
)
