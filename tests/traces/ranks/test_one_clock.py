"""The clocks of several ranks put together, and what is not said where they cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.recordings.ranks import US, Part, Work, many, shifted, summary_of, together
from traces.ranks import clocks
from traces.ranks.clocks import align
from traces.ranks.contradicted import agreed
from traces.ranks.match import match
from traces.ranks.summary import Group, GroupSource, Operation, RankSummary

S = 1_000_000_000


def ranks_of(count: int = 3, collectives: int = 60, late_us: float = 0.0) -> list[RankSummary]:
    """Ranks whose work differs from collective to collective; the last one's kernels take longer."""
    works = [
        [
            Work(compute=900 + 7 * ((number * (rank + 3)) % 11) + late_us * (rank == count - 1))
            for number in range(collectives)
        ]
        for rank in range(count)
    ]
    slow = [[10.0 * (1 + late_us / 900 * (rank == count - 1))] * 3 for rank in range(count)]
    return together(works, per_step=20, kernels_us=slow)


def test_few_collectives_in_common_make_no_clock() -> None:
    aligned = align(ranks := ranks_of(collectives=2), match(ranks))
    assert not aligned.clocks.aligned
    assert aligned.clocks.missing is not None
    assert "too few" in aligned.clocks.missing.reason


def test_of_many_collectives_some_give_the_same_clocks_and_the_few_that_join_groups_all_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranks = [  # two groups of four, with 600 collectives each and five in common
        shifted(one, 7 * place * S, 9.0 * place)
        for place, one in enumerate(many(8, group_size=4, step_count=5, per_step=120, late=3))
    ]
    matched = match(ranks)
    some = align(ranks, matched)
    monkeypatch.setattr(clocks, "MOST_ENDS", replace(clocks.MOST_ENDS, value=1 << 40))
    every = align(ranks, matched)
    assert some.clocks.aligned
    assert every.clocks.aligned
    assert np.abs(some.start_ns - every.start_ns).max() <= 20


def test_clocks_that_hold_together_by_kinds_that_contradict_them_are_not_one() -> None:
    """Two pairs meet a hundred times each, and all four ten times; most of the ten contradict."""
    times = [(0, number, 100.0 * number) for number in range(100)]
    times += [(1, number, 100.0 * (10 * number) + 50) for number in range(10)]
    ranks = []
    for rank in range(4):
        groups = [Group(GroupSource.COMMUNICATOR, rank // 2, 2), Group(GroupSource.COMMUNICATOR, 9, 4)]
        kinds = [Operation.ALL_REDUCE, Operation.ALL_GATHER]
        some = [Part(group, number, at, at + 20, kinds[group]) for group, number, at in times]
        ranks.append(summary_of(rank, some, groups))
    matched = match(ranks)
    aligned = align(ranks, matched)
    assert aligned.clocks.aligned
    of_all = np.flatnonzero(matched.sizes == 4)
    for contradict, holds in ((1, True), (8, False)):
        possible = np.ones(len(matched), dtype=np.bool_)
        possible[of_all[:contradict]] = False
        assert agreed(ranks, matched, aligned, possible).clocks.aligned is holds


def test_three_reductions_counted_from_another_step_weigh_less_than_messages_that_agree() -> None:
    """Two nodes of two ranks; the second's windows begin a step later, so that its reductions are counted so.

    Each node has one clock. Many ranks of a clock take part in a reduction, and it is one end all the same.
    """
    step_us = 1000.0
    ranks = []
    for rank in range(4):
        later = step_us * (rank // 2)
        parts = [
            Part(0, number, step_us * number + later, step_us * number + later + 20) for number in range(3)
        ]
        groups = [Group(GroupSource.COMMUNICATOR, 9, 4)]
        if rank in (1, 2):
            groups.append(Group(GroupSource.COMMUNICATOR, 5, 2, own=rank - 1))
            times = [(number, 300.0 * number + 50) for number in range(12)]
            parts += [Part(1, number, at, at + 20, Operation.EXCHANGE) for number, at in times]
        ranks.append(summary_of(rank, parts, groups))
    for place, rank_of_node in enumerate(ranks):
        object.__setattr__(rank_of_node.identity, "clock", place // 2)
    found = align(ranks, match(ranks)).clocks
    assert found.aligned
    assert all(abs(fit.offset_ns) < US for fit in found.fits)
