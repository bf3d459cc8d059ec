"""A simulated run of several ranks: what every rank did, and who waited for whom. True time, in ns."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bench.simulate.engine import execute_ranks
from bench.simulate.host_program import Work
from bench.simulate.ranks.causes import programs_of
from bench.simulate.ranks.described import RanksRun
from bench.simulate.run import Run, run_of


@dataclass(frozen=True, slots=True)
class Participant:
    """One rank's part in an instance: when its kernel started, what its transfer takes, when it ended."""

    arrival_ns: int
    transfer_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Instance:
    """One collective of a group. `step`, `operation` and `kernel` are those of its lowest rank."""

    group: tuple[int, ...]
    name: str
    sequence: int
    step: int
    operation: str
    kernel: str
    parts: Mapping[int, Participant]
    """By rank."""

    @property
    def last_ns(self) -> int:
        """When the last participant arrived."""
        return max(part.arrival_ns for part in self.parts.values())

    @property
    def late(self) -> int:
        """Who arrived last; the lowest rank of several."""
        return max(sorted(self.parts), key=lambda rank: self.parts[rank].arrival_ns)

    def waits_ns(self) -> dict[int, int]:
        """How long each participant waited for the last, by rank."""
        last_ns = self.last_ns
        return {rank: last_ns - part.arrival_ns for rank, part in self.parts.items()}


@dataclass(frozen=True, slots=True)
class RanksDone:
    """A run that was simulated. `ranks` are the runs of the ranks, in order."""

    run: RanksRun
    ranks: tuple[Run, ...]

    def instances(self) -> list[Instance]:
        """All collectives of more than one rank, by when their last participant arrived."""
        parts: dict[tuple[tuple[int, ...], str, int], dict[int, Participant]] = {}
        first: dict[tuple[tuple[int, ...], str, int], Work] = {}
        for rank, done in enumerate(self.ranks):
            for one in done.activities:
                if one.collective is not None:
                    key = one.collective[:3]
                    first.setdefault(key, one.work)
                    part = Participant(one.start_ns, one.collective.transfer_ns, one.end_ns)
                    parts.setdefault(key, {})[rank] = part
        found = [
            Instance(*key, first[key].place.step, first[key].place.operation, first[key].kernel, parts[key])
            for key in parts
        ]
        return sorted(found, key=lambda instance: (instance.last_ns, instance.group, instance.name))

    @property
    def steps_ns(self) -> tuple[tuple[int, ...], ...]:
        """Step times by rank."""
        return tuple(done.step_ns for done in self.ranks)

    @property
    def whole_ns(self) -> int:
        """From the first rank's first step to the end of the last rank's last."""
        borders = [done.borders_ns for done in self.ranks]
        return max(each[-1] for each in borders) - min(each[0] for each in borders)


def simulate(run: RanksRun) -> RanksDone:
    """Run all ranks together."""
    collects = gc.isenabled()
    gc.disable()  # all that is made here is kept, and looking through it takes most of the time
    try:
        done = execute_ranks(programs_of(run))
        return RanksDone(run, tuple(run_of(run.knobs_of(rank), each) for rank, each in enumerate(done)))
    finally:
        if collects:
            gc.enable()


def waited_for(instances: list[Instance]) -> Counter[int]:
    """All time that participants waited, by the rank that arrived last."""
    charged: Counter[int] = Counter()
    for instance in instances:
        charged[instance.late] += sum(instance.waits_ns().values())
    return charged
