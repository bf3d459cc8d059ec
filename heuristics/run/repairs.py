"""What to do about each cause that makes ranks wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from traces.limits import Limit
from traces.missing import known
from traces.sections.cause import Cause
from traces.sections.run import Run

FIRST: Final = Limit(
    0.05,
    "fraction of the run's step",
    "ours: half a wall; a defect that costs as much is removed before anything is tuned",
)


@dataclass(frozen=True, slots=True)
class Repair:
    """What to check first, and the fixes of the catalogue that do it, the first to try first."""

    sentence: str
    fixes: tuple[str, ...] = ()


REPAIRS: Final[Mapping[Cause, Repair]] = {
    Cause.SLOW_DEVICE: Repair(
        "Check the GPU: clocks, throttling, power limit, ECC (nvidia-smi -q). "
        "Exclude the node if the GPU stays slow."
    ),
    Cause.SLOW_HOST: Repair(
        "Check the host: CPU binding, other processes, CPU frequency, garbage collection.",
        ("HST-1", "HST-2"),
    ),
    Cause.SLOW_LINK: Repair(
        "Check the links of this rank: NIC, cables, switch ports, topology (NCCL_DEBUG=INFO)."
    ),
    Cause.ROUTING_IMBALANCE: Repair(
        "Balance the routing (COM-11); a faster link or another GPU does not help.", ("COM-11",)
    ),
    Cause.ROTATING_JITTER: Repair(
        "Check what interrupts all hosts: garbage collection, other processes, storage.",
        ("HST-2", "HST-1"),
    ),
    Cause.DATA_LOADER: Repair("Check the data loader of this rank: workers, storage, prefetching."),
    Cause.PIPELINE_IMBALANCE: Repair(
        "Move layers from the longest pipeline stage to the others (COM-6).", ("COM-6",)
    ),
    Cause.NONE: Repair(""),
}
"""Sentences are ours: what an administrator looks at first, by what was observed. Fixes are the catalogue's:
where one rank is late at every collective, COM-11, HST-1 and HST-2 and never bandwidth (Megatron-Bridge,
skill perf-nsys-analysis at 067f987d); for an uneven pipeline COM-6 (skill perf-moe-dispatcher-selection)."""


def comes_first(saved_frac: float | None) -> bool:
    """Whether a repair comes before all other changes: the run replayed without its cause is that shorter."""
    return saved_frac is not None and saved_frac >= FIRST.value


def repaired(run: Run) -> Run:
    late, without = known(run.late), known(run.without)
    if late is None:
        return run
    repair, first = REPAIRS[late.cause], comes_first(without.saved_frac if without else None)
    told = structs.replace(late, repair=repair.sentence, repair_fixes=repair.fixes, repair_first=first)
    return structs.replace(run, late=told)


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
