"""Who arrives last: read off one collective, without a clock and without a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.recordings.ranks import Part, shifted, summary_of
from traces.missing import Missing
from traces.ranks.run import analyse_run
from traces.ranks.summary import UNKNOWN, Group, GroupSource, Operation, RankSummary
from traces.sections.cause import Sure
from traces.sections.run import ArrivesLast

NODES_MS = ((55.0, 52.0, 63.0), (35.0, 34.8, 35.2), (48.0, 50.0, 61.0))
"""How long the one AllReduce is on each rank of three nodes; the second came last."""


def nine(
    nodes_ms: Sequence[Sequence[float]] = NODES_MS,
    source: GroupSource = GroupSource.ORDER,
    operation: Operation = Operation.ALL_REDUCE,
) -> list[RankSummary]:
    """Nine ranks of three nodes with one collective each, every one by a clock of its own."""
    lasts_us = [1_000 * ms for node in nodes_ms for ms in node]
    count = len(lasts_us)
    size = None if source is GroupSource.ORDER else count
    found = []
    for rank, us in enumerate(lasts_us):
        part = Part(0, 0, 100_000 - us, 100_000, operation, step=UNKNOWN)
        one = summary_of(rank, [part], [Group(source, 7, size)], world_size=count)
        device = replace(one.identity, device=rank % 3)
        found.append(shifted(replace(one, identity=device), 7_000_000 * (rank // 3) + 137 * rank))
    return found


def last_of(summaries: Sequence[RankSummary]) -> ArrivesLast:
    last = analyse_run(summaries).arrives_last
    assert isinstance(last, ArrivesLast)
    return last


@pytest.mark.parametrize("source", [GroupSource.ORDER, GroupSource.COMMUNICATOR, GroupSource.PROCESS_GROUP])
def test_one_collective_shows_the_node_that_arrives_last(source: GroupSource) -> None:
    last = last_of(nine(source=source))
    assert (last.indices, last.host, last.collectives) == ((3, 4, 5), "node 1", 1)
    assert (last.waiting_frac, last.confidence) == (1.0, Sure.LOW)
    assert last.wait_ns == sum(round(1e6 * (ms - 34.8)) for node in NODES_MS for ms in node)
    assert last.by_order is (source is GroupSource.ORDER)


def test_exchanges_that_nothing_pairs_give_nobody() -> None:
    assert isinstance(analyse_run(nine(operation=Operation.EXCHANGE)).arrives_last, Missing)
