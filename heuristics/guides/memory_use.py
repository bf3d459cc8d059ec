"""How full the memory of a run is, and whether the run fits at all."""

from dataclasses import dataclass
from typing import Final

from heuristics.run.run import Run
from heuristics.walls.unproven import TIGHT
from traces.limits import Limit
from traces.missing import Missing
from traces.names.gpus import product_named
from traces.sizes.memory import ERROR, MemoryEstimate, estimate
from traces.training_log.peak import pieces_suffice

HEAD_ROOM: Final = Limit(
    0.05,
    "fraction of the GPU's memory",
    "ours: what varies from step to step (tokens an expert gets, fragments) has to fit into the rest",
)
ROOM_TO_HALVE: Final = Limit(
    0.5,
    "fraction of the GPU's memory",
    "ours: half the tensor or pipeline parallelism at most doubles what a rank holds",
)
ROOMY: Final = Limit(
    0.75,
    "fraction of the GPU's memory",
    "ours: a quarter is left, of which a tenth lies outside PyTorch and the rest is to be used, not enlarged",
)


@dataclass(frozen=True, slots=True)
class TooLarge:
    """An estimate of pipeline rank `stage` that is more than its GPU's `capacity_bytes`."""

    stage: int
    estimate_bytes: int
    capacity_bytes: int

    @property
    def least_bytes(self) -> int:
        """The least that the estimate may stand for."""
        return round(self.estimate_bytes * (1 - ERROR.value))

    @property
    def most_bytes(self) -> int:
        """The most that the estimate may stand for."""
        return round(self.estimate_bytes * (1 + ERROR.value))

    @property
    def is_certain(self) -> bool:
        """Whether even the least is too much."""
        return self.least_bytes > self.capacity_bytes


def estimated(run: Run) -> MemoryEstimate | Missing:
    """The memory of the run's fullest rank, counted from its configuration."""
    config = run.config
    return estimate(config.settings, config.core_text, precision=config.precision)


def too_large(run: Run) -> TooLarge | None:
    """The estimate of the fullest rank where it is more than the GPU has; None where a peak was measured."""
    product = product_named(run.gpu or "")
    capacity = run.active.memory_bytes or (product.memory_bytes if product else None)
    if capacity is None or not run.settings.by_knob or used_frac(run) is not None:
        return None
    found = estimated(run)
    if isinstance(found, Missing) or found.total_bytes <= capacity:
        return None
    return TooLarge(found.stage, found.total_bytes, capacity)


def ran(run: Run) -> bool:
    """Whether steps of the run were recorded, logged or described."""
    return run.window_ns > 0 or (run.log is not None and bool(run.log.iterations))


def ran_out(run: Run) -> bool:
    """Whether memory is known to be too small, by the log or by steady steps."""
    return run.does_not_fit or (run.log is not None and bool(run.log.out_of_memory))


def fits(run: Run) -> bool | None:
    """Whether the run fits; False where it ran out of memory or even the least estimate is too large."""
    if ran_out(run):
        return False
    if ran(run):
        return True
    large = too_large(run)
    return False if large is not None and large.is_certain else None


def used_frac(run: Run) -> float | None:
    """Largest allocated memory of a rank as part of the GPU's: by the log, else by the trace.

    The trace shows what PyTorch reserves, which is no less.
    """
    log, capacity = run.log, run.active.memory_bytes
    peaks = [one.peak_allocated_bytes for one in log.memory if one.peak_allocated_bytes] if log else []
    if capacity is None and log:
        capacity = next((one.capacity_bytes for one in log.out_of_memory if one.capacity_bytes), None)
    peak = max(peaks, default=None) or run.active.peak_bytes
    return None if peak is None or not capacity else peak / capacity


def has_room_to_halve(run: Run) -> bool | None:
    """Whether a rank could hold twice what it holds."""
    used = used_frac(run)
    if fits(run) is False or run.config.memory_tight:
        return False
    return None if used is None else used <= ROOM_TO_HALVE.value


def has_room(run: Run) -> bool | None:
    """Whether memory is known not to be short: freeing it alone then saves no time."""
    if fits(run) is False:
        return False
    if run.config.memory_tight is not None:
        return not run.config.memory_tight
    used = used_frac(run)
    return None if used is None else used <= ROOMY.value


def is_tight(run: Run) -> bool | None:
    """Whether memory is short: out of it, said to be, or nearly full by the log or the trace."""
    if fits(run) is False:
        return True
    if run.config.memory_tight is not None:
        return run.config.memory_tight
    used = used_frac(run)
    return None if used is None else used >= TIGHT.value


def segments_suffice(run: Run) -> bool | None:
    """Whether memory without fragments would have held what ran out: by the errors' own numbers.

    Segments that expand give back what is reserved and not allocated, and no more. None where no error has
    the numbers.
    """
    return pieces_suffice(run.log) if run.log else None


ASK_MEMORY: Final = "a log with the trainer's memory report, or a trace with --cuda-memory-usage=true"
