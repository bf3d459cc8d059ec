"""Clocks of ranks that only the order of their collectives tells of: a pipeline of equal periods."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
import pytest

from traces.ranks.clocks import rendezvous
from traces.ranks.clocks.clock_fit import Fits
from traces.ranks.clocks.rendezvous import Sequences, joined_clocks, sequences_of
from traces.ranks.summaries.summary import Operation

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
