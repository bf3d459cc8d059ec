"""Context parallelism beside what the sequence length asks for."""

from heuristics.guides.memory_use import ASK_MEMORY, is_tight
from heuristics.guides.parallel import LONG, VERY_LONG, guided_cp, is_far, sequence_length
from heuristics.run.run import Run
from heuristics.workflow.rule import Judged, met, unknown, violated


def judge_long_context(run: Run) -> Judged:
    """CP beside what the sequence length asks for."""
    length, cp = sequence_length(run), run.config.positive("context_parallel_size")
    if length is None or cp is None:
        return unknown("the sequence length or CP is not known", "seq_length of the configuration, and --cp")
    said, start = f"CP{cp} at {length} tokens", guided_cp(length)
    if length < LONG.value:
        if cp == 1:
            return met(f"{said}, under {LONG.value:.0f}")
        return violated(f"{said}, under {LONG.value:.0f}: it only adds communication", "CP1", "MEM-15")
    if cp == 1:
        return _without(run, said, length, start)
    if is_far(cp, length):
        fix = "MEM-15" if cp > start else "MEM-16"
        return violated(f"{said}: the place to start is CP{start}", f"try CP{start}", fix)
    return met(f"{said}, near the start of CP{start}")


def _without(run: Run, said: str, length: int, start: int) -> Judged:
    tight = is_tight(run)
    if tight or length >= VERY_LONG.value:
        why = "and memory is short" if tight else "where attention dominates"
        return violated(f"{said}, {why}", f"CP{start}, keeping data parallelism alive", "MEM-16")
    if tight is None:
        why = f"{said}: whether attention fills the memory is not known"
        return unknown(why, ASK_MEMORY, f"CP{start} if so")
    return met(f"{said}, and memory is not short")
