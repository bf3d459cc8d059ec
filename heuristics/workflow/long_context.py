"""Context parallelism by sequence length: none for short ones, about one rank per 4096 tokens for long."""

from __future__ import annotations

from typing import Final

from heuristics.run.run import Run
from heuristics.workflow.memory import ASK_MEMORY, is_tight
from heuristics.workflow.rule import Judged, met, unknown, violated
from traces.limits import Limit

LONG: Final = Limit(
    8_192,
    "tokens",
    "Megatron-Bridge, docs/training/moe-optimization.md: attention memory dominates from about 8K on",
)
VERY_LONG: Final = Limit(
    65_536,
    "tokens",
    "arXiv 2603.07685: at 64K attention is about 70 % of the FLOPs, so its memory dominates on any model",
)
TOKENS_A_RANK: Final = Limit(
    4_096, "tokens", "Megatron-Bridge, skill perf-moe-long-context: CP is about the sequence length by 4096"
)
OFF: Final = Limit(2, "times", "ours: the guide rounds to a power of two, so half or twice is as good")


def judge_long_context(run: Run) -> Judged:
    """CP beside what the sequence length asks for."""
    length, cp = run.config.positive("seq_length"), run.config.positive("context_parallel_size")
    if length is None or cp is None:
        return unknown("the sequence length or CP is not known", "seq_length of the configuration, and --cp")
    said, start = f"CP{cp} at {length} tokens", max(1, round(length / TOKENS_A_RANK.value))
    if length < LONG.value:
        if cp == 1:
            return met(f"{said}, under {LONG.value:.0f}")
        return violated(f"{said}, under {LONG.value:.0f}: it only adds communication", "CP1", "MEM-8")
    if cp == 1:
        return _without(run, said, length, start)
    if cp * OFF.value < start or cp > start * OFF.value:
        return violated(f"{said}: the place to start is CP{start}", f"try CP{start}", "MEM-8")
    return met(f"{said}, near the start of CP{start}")


def _without(run: Run, said: str, length: int, start: int) -> Judged:
    tight = is_tight(run)
    if tight or length >= VERY_LONG.value:
        why = "and memory is short" if tight else "where attention dominates"
        return violated(f"{said}, {why}", f"CP{start}, keeping data parallelism alive", "MEM-8")
    if tight is None:
        why = f"{said}: whether attention fills the memory is not known"
        return unknown(why, ASK_MEMORY, f"CP{start} if so")
    return met(f"{said}, and memory is not short")
