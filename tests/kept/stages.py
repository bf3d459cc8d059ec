"""Small random pipelines: stages with layers of their own that send to each other, and odd recordings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from tests.kept.rank_sets import Begun
from tests.recordings.ranks import MS, array, summary_of
from traces.names.kernels import COMM_KINDS
from traces.ranks.summaries.summary import (
    UNKNOWN,
    Fingerprint,
    Group,
    GroupSource,
    Messages,
    Operation,
    Peers,
    RankSummary,
)

MESSAGE: Final = COMM_KINDS.index("pp_p2p")
ALL: Final = "all"
Meeting = tuple[str | int, int, int]
"""With the stage of that number, or its own replicas: sends and receives."""
Work = Meeting | float
"""A meeting, or so many us of compute."""
MiB: Final = 1 << 20


@dataclass(kw_only=True)
class _Rank(Begun):
    """One rank that runs its schedule until it meets another."""

    stage: int
    replica: int
    work: float
    calls: list[tuple[int, int]] = field(default_factory=list)


def draw_pipeline(seed: int) -> list[RankSummary]:
    """The summaries of two to eight ranks: one forward and one backward in turn, by microbatches."""
    dice = Random(f"pipeline {seed}")
    stages, replicas = dice.choice((2, 2, 3, 4)), dice.choice((1, 1, 2))
    layers = [dice.choice((1, 2, 2, 2, 4)) for _ in range(stages)]
    batches, uneven = dice.choice((1, 2, 4)), dice.choice((1.0, 1.0, 1.5))
    ranks = [
        _Rank(
            stage=stage, replica=replica, work=20.0 * layers[stage] * (uneven if stage == stages - 1 else 1)
        )
        for replica in range(replicas)
        for stage in range(stages)
    ]
    victim, slow = dice.choice(ranks), dice.choice((0, 0, 10, 60))
    for _ in range(dice.choice((1, 2, 3, 5))):
        for rank in ranks:
            rank.begins()
            rank.passes("loader", 10)
        _run(dice, ranks, [_schedule(rank, stages, batches) for rank in ranks], victim, slow)
        for rank in ranks:
            rank.steps[-1]["end"] = rank.now
    manner = _Manner(stages, replicas, dice.choice(("pairs", "pairs", "whole", "peers", "order")))
    told, sizes = dice.choice((True, True, False)), dice.choice((UNKNOWN, 8, 4 * MiB))
    clocks, odd = dice.choice((0, 1, 2, 9)), dice.choice((-1, -1, dice.randrange(len(ranks))))
    return [
        _odd(dice, _summary(dice, place, rank, manner, layers, batches, told, sizes, clocks), place == odd)
        for place, rank in enumerate(ranks)
    ]


def _schedule(rank: _Rank, stages: int, batches: int) -> Iterator[Work]:
    """Work in us and whom it meets, in the order of Megatron-Core without virtual stages."""
    stage, last, work = rank.stage, rank.stage == stages - 1, rank.work
    warm = min(stages - 1 - stage, batches)
    into: list[Work] = [(stage - 1, 0, 1)] if stage else []
    back: list[Work] = [(stage - 1, 1, 0)] if stage else []
    both: list[Work] = [(stage - 1, 1, 1)] if stage else []
    onward: list[Work] = [] if last else [(stage + 1, 1, 1)]
    for _ in range(warm):
        yield from [*into, work, (stage + 1, 1, 0)]
    left = batches - warm
    if left:
        yield from into
    for number in range(left):
        yield from [work, *onward, 2 * work]
        yield from both if number < left - 1 else back
    for _ in range(warm):
        yield from [(stage + 1, 0, 1), 2 * work, *back]
    yield (ALL, 0, 0)


def _run(
    dice: Random, ranks: Sequence[_Rank], schedules: list[Iterator[Any]], victim: _Rank, slow: float
) -> None:
    """Each runs until it meets another that is there too; all that meet end together."""
    waiting: dict[int, Meeting] = {}
    ended: set[int] = set()
    while len(ended) < len(ranks):
        for place, rank in enumerate(ranks):
            while place not in waiting and place not in ended:
                what = next(schedules[place], None)
                if what is None:
                    ended.add(place)
                elif isinstance(what, float):
                    rank.passes("compute", what * dice.uniform(0.99, 1.01) + slow * (rank is victim))
                    rank.passes("host", 1)
                else:
                    waiting[place] = what
        for place, (other, *_) in [*waiting.items()]:
            if place in waiting and (met := _met(ranks, waiting, place, other)):
                _meet([ranks[one] for one in met], [waiting.pop(one) for one in met])


def _met(ranks: Sequence[_Rank], waiting: dict[int, Meeting], place: int, other: str | int) -> list[int]:
    mine = ranks[place]
    if other == ALL:
        met = [number for number, rank in enumerate(ranks) if rank.stage == mine.stage]
        return met if all(waiting.get(one, ("",))[0] == ALL for one in met) else []
    found = [
        number for number in waiting
        if (ranks[number].stage, ranks[number].replica) == (other, mine.replica)
        and waiting[number][0] == mine.stage
    ]  # fmt: skip
    return [place, *found] if found else []


def _meet(ranks: Sequence[_Rank], meetings: Sequence[Meeting]) -> None:
    is_message = meetings[0][0] != ALL
    end = max(rank.now for rank in ranks) + (4 if is_message else 30)
    for rank, (other, sends, receives) in zip(ranks, meetings, strict=True):
        group = 2 if not is_message else int(int(other) > rank.stage)
        rank.meets(group, end, Operation.EXCHANGE if is_message else Operation.ALL_REDUCE)
        rank.calls.append((sends, receives) if is_message else (0, 0))


@dataclass
class _Manner:
    """By what the groups of messages are known."""

    stages: int
    replicas: int
    by: str

    def groups(self, rank: _Rank) -> list[Group]:
        found = []
        for before in (True, False):
            first, own = (rank.stage - 1, 1) if before else (rank.stage, 0)
            key = 1_000 * rank.replica + 10 * first
            if self.by == "pairs":
                found.append(Group(GroupSource.COMMUNICATOR, key, 2, own=own))
            elif self.by == "whole":
                found.append(Group(GroupSource.COMMUNICATOR, rank.replica, self.stages, own=rank.stage))
            elif self.by == "peers":
                peer = rank.stage - 1 if before else rank.stage + 1
                found.append(Group(GroupSource.PEER, rank.replica, self.stages, peer=peer))
            else:
                found.append(Group(GroupSource.ORDER, int(before)))
        alike = tuple(rank.stage + self.stages * number for number in range(self.replicas))
        return [
            *found,
            Group(GroupSource.COMMUNICATOR, 77 + rank.stage, self.replicas, alike, own=rank.replica),
        ]


def _summary(
    dice: Random, place: int, rank: _Rank, manner: _Manner, layers: Sequence[int], batches: int, told: bool,
    size: int, clocks: int,
) -> RankSummary:  # fmt: skip
    attention = 2 * layers[rank.stage] * batches
    alike = Fingerprint(attention, 0, False, rank.stage == 0, rank.stage == manner.stages - 1)
    parts = [replace(part, size_bytes=size if part.group < 2 else 4 * MiB) for part in rank.parts]
    made = summary_of(
        place, parts, manner.groups(rank), world_size=manner.stages * manner.replicas, steps=rank.steps,
        kernels_us=[10.0, 20.0], alike=alike,
    )  # fmt: skip
    kinds = [MESSAGE if part.group < 2 else COMM_KINDS.index("all_reduce") for part in parts]
    sends, receives = (array([call[way] for call in rank.calls]) for way in (0, 1))
    received = array([size if got and size > 8 else UNKNOWN for _, got in rank.calls])
    about = replace(made.identity, clock=place // clocks if clocks else 0)
    own = UNKNOWN if manner.by == "peers" else rank.stage
    peers = [[MESSAGE], [rank.replica], [own], [(rank.stage + 1) % manner.stages], [MiB], [2 * MiB]]
    return replace(
        made, identity=about, instances=replace(made.instances, kind=array(kinds)),
        messages=Messages(sends, receives, received) if told else made.messages,
        peers=Peers(*map(array, peers)) if dice.random() < 0.5 else made.peers,
    )  # fmt: skip


def _odd(dice: Random, summary: RankSummary, odd: bool) -> RankSummary:
    """The same as one recording of many may be: of another run, time or recorder, or cut."""
    if not odd:
        return summary
    identity, rows = summary.identity, summary.instances
    few = replace(
        summary, instances=rows.take(array(range(len(rows) // 2, len(rows)))), messages=Messages.none()
    )
    other = (
        replace(identity, rank=0), replace(identity, recording=2_000), replace(identity, world_size=64),
        replace(identity, version="2.0"), replace(identity, world_size=None, rank=None),
        replace(identity, session_start_ns=10**15, end_ns=5 * MS), replace(identity, process=3_000),
    )  # fmt: skip
    strange = tuple(replace(group, key=group.key + 5_000) for group in summary.groups)
    several = [few, replace(summary, groups=strange), *(replace(summary, identity=one) for one in other)]
    return dice.choice(several)
