"""What is true of a simulated run of several ranks, in the few numbers that a score needs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from bench.second.ranks_truth import draw_truth
from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause, Extent
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.happened import Instance, RanksDone
from bench.simulate.ranks.recorded import Capture, write_ranks
from bench.simulate.ranks.truth import Truth
from tests.recordings.ranks import summaries_in
from traces.ranks.summaries.summary import RankSummary

FEW: Final = 8
"""Ranks of most runs, and of all of the second simulator."""
_MANY: Final = (16, 32, 64)
_EACH: Final = 10
"""Each tenth seed of the first simulator has more ranks than 8."""


class Simulator(StrEnum):
    """Who simulated a run."""

    FIRST = "first"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class Case:
    """A run to be scored."""

    simulator: Simulator
    cause: Cause
    seed: int
    rank_count: int = FEW
    extent: Extent = Extent.RANK


@dataclass(frozen=True, slots=True)
class Known:
    """The truth of a run. `ranks`: whom the cause makes late, `late_rank` the one of them.

    `waits`: step, last rank and waiting in ns of each collective; those outside of all steps have numbers of
    no step. `borders_ns` and `mended_ns`: borders of the steps by rank, with the cause and without. `made`:
    how the run was made, for who reads failures.
    """

    case: Case
    ranks: tuple[int, ...]
    late_rank: int | None
    waits: tuple[tuple[int, int, int], ...]
    borders_ns: tuple[tuple[int, ...], ...]
    mended_ns: tuple[tuple[int, ...], ...]
    made: str

    @property
    def step_count(self) -> int:
        """Steps of the run."""
        return len(self.borders_ns[0]) - 1

    def wait_ns(self, skipped: int) -> int:
        """Waits for the late ranks in the steps after these; where there are none, all waits."""
        return sum(
            wait_ns
            for step, last, wait_ns in self.waits
            if skipped <= step < self.step_count and (not self.ranks or last in self.ranks)
        )

    def saved_frac(self, skipped: int) -> float:
        """What the run is shorter without its cause, after the first steps: of the median rank."""
        return 1 - _length_ns(self.mended_ns, skipped) / _length_ns(self.borders_ns, skipped)


def _length_ns(borders_ns: Sequence[Sequence[int]], skipped: int) -> float:
    return median(borders[-1] - borders[skipped] for borders in borders_ns)


def cases(seeds: Sequence[int], rank_count: int | None = None) -> list[Case]:
    """Every cause of every seed by both simulators. Without `rank_count` 8 ranks mostly, and up to 64."""
    found = []
    for seed in seeds:
        many = _MANY[seed // _EACH % len(_MANY)] if seed % _EACH == 0 else FEW
        for cause in Cause:
            found.append(Case(Simulator.FIRST, cause, seed, rank_count or many))
            if rank_count in (None, FEW):
                found.append(Case(Simulator.SECOND, cause, seed))
    return found


HANDICAPS: Final = (
    (Cause.SLOW_DEVICE, Extent.NODE),
    (Cause.SLOW_DEVICE, Extent.STEPS),
    (Cause.SLOW_DEVICE, Extent.GEMMS),
    (Cause.SLOW_HOST, Extent.NODE),
    (Cause.SLOW_LINK, Extent.NODE),
    (Cause.ROTATING_JITTER, Extent.PAUSES),
)
"""Causes that reach farther than one rank, or less far than all that it does."""


def farther_cases(seeds: Sequence[int]) -> list[Case]:
    """Every one of these of every seed by both simulators."""
    return [
        Case(simulator, cause, seed, extent=extent)
        for seed in seeds
        for cause, extent in HANDICAPS
        for simulator in Simulator
    ]


def simulated(case: Case) -> Truth:
    """Draw and simulate a run. Raises ValueError where its cause cannot be made to matter."""
    if case.simulator is Simulator.SECOND:
        return draw_truth(case.seed, case.cause, extent=case.extent)
    return draw_run(case.seed, case.cause, case.rank_count, extent=case.extent)


def recorded(truth: Truth) -> list[RankSummary]:
    """The run as its recordings tell it, each rank in a file of its own, hosts with clocks of their own."""
    with TemporaryDirectory() as folder:
        written = write_ranks(truth.done, Path(folder), draw_clocks(truth.run), Capture(mpi=True))
        return [summary for one in written for summary in summaries_in(one.path)]


def known(case: Case, truth: Truth) -> Known:
    """The truth in few numbers."""
    run = truth.run
    layout, borders_ns, instances = run.layout, _borders_ns(truth.done), truth.done.instances()
    return Known(
        case,
        truth.ranks,
        truth.late_rank,
        tuple((_step(one, borders_ns), one.late, sum(one.waits_ns().values())) for one in instances),
        borders_ns,
        _borders_ns(truth.mended),
        f"tp {layout.tensor} ep {layout.expert} pp {layout.pipeline} dp {layout.data}, "
        f"{layout.ranks_per_host} a host, {run.knobs.dispatcher}, hot {run.hot.value}, "
        f"jitter {run.jitter.value}, strength {run.strength:.2f}, effect {truth.effect_frac:.1%}",
    )


def _step(instance: Instance, borders_ns: Sequence[Sequence[int]]) -> int:
    """In which step its last rank arrives: parameters are gathered before a step's border as well."""
    return bisect_right(borders_ns[instance.late], instance.last_ns) - 1


def _borders_ns(done: RanksDone) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(rank.borders_ns) for rank in done.ranks)
