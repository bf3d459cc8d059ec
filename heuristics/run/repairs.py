"""What to do about each cause that makes ranks wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from heuristics.words import say
from traces.limits import HALF_A_WALL
from traces.missing import known
from traces.sections.cause import Cause
from traces.sections.hang import Hang
from traces.sections.run import Run
from traces.sections.tables import WallId

REPAIRS: Final[Mapping[Cause, tuple[str, ...]]] = {
    Cause.SLOW_HOST: ("HST-1", "HST-2"),
    Cause.ROUTING_IMBALANCE: ("COM-11",),
    Cause.ROTATING_JITTER: ("HST-2", "HST-1"),
    Cause.PIPELINE_IMBALANCE: ("COM-6",),
}
"""The fixes of the catalogue that remove a cause, the first to try first; what to check before is said by
words/run.toml. Where one rank is late at every collective, COM-11, HST-1 and HST-2 and never bandwidth
(Megatron-Bridge, skill perf-nsys-analysis at 067f987d); for an uneven pipeline COM-6 (skill
perf-moe-dispatcher-selection)."""


WALL_OF: Final[Mapping[Cause, WallId]] = {
    Cause.SLOW_DEVICE: "compute",
    Cause.ROUTING_IMBALANCE: "compute",
    Cause.PIPELINE_IMBALANCE: "compute",
    Cause.SLOW_HOST: "host_overhead",
    Cause.DATA_LOADER: "host_overhead",
    Cause.ROTATING_JITTER: "host_overhead",
    Cause.SLOW_LINK: "communication",
}
"""In which wall a late rank loses its time, while the others lose theirs in communication."""


def comes_first(saved_frac: float | None) -> bool:
    """Whether a repair comes before all other changes: the run replayed without its cause is that shorter."""
    return saved_frac is not None and saved_frac >= HALF_A_WALL.value


def repaired(run: Run) -> Run:
    late, without = known(run.late), known(run.without)
    if late is None:
        return run
    first = comes_first(without.saved_frac if without else None)
    repair = say(f"run.{late.cause.value}") if late.cause is not Cause.NONE else ""
    fixes = REPAIRS.get(late.cause, ())
    return structs.replace(
        run, late=structs.replace(late, repair=repair, repair_fixes=fixes, repair_first=first)
    )


def advised(hang: Hang) -> Hang:
    """The hang with what to do first."""
    return structs.replace(hang, advice=say(f"hang.{hang.kind.value}"))


@dataclass(frozen=True, slots=True)
class LateRank:
    """Why ranks wait, as far as a plan minds. `saved_frac`: of the run's step, replayed without the cause.

    `waits_ns`: by kind of communication, exposed waiting for the late rank over all ranks; no other exchange
    and no overlap shortens it. `exposed_ns`: all exposed communication of the same ranks, by kind.
    """

    cause: Cause
    saved_frac: float | None = None
    waits_ns: Mapping[str, int] | None = None
    exposed_ns: Mapping[str, int] | None = None
