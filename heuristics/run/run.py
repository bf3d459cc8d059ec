"""A run as opinions see it: what is observed, what is given and configured. None is unknown, never
no.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, get_args

from heuristics.config.about import OPTIONS, Given
from heuristics.config.observed import Observed
from heuristics.config.view import Config, Trust
from heuristics.facts.dictionary import Remembering
from heuristics.run.repairs import REPAIRS, LateRank
from traces.names.frameworks import Framework
from traces.sections.tables import WallId
from traces.settings.settings import Settings, Values
from traces.texts import Texts
from traces.training_log.log import OutOfMemory, TrainingLog

WALL_IDS: Final[tuple[WallId, ...]] = get_args(WallId)
"""Order of the workflow: what does not fit cannot be tuned; compute comes after the others."""

CHANGED: Final = "change"
"""Where a changed setting is configured."""


@dataclass(frozen=True)
class Run(Remembering):
    """Everything opinions may rest on."""

    observed: Observed = field(default_factory=Observed)
    given: Given = field(default_factory=Given)
    cost_by_kind_ns: Mapping[WallId, Mapping[str, int]] = field(default_factory=dict)
    """What each wall would give back at most, by kind; a wall that could not be measured is not in
    it."""
    window_ns: int = 0
    total_ns: Mapping[WallId, int] = field(default_factory=dict)
    """What each wall would give back at most; kinds taken away alone need not add up to it."""
    does_not_fit: bool = False
    """Hard evidence that memory is too small."""
    total_frac: Mapping[WallId, float] = field(default_factory=dict)
    """What each wall would give back at most, as part of the windows of the ranks that tell it."""
    settings: Settings = field(default_factory=Settings)
    """What files configure, the configuration over the log; `config` is where all sources meet."""
    log: TrainingLog | None = None
    framework: Framework = "megatron"
    """Whose settings a plan may name: what the trace shows, Megatron where its configuration was
    given."""
    idle_frac: float | None = None
    """The share of its windows in which nothing ran."""
    late: LateRank | None = None
    """Why ranks wait for each other, by several of them; None where nobody is late or nobody can
    tell."""

    views: dict[Trust, Config] = field(default_factory=dict, init=False, repr=False, compare=False)
    after: dict[object, Run] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The run with changes that were asked for before."""

    def view(self, trust: Trust) -> Config:
        """What the run is configured to do, by some sources: the one reader of its settings."""
        if trust not in self.views:
            self.views[trust] = Config(self.given, self.observed, self.settings, self.log, trust)
        return self.views[trust]

    @property
    def checked(self) -> Config:
        """As the checks of its release see it."""
        return self.view(Trust.CHECKED)

    @property
    def config(self) -> Config:
        return self.view(Trust.ALL)

    @property
    def as_written(self) -> Run:
        """The run as options and files have it, on its GPU: nothing of how it ran fills them up."""
        seen = self.observed
        gpu = Observed(gpu=seen.gpu, capability=seen.capability, memory_bytes=seen.memory_bytes)
        return replace(self, observed=gpu)

    @property
    def active(self) -> Observed:
        """What runs as far as is known: as observed, else as configured."""
        return self.config.active

    @property
    def gpu(self) -> str | None:
        return self.config.gpu

    @property
    def memory_errors(self) -> tuple[OutOfMemory, ...]:
        """Those that the log holds, of the run's own memory."""
        return self.log.own_out_of_memory if self.log else ()

    @property
    def precision(self) -> str | None:
        return self.config.running_precision

    @property
    def repairs(self) -> Texts:
        """Ids of the fixes that remove what makes ranks wait, the first to try first."""
        if self.late:
            return REPAIRS[self.late.cause].fixes
        return ()

    def changed(self, changes: Values) -> Run:
        """The run with a set of changes merged into its whole configuration, what was given as
        well.

        What the trace shows is of the run as it was: nothing of it is taken away. The same changes
        give the same run, with all that was asked of it before.
        """
        key = tuple((knob, type(value), value) for knob, value in changes.items())
        if key not in self.after:
            outdated = {
                name: None for name, option in OPTIONS.items() if {*option.knobs} & {*changes}
            }
            given = replace(self.given, **outdated)  # type: ignore[arg-type]
            settings = self.settings.changed(changes, CHANGED)
            self.after[key] = replace(self, settings=settings, given=given)
        return self.after[key]

    def seen_ns(self, wall: WallId, kinds: Texts) -> int | None:
        """What some kinds of a wall cost together; None where its costs are not told apart by
        kind.
        """
        if self.cost_by_kind_ns.get(wall):
            return self.cost_ns(wall, kinds)
        return None

    def cost_ns(self, wall: WallId, kinds: Texts) -> int | None:
        """What some kinds of a wall cost together, all of them if none is named; None where not
        measured.
        """
        by_kind = self.cost_by_kind_ns.get(wall)
        if by_kind is None:
            return None
        if not by_kind:
            return self.total_ns.get(wall)
        total_ns = self.total_ns.get(wall, sum(by_kind.values()))
        if kinds:
            return min(total_ns, sum(ns for kind, ns in by_kind.items() if kind in kinds))
        return total_ns
