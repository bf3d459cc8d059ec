"""Context parallelism by sequence length: none for short ones, about one rank per 4096 tokens for long."""

from math import log2
from typing import Final

from heuristics.run.run import Run
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
    4_096,
    "tokens",
    "Megatron-Bridge, skill perf-moe-long-context: CP is about the length by 4096, to a power of two",
)
OFF: Final = Limit(2, "times", "ours: the guide rounds to a power of two, so half or twice is as good")


def sequence_length(run: Run) -> int | None:
    """Tokens of a sequence."""
    return run.config.positive("seq_length")


def guided_cp(length: int) -> int:
    """The CP to start with: 1 for short sequences."""
    return 1 if length < LONG.value else 2 ** round(log2(length / TOKENS_A_RANK.value))


def is_far(cp: int, length: int) -> bool:
    """Whether a CP is further from the start than the guide's rounding; any above 1 for short sequences."""
    start = guided_cp(length)
    return cp > 1 if length < LONG.value else not start / OFF.value <= cp <= start * OFF.value


def wider_cp(run: Run) -> int | None:
    """The CP that the length asks for, or the largest below it that divides ranks and tokens; None without.

    Each rank takes two pieces of a sequence, so tokens divide by twice the CP. Experts keep their ranks.
    """
    length, cp = sequence_length(run), run.config.cp
    if length is None or cp is None:
        return None
    sizes = [cp * 2**power for power in range(1, int(log2(max(1, guided_cp(length) // cp))) + 1)]
    return next((size for size in reversed(sizes) if _divides(run, length, cp, size)), None)


def _divides(run: Run, length: int, cp: int, size: int) -> bool:
    ranks = run.config.dp
    return length % (2 * size) == 0 and (ranks is None or ranks % (size // cp) == 0)
