"""What parallelism asks of a run: CP by the sequence length, and how many hardware queues its parts
want.
"""

from math import log2
from typing import Final

from heuristics.recipes import RECIPES
from heuristics.run.run import Run
from traces.limits import Limit

LONG: Final = Limit(
    8_192,
    "tokens",
    "Megatron-Bridge, docs/training/moe-optimization.md: attention memory dominates from about 8K "
    "on",
)
VERY_LONG: Final = Limit(
    65_536,
    "tokens",
    "arXiv 2603.07685: at 64K attention is about 70 % of the FLOPs, so its memory dominates on any "
    "model",
)
OFF: Final = Limit(
    2, "times", "ours: the guide rounds to a power of two, so half or twice is as good"
)


def sequence_length(run: Run) -> int | None:
    """Tokens of a sequence."""
    return run.config.positive("seq_length")


def guided_cp(length: int) -> int:
    """The CP to start with: 1 for short sequences."""
    if length < LONG.value:
        return 1
    return 1 << round(log2(length / RECIPES["tokens_a_context_rank"].value))


def wider_cp(run: Run) -> int | None:
    """The CP that the length asks for, or the largest below it that divides ranks and tokens; None
    without.

    Each rank takes two pieces of a sequence, so tokens divide by twice the CP. Experts keep their
    ranks.
    """
    length, cp, ranks = sequence_length(run), run.config.cp, run.config.dp
    if length is None or cp is None:
        return None
    for power in reversed(range(1, (guided_cp(length) // cp).bit_length())):
        times = 1 << power
        if length % (2 * cp * times) == 0 and (ranks is None or ranks % times == 0):
            return cp * times
    return None


def connections(run: Run, fsdp: bool = False, ep_overlap: bool | None = None) -> int:
    """Queues for the run as it is, or as it would be with Megatron-FSDP or the overlap."""
    capability = run.config.capability
    if capability is not None and capability >= (10, 0):
        return RECIPES["many_queues"].whole
    is_asked = run.config.ep_overlap  # with one queue it may be asked for and not be seen
    overlapped = (run.active.ep_overlap or is_asked) if ep_overlap is None else ep_overlap
    sharded = fsdp or run.config.on("ddp.use_megatron_fsdp", "use_torch_fsdp2")
    is_cut = run.config.tensor_parallel is True or run.tells("cp_cut") is True
    if is_cut and not overlapped and not sharded:
        return RECIPES["one_queue"].whole
    return RECIPES[
        "many_queues" if run.active.dispatcher in ("deepep", "hybridep") else "some_queues"
    ].whole
