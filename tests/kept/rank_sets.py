"""Small random sets of ranks: groups that meet a few times in a step, one rank or link late, and clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from tests.recordings.ranks import ALIKE, Part, array, shifted, summary_of
from traces.ranks.summaries.summary import (
    UNKNOWN,
    ExpertWork,
    Fingerprint,
    FirstStep,
    Group,
    GroupSource,
    Messages,
    Operation,
    RankSummary,
)

LATE: Final = (
    "nobody",
    "compute",
    "compute",
    "grouped",
    "host",
    "host",
    "loader",
    "loader",
    "link",
    "pauses",
)
SOURCES: Final = (*[GroupSource.COMMUNICATOR] * 4, *GroupSource)
OPERATIONS: Final = (*Operation, Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.EXCHANGE)


@dataclass
class Begun:
    """One rank as far as it has come: its steps, its parts in collectives, and what it did since the last."""

    now: float = 0.0
    parts: list[Part] = field(default_factory=list)
    steps: list[dict[str, float]] = field(default_factory=list)
    since: dict[str, float] = field(default_factory=dict)

    def begins(self) -> None:
        """A step."""
        self.steps.append({"start": self.now, "pace": 5})

    def passes(self, name: str, us: float) -> None:
        """So long at compute, experts' compute, the host's or the loader's."""
        self.now += us
        for told in (self.steps[-1], self.since):
            told[name] = told.get(name, 0) + us
            if name == "grouped":
                told["compute"] = told.get("compute", 0) + us

    def meets(self, group: int, end: float, operation: Operation, size: int = UNKNOWN) -> None:
        """It takes part in a collective from now until its end."""
        number = sum(part.group == group for part in self.parts)
        part = Part(group, number, self.now, end, operation, size, len(self.steps) - 1, self.since)
        self.steps[-1]["exposed_comm"] = self.steps[-1].get("exposed_comm", 0) + end - self.now
        self.parts, self.since, self.now = [*self.parts, part], {}, end


def draw_ranks(seed: int) -> list[RankSummary]:
    """The summaries of a run of two to eight ranks."""
    dice = Random(f"ranks {seed}")
    count = dice.choice((2, 2, 3, 4, 4, 4, 8))
    groups = _groups(dice, count)
    program = [
        (
            dice.choice(groups),
            dice.choice(OPERATIONS),
            dice.choice((UNKNOWN, 4, 1 << 20)),
            dice.randint(20, 300),
        )
        for _ in range(dice.randint(1, 7))
    ]
    ranks, late, victim = [Begun() for _ in range(count)], dice.choice(LATE), dice.randrange(count)
    by_much = dice.choice((0.02, 0.2, 0.6, 2.0))
    for _ in range(dice.choice((1, 2, 3, 4, 6, 10))):
        for place, rank in enumerate(ranks):
            rank.begins()
            rank.passes("loader", 20 + 400 * by_much * (late == "loader" and place == victim))
        for split, operation, size, work in program:
            for place, rank in enumerate(ranks):
                slow = place == victim and (late != "pauses" or dice.random() < 0.3)
                for name, share in (("compute", 1.0), ("grouped", 0.5), ("host", 0.1)):
                    more = by_much if slow and late in (name, "pauses") else 0
                    rank.passes(name, work * share * (1 + more) * dice.uniform(0.99, 1.01))
            for members in split:
                took = 20 * (1 + 5 * by_much * (late == "link" and victim in members))
                _meet([ranks[one] for one in members], groups.index(split), operation, size, took)
        for rank in ranks:
            rank.steps[-1]["end"] = rank.now
    ways = _Manner(groups, count, dice.choice(SOURCES), dice.random() < 0.8, dice.choice((0, 0, 1, 2, 9)))
    odd = dice.choice((victim, dice.randrange(count), -1, -1))
    return [_summary(dice, place, rank, ways, odd == place) for place, rank in enumerate(ranks)]


@dataclass
class _Manner:
    """How all ranks were recorded: by what groups are known, whether with sizes, how many share a clock."""

    splits: list[list[list[int]]]
    count: int
    source: GroupSource
    sized: bool
    per_clock: int

    def groups(self, place: int) -> list[Group]:
        found = []
        for number, split in enumerate(self.splits):
            members = next((some for some in split if place in some), [place])
            own, size = members.index(place), len(members) if self.sized else None
            peer = (own + 1) % len(members) if self.source == GroupSource.PEER else None
            key = 100 * number + members[0]
            found.append(Group(self.source, key, size, tuple(members), number % 3, own, peer))
        return found


def _groups(dice: Random, count: int) -> list[list[list[int]]]:
    """Ways to split the ranks into groups: all, neighbours, every second."""
    every = [*range(count)]
    ways = [[every], [every[place : place + 2] for place in range(0, count, 2)], [every[::2], every[1::2]]]
    return dice.sample(ways, dice.choice((1, 2, 3)))


def _meet(ranks: Sequence[Begun], group: int, operation: Operation, size: int, took_us: float) -> None:
    end = max(rank.now for rank in ranks) + took_us
    for rank in ranks:
        rank.meets(group, end, operation, size)


def _summary(dice: Random, place: int, rank: Begun, ways: _Manner, odd: bool) -> RankSummary:
    kernels = [14.0 if odd else dice.choice((10.0, 10.1)), 20.0, 0.0 if odd else 30.0]
    made = summary_of(
        None if odd and dice.random() < 0.3 else place,
        rank.parts[: len(rank.parts) - 3 * (odd and dice.random() < 0.3)],
        ways.groups(place),
        world_size=dice.choice((None, 2 * ways.count)) if odd else ways.count,
        steps=rank.steps,
        kernels_us=kernels,
        alike=Fingerprint(2, 2, True, place == 0, True) if odd and dice.random() < 0.3 else ALIKE,
    )
    clock = place // ways.per_clock if ways.per_clock else 0
    began_ns = None if odd and dice.random() < 0.5 else 0
    calls = [dice.randint(0, 3) for _ in made.instances.step] if odd else []
    work = [dice.randint(10, 5_000) for _ in rank.steps]
    made = replace(
        made,
        identity=replace(made.identity, clock=clock, session_start_ns=began_ns, process=place),
        first_step=dice.choice([*FirstStep]) if odd else FirstStep.USUAL,
        messages=Messages(array(calls), array(calls), array(calls)),
        experts=ExpertWork(array(range(len(work))), array([0] * len(work)), array(work)),
    )
    return shifted(made, dice.choice((0, 1_000, 40_000_000)) * clock, dice.choice((0, 0, 3.0)) * clock)
