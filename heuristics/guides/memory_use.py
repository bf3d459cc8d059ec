"""How full the memory of a run is, whether it fits at all, and a layout whose fullest stage holds
least.

Stages early in the pipeline hold activations of more microbatches, the ends hold embedding, loss
and MTP. So equal counts of layers are not equal memory. Layers move one at a time from the fullest
rank to the emptiest.
"""

from collections.abc import Sequence
from typing import Final

from heuristics.facts.dictionary import fact
from heuristics.run.run import Run
from heuristics.run.sizes import OTHER_LAYOUTS, even_layout
from heuristics.words import say
from traces.frozen import frozen
from traces.limits import HALF_A_WALL, QUARTER, WALL
from traces.missing import Missing, of_known
from traces.names.gpus import product_named
from traces.settings.knobs import STAGE_LAYOUT, VIRTUAL_STAGES
from traces.settings.settings import PROGRAMS, Values
from traces.sizes.memory import ERROR, MemoryEstimate, by_stage, estimate
from traces.training_log.memory import peak_memory, pieces_suffice

HEAD_ROOM: Final = HALF_A_WALL
"""What of a GPU stays free for what varies from step to step: tokens an expert gets, fragments."""


@frozen
class TooLarge:
    """An estimate of pipeline rank `stage` that leaves nothing free of its GPU's
    `capacity_bytes`.
    """

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
    """The memory of the run's fullest rank, counted from its configuration; counted once a run."""
    counted: MemoryEstimate | Missing = run.tells("memory_estimate")
    return counted


@fact
def memory_estimate(run: Run) -> MemoryEstimate | Missing:
    """The same, by the function that counts."""
    config = run.config
    if config.framework in PROGRAMS:
        return Missing("memory_estimate", say("guides.not-counted"), ASK_MEMORY)
    counted = estimate(config.settings, config.core_text, precision=config.precision)
    capacity = capacity_bytes(run)
    if not counted or not capacity or not run.tells("steps_logged"):
        return counted
    if TooLarge(counted.stage, counted.total_bytes, capacity).is_certain:
        return Missing("memory_estimate", say("guides.runs-in-less"), ASK_MEMORY)
    return counted


def capacity_bytes(run: Run) -> int | None:
    """The GPU's memory: by an error of the log, else by the trace, else as published of its
    product.
    """
    named = [error.capacity_bytes for error in run.memory_errors if error.capacity_bytes]
    product = product_named(run.gpu or "")
    return min(
        named, default=run.active.memory_bytes or (product.memory_bytes if product else None)
    )


@frozen
class Use:
    """Memory of the fullest rank on a GPU of `capacity_bytes`: measured, or by the estimate."""

    peak_bytes: int
    capacity_bytes: int
    is_estimated: bool

    @property
    def used_frac(self) -> float:
        return self.peak_bytes / self.capacity_bytes

    @property
    def free_frac(self) -> float:
        return max(0.0, 1 - self.used_frac)

    @property
    def least_frac(self) -> float:
        """The least that it may be: an estimate has its error."""
        return self.used_frac * (1 - ERROR.value * self.is_estimated)

    @property
    def most_frac(self) -> float:
        """The most that it may be."""
        return self.used_frac * (1 + ERROR.value * self.is_estimated)


def peak_bytes(run: Run) -> int | None:
    """The largest measured peak of a rank: as the log has it allocated (else reserved), else by the
    trace.

    The trace shows what PyTorch reserves, which is no less.
    """
    logged = of_known(peak_memory, run.log)
    if not logged:
        return run.active.peak_bytes
    return logged.allocated_bytes or logged.reserved_bytes or run.active.peak_bytes


def memory_use(run: Run) -> Use | None:
    """How full the fullest rank is: by what was measured, else by the estimate; None where neither
    tells.
    """
    capacity, peak = capacity_bytes(run), peak_bytes(run)
    if not capacity:
        return None
    if peak is not None:
        return Use(peak, capacity, is_estimated=False)
    counted = estimated(run) if run.settings.by_knob else None
    if counted is None or isinstance(counted, Missing):
        return None
    return Use(counted.total_bytes, capacity, is_estimated=True)


def too_large(run: Run) -> TooLarge | None:
    """The estimate of the fullest rank where it leaves no head-room; None where a peak was
    measured.
    """
    use, counted = memory_use(run), estimated(run)
    if (
        not use
        or not use.is_estimated
        or use.used_frac <= 1 - HEAD_ROOM.value
        or isinstance(counted, Missing)
    ):
        return None
    return TooLarge(counted.stage, counted.total_bytes, use.capacity_bytes)


def segments_suffice(run: Run) -> bool | None:
    """Whether memory without fragments would have held what ran out: by the errors' own numbers.

    Segments that expand give back what is reserved and not allocated, and no more. None where no
    error has the numbers.
    """
    return of_known(pieces_suffice, run.log)


ASK_MEMORY: Final = say("guides.memory-report")


_LAYER, _BORDER, _PREDICTION = "t", "|", "m"


@frozen
class StageMemory:
    """Estimated bytes of each pipeline rank; `layout` and its virtual stages, whose fullest
    has `best_bytes`."""

    stages: tuple[int, ...]
    best_bytes: int
    layout: str
    virtual: int

    @property
    def fullest_bytes(self) -> int:
        """Of the fullest rank."""
        return max(self.stages)

    @property
    def emptiest_bytes(self) -> int:
        """Of the emptiest rank."""
        return min(self.stages)

    @property
    def is_uneven(self) -> bool:
        """Whether the fullest rank holds notably more than the emptiest."""
        return self.fullest_bytes - self.emptiest_bytes >= WALL.value * self.fullest_bytes

    @property
    def freed_bytes(self) -> int:
        """What the layout takes off the fullest rank."""
        return self.fullest_bytes - self.best_bytes


def stage_memory(run: Run) -> StageMemory | None:
    """The run's stages, and the best layout found; None without stages, or where sizes are unknown.

    As many virtual stages as there are: more of them hold more microbatches.
    """
    now, even = _bytes(run, {}), even_layout(run, run.config.vpp or 1)
    if now is None or even is None or len(now) < 2:
        return None
    stages, virtual = even[0].split(_BORDER), even[1]
    held = _with(run, stages)
    if held is None:
        return None
    for _ in range(len(even[0])):
        moved = _moved(stages, held)
        after = _with(run, moved) if moved else None
        if moved is None or after is None or max(after) >= max(held):
            break
        stages, held = moved, after
    return StageMemory(now, max(held), _BORDER.join(stages), virtual)


def _bytes(run: Run, changes: Values) -> tuple[int, ...] | None:
    config = run.config
    held = by_stage(config.settings.changed(changes, "change"), config.core_text, config.precision)
    if isinstance(held, Missing):
        return None
    return tuple(stage.total_bytes for stage in held)


def _with(run: Run, stages: Sequence[str]) -> tuple[int, ...] | None:
    return _bytes(
        run,
        {
            VIRTUAL_STAGES: None,
            **dict.fromkeys(OTHER_LAYOUTS),
            STAGE_LAYOUT: _BORDER.join(stages),
        },
    )


def _moved(stages: list[str], held: Sequence[int]) -> list[str] | None:
    """One layer from the fullest rank's longest stage to the emptiest rank's shortest, never past
    MTP.
    """
    ranks, count = len(held), len(stages)
    last = next((place for place, stage in enumerate(stages) if _PREDICTION in stage), count - 1)
    full, empty = held.index(max(held)), held.index(min(held))
    layers = [stage.count(_LAYER) for stage in stages]
    giver = max(range(full, count, ranks), key=layers.__getitem__)
    taker = min(range(empty, last + 1, ranks), key=layers.__getitem__, default=None)
    too_long = sum(layers[empty::ranks]) + 1 > (1 + QUARTER.value) * sum(layers) / ranks
    if full == empty or layers[giver] < 2 or taker is None or too_long:
        return None
    result = list(stages)
    result[giver] = result[giver].replace(_LAYER, "", 1)
    result[taker] = _one_more(result[taker])
    return result


def _one_more(stage: str) -> str:
    """A stage with one more layer: after the embedding, before MTP and the loss."""
    if stage[:1] == "E":
        return stage[:1] + _LAYER + stage[1:]
    return _LAYER + stage
