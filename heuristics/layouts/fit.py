"""The least recompute with which a layout fits its GPUs, by the estimate of memory; None where none
does.

Modules are added by what they cost; whole layers come last, as the guides ask. What a module frees
adds up, so few estimates find the set.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations, repeat
from operator import attrgetter
from typing import Final

from heuristics.guides.memory_use import HEAD_ROOM
from heuristics.guides.modules import MODULES, meets
from heuristics.layouts.candidates import EACH, Sizes
from heuristics.layouts.rules import rules
from heuristics.recipes import RECIPES
from heuristics.result.layouts import Granularity
from heuristics.run.run import Run
from traces.frozen import frozen
from traces.limits import NEARLY_ALL
from traces.missing import Missing
from traces.settings.precision import low_bytes
from traces.settings.settings import Settings, Value, Values
from traces.sizes.activations import RECOMPUTED
from traces.sizes.memory import MemoryEstimate, by_stage
from traces.sizes.model import ModelSize
from traces.sizes.parameters import state_bytes, total_counts
from traces.sizes.throughput import flops_per_token
from traces.texts import Texts

_PARTS: Final = {"mlp": "dense_mlp", "shared_experts": "shared_experts"}
_FORWARD: Final = 1 / 3
"""What a forward pass is of a step's operations."""


Costs = Mapping[str, float]
"""Parts of a step, by what costs them."""


@frozen
class Recompute:
    """Modules that run twice, or whole layers, and the part of a step that it costs."""

    granularity: Granularity
    modules: Texts
    cost_frac: float

    def changes(self) -> Values:
        """Knobs that set it."""
        knobs: dict[str, Value] = {
            "recompute_granularity": self.granularity,
            "recompute_modules": self.modules or None,
            "recompute_method": None,
            "recompute_num_layers": None,
        }
        if self.granularity == "full":
            knobs |= {"recompute_method": "uniform", "recompute_num_layers": 1}
        if self.granularity == "none":
            knobs["recompute_granularity"] = None
        return knobs


NOTHING: Final = Recompute("none", (), 0.0)
EVERYTHING: Final = Recompute("full", (), RECIPES["whole_layers"].value)


@frozen
class Fitted:
    """A layout that fits, and what it takes. `kept`: bytes of its fullest rank without
    recompute.
    """

    sizes: Sizes
    recompute: Recompute
    memory: MemoryEstimate
    capacity_bytes: int
    kept: int

    @property
    def filled_frac(self) -> float:
        return self.memory.total_bytes / self.capacity_bytes


def module_costs(model: ModelSize, run: Run) -> Costs:
    """What each module that may be recomputed costs, the cheapest first; doubtful ones are out."""
    parts = flops_per_token(model)
    whole = sum(parts.values())
    costs = {}
    for label, module in MODULES.items():
        legal = meets(label, run)
        if module.avoid or not (module.usual if legal is None else legal):
            continue
        if module.costs:
            costs[label] = module.costs.value
        elif (part := _PARTS.get(label)) and (share := parts[part]):  # type: ignore[index]
            costs[label] = share * _FORWARD / whole
    return dict(sorted(costs.items(), key=lambda item: item[1]))


class Fitting:
    """Layouts of one model held against one GPU's memory."""

    def __init__(
        self,
        settings: Settings,
        model: ModelSize,
        capacity: int,
        costs: Costs,
        core: str | None,
        precision: str,
    ) -> None:
        self._settings, self._core, self._precision = settings, core, precision
        self.capacity, self.costs = capacity, costs
        self._room = round(capacity * (1 - HEAD_ROOM.value))
        self._ladder = _ladder(costs)
        self._state = state_bytes(settings, low_bytes(precision))
        self._experts = total_counts(model)["experts"]
        self.least: int | None = None
        """Bytes of the smallest estimate that was made of a layout that does not fit."""

    def fit(self, sizes: Sizes) -> Fitted | None:
        """The layout with the least recompute that fits."""
        if (least := self._least_experts(sizes)) > self._room:
            self._too_large(least)
            return None
        if not (plain := self.stages(sizes, NOTHING)):
            return None
        kept = fullest(plain).total_bytes
        if kept <= self._room:
            return Fitted(sizes, NOTHING, fullest(plain), self.capacity, kept)
        # Nothing frees more than all activations.
        if (
            least := max(stage.total_bytes - stage.activations_bytes for stage in plain)
        ) > self._room:
            self._too_large(least)
            return None
        for recompute in self._worth_trying(plain):
            held = fullest(self.stages(sizes, recompute))
            if held.total_bytes <= self._room:
                return Fitted(sizes, recompute, held, self.capacity, kept)
            self._too_large(held.total_bytes)
        return None

    def _least_experts(self, sizes: Sizes) -> int:
        """What experts alone hold on the mean stage, which is no more than on the fullest."""
        each = 2.0 + self._state.gradient
        each += (self._state.main + self._state.moments * self._state.kept_frac) / max(1, sizes.edp)
        return round(self._experts / (sizes.ep * sizes.etp * sizes.pp) * each)

    def _worth_trying(self, plain: Sequence[MemoryEstimate]) -> list[Recompute]:
        """Sets that should fit by the parts that each module frees, the cheapest first; then the
        largest set, then whole layers.
        """
        left = {way: max(map(partial(_left, way), plain)) for way in self._ladder}
        likely = sorted(
            (way for way, size in left.items() if size <= self._room),
            key=lambda way: way.cost_frac + _crowded(left[way] / self.capacity, len(way.modules)),
        )
        return list(dict.fromkeys([*likely[:3], *self._ladder[-1:], EVERYTHING]))

    def stages(self, sizes: Sizes, recompute: Recompute) -> tuple[MemoryEstimate, ...]:
        """The memory of each pipeline rank; none where the layout cannot be estimated."""
        changes = {**sizes.changes(), **recompute.changes()}
        stages = by_stage(self._settings.changed(changes, "plan"), self._core, self._precision)
        if isinstance(stages, Missing):
            return ()
        return stages

    def _too_large(self, size: int) -> None:
        self.least = size if self.least is None else min(self.least, size)


def _crowded(filled_frac: float, modules: int) -> float:
    """What nearly full memory, and each module more, counts beside the cost of a recompute."""
    return rules()["full"].weight * max(0.0, filled_frac - NEARLY_ALL.value) + EACH.value * modules


def _left(recompute: Recompute, stage: MemoryEstimate) -> int:
    """About what a rank holds when the parts of some modules are recomputed."""
    parts = set[str]().union(*(RECOMPUTED.get(module, ()) for module in recompute.modules))
    return stage.total_bytes - sum(map(stage.by_part.get, parts, repeat(0)))


def fullest(stages: Sequence[MemoryEstimate]) -> MemoryEstimate:
    return max(stages, key=attrgetter("total_bytes"))


def _ladder(costs: Costs) -> tuple[Recompute, ...]:
    """Every set of modules, the cheapest first."""
    ladder = [
        Recompute("selective", modules, sum(costs[module] for module in modules))
        for count in range(1, len(costs) + 1)
        for modules in combinations(costs, count)
    ]
    return tuple(sorted(ladder, key=attrgetter("cost_frac")))
