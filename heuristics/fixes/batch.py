"""A larger micro-batch, as both HST-5 and CMP-4 make it: its size, and what it needs of the batch."""

from typing import Final

from heuristics.config.sizes import batch_divides, doubled_micro_batch
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.run.run import Run
from traces.settings.settings import Value

MICRO_BATCH: Final = "train.micro_batch_size"


def doubled(run: Run) -> dict[str, Value]:
    """Twice the micro-batch; 2N of the N there is where that is unknown."""
    return {MICRO_BATCH: doubled_micro_batch(run) or "2N"}


def batch_needs(run: Run, ranks_times: int = 1) -> tuple[Precondition, ...]:
    """The global batch divides, where sizes are known; `ranks_times`: how often as many ranks share it."""
    divides = batch_divides(run, ranks_times)
    if divides is None:
        return ()
    text = "twice the micro-batch, over all data-parallel ranks, divides the global batch"
    return (holds(text, divides, "global_batch_size of the configuration"),)
