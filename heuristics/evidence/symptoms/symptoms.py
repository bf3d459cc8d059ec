"""What a user gives of a run in place of a trace. None is not given, never zero."""

from dataclasses import dataclass, field

from heuristics.figures.figures import Figures
from heuristics.result.judged import Verdict, Wall
from traces.training_log.log import Stage


@dataclass(frozen=True, slots=True)
class Late:
    """Whom the others wait for, why, and how long."""

    cause: str
    rank: int | None = None
    wait_ns: int = 0


@dataclass(frozen=True, slots=True)
class Capture:
    """How the figures were recorded.

    `perturbation_frac`: how much longer the profiled step was. `ranks_seen` of `world_size` ranks.
    """

    perturbation_frac: float | None = None
    missing_events: bool | None = None
    ranks_seen: int | None = None
    world_size: int | None = None


@dataclass(frozen=True, slots=True)
class Symptoms:
    """The figures of a run.

    `only_sums`: sums of kernel times are given, which say nothing of a window. `walls` and `verdict`: of an
    earlier result, taken as they stand. `out_of_memory`: the stage in which memory ran out. `unread`:
    sentences of keys that mean nothing to us.
    """

    ranks: tuple[Figures, ...] = ()
    capture: Capture = field(default_factory=Capture)
    late: Late | None = None
    out_of_memory: Stage | None = None
    only_sums: bool = False
    walls: tuple[Wall, ...] = ()
    verdict: Verdict | None = None
    unread: tuple[str, ...] = ()
