"""What a log shows beside its lines: a stop without an end, memory in pieces, graphs that hold it."""

from collections.abc import Callable, Mapping
from typing import Final

from heuristics.config.view import Config
from traces.limits import Limit
from traces.training_log.log import TrainingLog
from traces.training_log.peak import most_unallocated, pieces_suffice

Sign = Callable[[TrainingLog, Config], tuple[int | None] | None]
"""Where it is: a line, or None where no line stands for it. None as a whole: it is not there."""

FRAGMENTED: Final = Limit(
    0.2,
    "fraction of the reserved memory",
    "ours: a peak that has passed leaves some reserved and unused; a fifth of a GPU is worth an experiment",
)


def _stopped(log: TrainingLog, config: Config) -> tuple[int | None] | None:
    """The log ends without a word of its end."""
    if not log.stopped:
        return None
    return (log.iterations[-1].line if log.iterations else None,)


def _fragmented(log: TrainingLog, config: Config) -> tuple[int | None] | None:
    """What was asked for would have fitted into what was reserved and not allocated."""
    for error in log.out_of_memory:
        if None in (error.reserved_bytes, error.allocated_bytes, error.requested_bytes):
            continue
        unused = (error.reserved_bytes or 0) - (error.allocated_bytes or 0)
        if unused >= (error.requested_bytes or 0):
            return (error.line,)
    most = None if log.out_of_memory else most_unallocated(log)
    return (most.line,) if most and most.unallocated_frac >= FRAGMENTED.value else None


def _too_much(log: TrainingLog, config: Config) -> tuple[int | None] | None:
    """More was asked for than all that the allocator could have had."""
    return (log.out_of_memory[0].line,) if pieces_suffice(log) is False else None


def _graph_memory(log: TrainingLog, config: Config) -> tuple[int | None] | None:
    """Out of memory in a capture, with graphs' private pools, or after a capture that went through."""
    captured = log.first("graph-captured", "graph-built")
    for error in log.out_of_memory:
        after = captured is not None and captured.line < error.line
        if error.stage == "graph_capture" or error.graph_pool_bytes or after:
            return (error.line,)
    return None


def _graph_access(log: TrainingLog, config: Config) -> tuple[int | None] | None:
    """An illegal access with graphs, where the configuration does not rule the known cause out."""
    message = log.first("illegal-access")
    graphs = config.graph_impl not in (None, "none") or log.first("graph-captured", "graph-capture-begins")
    segments = config.env("PYTORCH_CUDA_ALLOC_CONF")
    ruled_out = segments and "expandable_segments:True" not in segments
    if message is None or not graphs or ruled_out or config.env_is("NCCL_GRAPH_REGISTER", "0"):
        return None
    return (message.line,)


SIGNS: Final[Mapping[str, Sign]] = {
    "stopped": _stopped,
    "fragmented": _fragmented,
    "too much": _too_much,
    "graph memory": _graph_memory,
    "graph access": _graph_access,
}
"""By the name that a row gives."""
