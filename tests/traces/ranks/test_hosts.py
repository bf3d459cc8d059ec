"""Which ranks of one recording share a clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.recordings.ranks import MS, Work, shifted, together
from traces.ranks.clocks import share_a_clock, with_own_clocks, with_shared_clocks
from traces.ranks.match import match
from traces.ranks.run import judge
from traces.ranks.summary import Operation, RankSummary


def ranks_of(collectives: int = 40, operation: Operation | None = None) -> list[RankSummary]:
    """Four ranks of one recording, the third with a slow device."""
    works = [[Work(compute=130 if rank == 2 else 100, host=2)] * collectives for rank in range(4)]
    kernels = [[13.0] * 3 if rank == 2 else [10.0] * 3 for rank in range(4)]
    ranks = together(works, per_step=10, kernels_us=kernels)
    if operation is not None:
        ranks = [
            replace(
                one,
                instances=replace(
                    one.instances, operation=np.full(len(one.instances), int(operation), dtype=np.int64)
                ),
            )
            for one in ranks
        ]
    return [of_file(one, process=100 + place) for place, one in enumerate(ranks)]


def of_file(one: RankSummary, process: int) -> RankSummary:
    return replace(one, identity=replace(one.identity, clock=7, process=process))


def clocks(ranks: list[RankSummary]) -> list[int]:
    return [one.identity.clock for one in ranks]


def test_each_process_has_a_clock_and_two_gpus_of_one_process_share_it() -> None:
    ranks = ranks_of()
    assert share_a_clock(ranks)
    assert clocks(with_own_clocks(ranks)) == [0, 1, 2, 3]
    ranks[1] = of_file(ranks[1], process=100)
    assert clocks(with_own_clocks(ranks)) == [0, 0, 1, 2]


@pytest.mark.parametrize("operation", [None, Operation.EXCHANGE])
def test_processes_whose_collectives_contradict_one_clock_have_their_own(operation: Operation | None) -> None:
    ranks = ranks_of(operation=operation)
    ranks[3] = shifted(ranks[3], 500 * MS)
    found = clocks(with_shared_clocks(ranks, match(ranks)))
    assert found[3] not in found[:3]


def test_of_few_collectives_the_clock_of_the_recording_is_believed() -> None:
    """Two ends fit no clock; in one recording none is needed, unless they contradict it."""
    ranks = ranks_of(collectives=2)
    assert judge(ranks).aligned.clocks.aligned
    alone = [
        replace(one, identity=replace(one.identity, clock=50 + place)) for place, one in enumerate(ranks)
    ]
    assert not judge(alone).aligned.clocks.aligned
    ranks[3] = shifted(ranks[3], 500 * MS)
    assert not judge(ranks).aligned.clocks.aligned
