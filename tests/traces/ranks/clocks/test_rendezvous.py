"""Clocks of ranks that only the order of their collectives tells of: a pipeline of equal periods."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
import pytest

from tests.recordings.ranks import Part, shifted, summary_of
from traces.ranks.clocks import rendezvous
from traces.ranks.clocks.clock_fit import Fits
from traces.ranks.clocks.rendezvous import Sequences, joined_clocks, meet, sequences_of
from traces.ranks.one_run import together
from traces.ranks.one_run.together import put_together
from traces.ranks.summaries.summary import Group, GroupSource, Operation

STEP_NS, STEPS, STAGES, REPLICAS = 10_000_000, 4, 3, 2
WORLD, LOSS, EXPERTS, NEXT = range(4)
"""Streams: all ranks, the last stage's loss, tokens, messages of the pipeline."""


@dataclass
class Rank:
    """`offset_ns`, `drift`: its clock. Ends on the true time: (end, operation, stream)."""

    offset_ns: int
    drift: float
    ends: list[tuple[int, Operation, int]]

    def own(self, true_ns: float) -> int:
        return round(true_ns + self.offset_ns + true_ns * self.drift)

    def sequences(self) -> Sequences:
        ends, operation, stream = (
            np.array(column, dtype=np.int64) for column in zip(*self.ends, strict=True)
        )
        own = np.array([self.own(end) for end in ends.tolist()], dtype=np.int64)
        return sequences_of(own, operation, stream, STEPS)


def pipeline(seed: int, *, messages: bool = True) -> list[Rank]:
    """Three stages of two ranks. Loss and norm have one period; half of a stage's tokens move 17 us after
    those of the stage before, in lockstep.
    """
    draw = Random(seed)
    ranks = [
        Rank(draw.randrange(-800_000_000, 800_000_000), draw.uniform(-40e-6, 40e-6), [])
        for _ in range(STAGES * REPLICAS)
    ]

    def together(members: list[int], at_ns: int, operation: Operation, stream: int) -> None:
        for one in members:
            ranks[one].ends.append((at_ns + draw.randrange(2_500), operation, stream))

    for step in range(STEPS):
        begin = step * STEP_NS + draw.randrange(400_000)
        together([*range(len(ranks))], begin + 9_000_000, Operation.ALL_REDUCE, WORLD)
        together([4, 5], begin + 8_300_000, Operation.ALL_REDUCE, LOSS)
        tokens = sorted(draw.randrange(8_000_000) for _ in range(20))
        for stage in range(STAGES):
            mine = [stage * REPLICAS + one for one in range(REPLICAS)]
            for number, at_ns in enumerate(tokens):
                apart = 17_000 * stage if number % 2 else draw.randrange(300_000)
                together(mine, begin + at_ns + apart, Operation.EXCHANGE, EXPERTS)
            for one in mine if messages and stage + 1 < STAGES else ():
                for _ in range(8):
                    at_ns = begin + draw.randrange(8_000_000)
                    together([one, one + REPLICAS], at_ns, Operation.EXCHANGE, NEXT)
    return ranks


@pytest.mark.parametrize("seed", range(6))
def test_every_clock_of_a_pipeline_without_names_is_found_within_a_few_us(seed: int) -> None:
    ranks = pipeline(seed)
    fits = joined_clocks([one.sequences() for one in ranks], range(len(ranks)), np.arange(len(ranks)))
    assert fits is not None
    for true_ns in (0, STEPS * STEP_NS):
        common = [fits[number].times_of(np.array(one.own(true_ns))) for number, one in enumerate(ranks)]
        assert max(common) - min(common) < 6_000


def nodes(seed: int) -> list[Rank]:
    """Two nodes of two ranks, 0 and 2, 1 and 3 of one group: what 1 and 3 do is 35 us after that of 0 and 2.

    Gradients of rank 2 were lost, so that 0 has more in common with 3.
    """
    draw = Random(seed)
    ranks = [Rank(draw.randrange(-800_000_000, 800_000_000), 0.0, []) for _ in range(4)]
    for step in range(STEPS):
        for node in range(2):
            for number in range(20):
                at_ns = step * STEP_NS + 300_000 * number + 150_000 * node + draw.randrange(50_000)
                for one in (2 * node, 2 * node + 1):
                    ranks[one].ends.append((at_ns + draw.randrange(2_500), Operation.EXCHANGE, EXPERTS))
        gradients = [draw.randrange(6_000_000, 9_000_000) for _ in range(8)]
        for one in range(4):
            late_ns = step * STEP_NS + 35_000 * (one % 2)
            ranks[one].ends.append((step * STEP_NS + 9_800_000, Operation.ALL_REDUCE, LOSS))
            ranks[one].ends.append((late_ns + 9_500_000, Operation.ALL_REDUCE, WORLD))
            for at_ns in gradients[2 if one == 2 else 0 :]:
                end_ns = late_ns + at_ns + draw.randrange(2_500)
                ranks[one].ends.append((end_ns, Operation.REDUCE_SCATTER, NEXT))
    return ranks


@pytest.mark.parametrize("seed", range(6))
def test_nodes_are_joined_where_most_of_their_ranks_agree_though_one_pair_meets_elsewhere(seed: int) -> None:
    ranks = nodes(seed)
    sequences = [one.sequences() for one in ranks]
    wrong, right = meet(sequences[0], sequences[3]), meet(sequences[0], sequences[2])
    assert wrong is not None
    assert right is not None
    assert len(wrong) > len(right)
    fits = joined_clocks(sequences, range(4), np.arange(4))
    assert fits is not None
    common = [fits[number].times_of(np.array(one.own(STEP_NS))) for number, one in enumerate(ranks)]
    assert max(common) - min(common) < 6_000


@pytest.mark.parametrize(
    ("known", "within_us", "joined"), [((1, 1), 10, True), ((1, 1), 10.001, False), ((1, 0), 0, False)]
)
def test_clocks_are_joined_where_each_is_known_to_ten_microseconds(
    monkeypatch: pytest.MonkeyPatch, known: tuple[int, int], within_us: float, joined: bool
) -> None:
    still = np.zeros(2)
    fits = Fits(still, still, still, np.array([0, within_us * 1_000]), still, np.array(known, dtype=np.bool_))
    monkeypatch.setattr(rendezvous, "fit_clocks", lambda *_: fits)
    rank = sequences_of(np.array([5]), np.array([0]), np.array([0]), 1)
    assert (joined_clocks([rank, rank], (7, 8), np.arange(2)) is not None) is joined


def test_groups_known_by_order_are_told_apart_on_the_clock_of_those_that_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tokens of 0 and 1, and of 2 and 3, end 60 us apart; all four meet in what a communicator names."""
    ranks = []
    for rank in range(4):
        ends = [400 * number + 60 * ((rank > 1) ^ number % 2) + 2 * (rank % 2) for number in range(1, 13)]
        parts = [Part(0, number, end - 200, end) for number, end in enumerate(ends)]
        parts += [Part(1, number, 400 * number + 190, 400 * number + 195) for number in range(1, 13)]
        groups = [Group(GroupSource.ORDER, 5), Group(GroupSource.COMMUNICATOR, 9, 4)]
        ranks.append(shifted(summary_of(rank, parts, groups), 3_000_000 * rank, 20.0 * rank))
    monkeypatch.setattr(together, "by_joints", None)  # which is asked where nothing is named
    matched = put_together(ranks).matched
    members = {tuple(each.tolist()) for each in np.split(matched.place, matched.first[1:-1])}
    assert members == {(0, 1), (2, 3), (0, 1, 2, 3)}
