"""Memory by pipeline stage as estimated, and a layout whose fullest stage holds least.

Stages early in the pipeline hold activations of more microbatches, the ends hold embedding, loss and MTP. So
equal counts of layers are not equal memory. Layers move one at a time from the fullest rank to the emptiest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from heuristics.config.sizes import OTHER_LAYOUTS, even_layout
from heuristics.run.run import Run
from traces.limits import Limit
from traces.missing import Missing
from traces.settings.settings import Value
from traces.sizes.memory import by_stage

UNEVEN: Final = Limit(
    0.1,
    "fraction of the fullest stage",
    "ours: less than a tenth is within what the estimate of memory may be wrong by",
)
LONGEST: Final = Limit(
    1.25,
    "times the mean count of layers",
    "ours: the longest stage sets the pace, and a quarter more costs as much as full recompute does",
)
_LAYER, _BORDER, _PREDICTION = "t", "|", "m"
_LAYOUT: Final = "pipeline_model_parallel_layout"
_OTHERS: Final[dict[str, Value]] = dict.fromkeys(("virtual_pipeline_model_parallel_size", *OTHER_LAYOUTS))


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Estimated bytes of each pipeline rank; `layout` and its virtual stages, whose fullest has `best`."""

    stages: tuple[int, ...]
    best: int
    layout: str
    virtual: int

    @property
    def fullest(self) -> int:
        """Bytes of the fullest rank."""
        return max(self.stages)

    @property
    def is_uneven(self) -> bool:
        """Whether the fullest rank holds notably more than the emptiest."""
        return self.fullest - min(self.stages) >= UNEVEN.value * self.fullest

    @property
    def freed(self) -> int:
        """Bytes that the layout takes off the fullest rank."""
        return self.fullest - self.best


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


def _bytes(run: Run, changes: Mapping[str, Value]) -> tuple[int, ...] | None:
    config = run.config
    found = by_stage(config.settings.changed(changes, "change"), config.core_text, config.precision)
    return None if isinstance(found, Missing) else tuple(one.total_bytes for one in found)


def _with(run: Run, stages: Sequence[str]) -> tuple[int, ...] | None:
    return _bytes(run, {**_OTHERS, _LAYOUT: _BORDER.join(stages)})


def _moved(stages: list[str], held: Sequence[int]) -> list[str] | None:
    """One layer from the fullest rank's longest stage to the emptiest rank's shortest, never past MTP."""
    ranks = len(held)
    last = next((place for place, stage in enumerate(stages) if _PREDICTION in stage), len(stages))
    full, empty = held.index(max(held)), held.index(min(held))
    givers = [place for place in range(full, len(stages), ranks) if stages[place].count(_LAYER) > 1]
    takers = [place for place in range(empty, len(stages), ranks) if place <= last]
    layers = [sum(one.count(_LAYER) for one in stages[rank::ranks]) for rank in range(ranks)]
    too_long = layers[empty] + 1 > LONGEST.value * sum(layers) / ranks
    if full == empty or not givers or not takers or too_long:
        return None
    giver = max(givers, key=lambda place: stages[place].count(_LAYER))
    taker = min(takers, key=lambda place: stages[place].count(_LAYER))
    result = list(stages)
    result[giver] = result[giver].replace(_LAYER, "", 1)
    result[taker] = _one_more(result[taker])
    return result


def _one_more(stage: str) -> str:
    """A stage with one more layer: after the embedding, before MTP and the loss."""
    return stage[:1] + _LAYER + stage[1:] if stage[:1] == "E" else _LAYER + stage
