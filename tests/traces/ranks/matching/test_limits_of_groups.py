"""Clocks that meet, groups that are like each other, kernels, stages and experts: each rule at its edge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from heuristics.late.run import _late_exposed_ns
from tests.recordings.ranks import ALIKE, GEMM, US, Part, Work, array, summary_of, together
from traces.missing import Missing
from traces.names.kernels import COMM_KINDS, compute_classes
from traces.ranks.clocks.rendezvous import CoincidingEnds, Sequences, _independent, sequences_of
from traces.ranks.matching.match import match
from traces.ranks.one_run.align import Aligned, Clocks, by_sessions, fits_of, hold
from traces.ranks.one_run.together import put_together
from traces.ranks.replay.even_stages import _rising
from traces.ranks.summaries.summary import (
    UNKNOWN,
    ExpertWork,
    Group,
    GroupSource,
    KernelTimes,
    Operation,
    Peers,
    RankSummary,
)
from traces.ranks.waiting import pipelines
from traces.ranks.waiting.charge import by_kind, charge, complete_frac, exposed_ns
from traces.ranks.waiting.experts import _groups, experts_of
from traces.ranks.waiting.peers import _pairs
from traces.ranks.waiting.pipelines import _by_ends, _by_longest_way, _first_is_last, _vote
from traces.ranks.waiting.routing import Routing
from traces.ranks.waiting.side_by_side import device_factors, grid_of, groups_alike, step_of
from traces.ranks.waiting.waits import measure_waits
from traces.sections.cause import HotRank

ONE_CLOCK = Clocks(True, 0, ())
SEND, SCATTER = Operation.EXCHANGE, Operation.REDUCE_SCATTER


def sequences(steps: int, *each: tuple[Operation, int]) -> Sequences:
    """So many ends of each operation, 1 ms apart, of a stream each."""
    rows = [(number * 1_000_000 + 100_000 * stream, int(operation), stream)
            for stream, (operation, count) in enumerate(each) for number in range(count)]  # fmt: skip
    ends, operations, streams = (array(column) for column in zip(*rows, strict=True))
    return sequences_of(ends, operations, streams, steps)


@pytest.mark.parametrize(
    ("rare", "often", "met", "independent"),
    [
        (4, (SEND, 20), (4, 8), True),  # PART: of messages four tenths
        (4, (SEND, 20), (4, 7), False),
        (4, (SEND, 20), (3, 20), False),  # WHOLE: 3 of 4 are less
        (4, (SCATTER, 20), (4, 17), True),
        (4, (SCATTER, 20), (4, 16), False),
        (6, (SEND, 20), (6, 8), True),  # RICH: three in two steps come once a step
        (7, (SEND, 20), (7, 8), False),  # both come often
        (4, (SEND, 7), (4, 5), True),
        (4, (SEND, 7), (4, 4), False),  # _LEAST
        (2, (SEND, 20), (2, 8), True),
        (1, (SEND, 20), (1, 8), False),  # _SEQUENCE
    ],
)
def test_clocks_meet_where_what_comes_once_a_step_agrees_and_what_comes_often(
    rare: int, often: tuple[Operation, int], met: tuple[int, int], independent: bool
) -> None:
    ranks = sequences(4, (Operation.ALL_REDUCE, rare), often)
    rows = [ranks.of_number[number][:count] for number, count in enumerate(met)]
    both = np.concatenate(rows)
    assert _independent(CoincidingEnds(both, both, ranks.end_ns), ranks, ranks) is independent
    for alone in rows:
        assert not _independent(CoincidingEnds(alone, alone, ranks.end_ns), ranks, ranks)
    more = sequences(4, (Operation.ALL_REDUCE, 7), often)  # comes too often on one of the two
    assert not _independent(CoincidingEnds(both, both, ranks.end_ns), ranks, more)
    assert not _independent(CoincidingEnds(both, both, more.end_ns), more, ranks)


@pytest.mark.parametrize(("steps", "several", "independent"), [(3, 3, True), (2, 3, False), (3, 2, False)])
def test_clocks_meet_where_three_that_come_once_a_step_agree_in_three_steps(
    steps: int, several: int, independent: bool
) -> None:
    kinds = (Operation.ALL_REDUCE, SCATTER, Operation.ALL_GATHER)[:several]
    ranks = sequences(steps, *((operation, steps) for operation in kinds))
    rows = np.arange(several * steps)
    assert _independent(CoincidingEnds(rows, rows, ranks.end_ns), ranks, ranks) is independent


def test_of_what_both_recorded_ends_are_counted_by_the_clock_of_each() -> None:
    """The other began 10 ms later on a clock that is 5 s ahead: of 20 sends 10 are in common."""
    own = sequences(4, (Operation.ALL_REDUCE, 4), (SEND, 20))
    ends = own.end_ns + 5_010_000_000
    other = sequences_of(ends, own.operation, own.number, 4)
    rows = np.concatenate((own.of_number[0], own.of_number[1][:5]))
    assert _independent(CoincidingEnds(rows, rows, own.end_ns + 5_000_000_000), own, other)
    assert not _independent(CoincidingEnds(rows, rows, ends), own, other)


def test_starts_of_sessions_place_recordings_only_where_all_tell_theirs() -> None:
    apart = Clocks(False, None, ())
    ranks = [
        replace(each, identity=replace(each.identity, session_start_ns=ns))
        for each, ns in zip((summary_of(rank, []) for rank in range(2)), (90, 50), strict=True)
    ]
    assert [(one.ranks, one.offset_ns) for one in fits_of(ranks, apart)] == [((0,), -40), ((1,), 0)]
    ranks[1] = replace(ranks[1], identity=replace(ranks[1].identity, session_start_ns=None))
    assert list(fits_of(ranks, apart)) == []


@pytest.mark.parametrize(("off_us", "holds"), [(10, True), (11, False)])
def test_sessions_are_believed_where_what_ends_at_once_does_so_by_them_and_joins_all(
    off_us: int, holds: bool
) -> None:
    """Of three ranks, each begins to record 7 ms later, and the session of one is off."""
    ranks = []
    for rank in range(3):
        ends = [7_000 * rank + end + off_us * (rank == 1) for end in (300, 600, 900, 1_200)]
        parts = [Part(0, at, end - 50, end) for at, end in enumerate(ends)]
        one = summary_of(rank, parts, [Group(GroupSource.ORDER, 9)])
        start_ns = -7_000_000 * rank
        ranks.append(replace(one, identity=replace(one.identity, clock=rank, session_start_ns=start_ns)))
    matched, sessions = match(ranks, by_sessions(ranks)), by_sessions(ranks)
    assert hold(ranks, matched, sessions) is holds
    alone = summary_of(3, [Part(0, 0, 10, 20)], [Group(GroupSource.COMMUNICATOR, 5)])  # which meets nobody
    several = [*ranks, replace(alone, identity=replace(alone.identity, clock=3, session_start_ns=0))]
    sessions = by_sessions(several)
    assert not hold(several, match(several, sessions), sessions)


def kernels(*rows: tuple[int, float, int], key: int = GEMM) -> KernelTimes:
    """Kinds of kernels: fingerprint, median in us, and how many of that length."""
    kinds, medians, counts = zip(*rows, strict=True)
    median_ns, count = array([round(us * US) for us in medians]), array(counts)
    return KernelTimes(array(kinds), median_ns, median_ns * count, array([key] * len(rows)), count)


def factors(several: Sequence[KernelTimes], **how: Any) -> list[float]:
    ranks = [replace(summary_of(rank, []), kernels=each) for rank, each in enumerate(several)]
    return [round(one, 4) for one in device_factors(ranks, groups_alike(ranks), **how).tolist()]


def test_a_gpu_is_as_slow_as_half_of_each_class_by_time_and_what_holds_tokens_tells_nothing() -> None:
    usual = kernels((1, 10, 10), (2, 20, 10))
    slow = kernels((1, 10, 10), (2, 30, 10))  # 30 of 40 us are of a kind that takes half as long again
    assert factors([usual, usual, usual, slow]) == [1, 1, 1, 1.5]
    assert factors([usual, usual, usual, kernels((1, 15, 10), (2, 20, 10))]) == [1, 1, 1, 1]
    tokens = kernels((1, 30, 10), key=compute_classes().index("grouped_gemm"))
    assert np.isnan(factors([tokens] * 4)).all()
    other = KernelTimes.joined(usual, kernels((3, 15, 20), key=compute_classes().index("attention")))
    late = KernelTimes.joined(usual, kernels((3, 30, 20), key=compute_classes().index("attention")))
    assert factors([other, other, other, late]) == [1, 1, 1, 1.5]  # 900 us that would be 300 and 300
    assert factors([other, other, other, late], products=True) == [1, 1, 1, 1]
    assert np.isnan(factors([usual])).all()
    assert factors([usual, usual, usual, kernels((1, 0, 10), (2, 20, 10))]) == [1, 1, 1, 1]  # 0 is no pace


def test_of_fewer_than_four_like_ranks_kernels_are_held_beside_all() -> None:
    """Of three and of two the first are slow: the middle of all others is 10 us, or 11 for the rest."""
    usual, slow = kernels((1, 10, 10)), kernels((1, 12, 10))
    ranks = [replace(summary_of(rank, []), kernels=slow if rank in (0, 3) else usual) for rank in range(5)]
    stages = [
        replace(each, fingerprint=replace(ALIKE, has_loss=place > 2)) for place, each in enumerate(ranks)
    ]
    assert device_factors(stages, groups_alike(stages)).tolist() == [1.2, 10 / 11, 10 / 11, 1.2, 10 / 11]
    alone = [*ranks[:4], replace(ranks[4], fingerprint=replace(ALIKE, has_loss=True))]
    found = device_factors(alone, groups_alike(alone))
    assert found[:4].tolist() == [1.2, 10 / 12, 10 / 12, 1.2]
    assert np.isnan(found[4])


def test_neighbours_in_a_communicator_vote_for_who_is_earlier() -> None:
    votes: dict[tuple[int, int], int] = defaultdict(int)
    _vote(votes, [0, 1], [0, 1])
    _vote(votes, [1, 2, 4], [5, 3, 4])
    assert votes == {(0, 1): 1, (2, 4): 1, (1, 4): -1}
    _vote(votes, [0, 1], [1, 0])  # another communicator contradicts
    _vote(votes, [3, 2], [0, None])
    _vote(votes, [1, 2, 5], [0, None, 1])
    assert votes == {(0, 1): 0, (2, 4): 1, (1, 4): -1, (2, 3): 0}


def test_stages_follow_from_who_sends_to_whom_or_from_their_ends() -> None:
    assert _by_longest_way([(0, 1), (2, 3), (1, 3), (0, 2)]) == {0: 0, 1: 1, 2: 1, 3: 2}
    assert isinstance(_by_longest_way([(0, 1), (1, 2), (2, 0)]), Missing)
    ranks = [summary_of(rank, []) for rank in range(5)]
    assert _by_ends([(1, 0), (2, 1), (3, 4)], ranks) == {0: 0, 1: 1, 2: 2, 3: 0, 4: 1}
    first_has = [replace(ranks[0], fingerprint=replace(ALIKE, has_loss=True)), *ranks[1:]]
    assert _by_ends([(1, 0), (2, 1)], first_has) == {2: 0, 1: 1, 0: 2}
    assert isinstance(_by_ends([(0, 1), (0, 2), (0, 3)], ranks), Missing)  # one of three
    assert isinstance(_by_ends([(0, 1), (1, 2), (2, 0)], ranks), Missing)  # a ring has no end
    nobody = [replace(each, identity=replace(each.identity, rank=None)) for each in ranks]
    assert isinstance(_by_ends([(1, 0)], nobody), Missing)


@pytest.mark.parametrize(("pairs", "vote", "stages"), [
    (((0, 1), (1, 2), (2, 3), (0, 3)), 1, [0, 1, 2, 3]),  # the last sends to the first as well
    (((0, 1), (1, 2), (2, 3), (0, 2)), 1, None), (((0, 1), (2, 3), (3, 4)), 1, None),  # of two lengths
    (((0, 1), (2, 3)), 1, [0, 1, 0, 1, UNKNOWN]), (((0, 1), (1, 2), (2, 0)), 1, None),  # a ring has no first
    (((0, 1), (1, 2), (0, 2)), 1, [0, 1, 2]), (((0, 1), (1, 2), (0, 2)), 0, None),  # nor where nobody tells
])  # fmt: skip
def test_stages_exchange_with_the_next_one_and_the_last_with_the_first(
    monkeypatch: pytest.MonkeyPatch, pairs: Sequence[tuple[int, int]], vote: int, stages: list[int] | None
) -> None:
    monkeypatch.setattr(pipelines, "_votes", lambda *_: dict.fromkeys(pairs, vote))
    named: Any = SimpleNamespace(by_order=np.zeros(1, dtype=np.bool_))
    ranks = [summary_of(rank, []) for rank in range(len(stages or range(5)))]
    found = pipelines.pipelines_of(ranks, named, np.ones(1, dtype=np.bool_))
    assert (None if isinstance(found, Missing) else found.stage.tolist()) == stages


def test_who_exchanges_tokens_is_told_by_the_set_not_by_how_many_its_ends_and_its_sum() -> None:
    both, sets = [Group(GroupSource.COMMUNICATOR, key) for key in (7, 8)], ((0, 1, 4, 5), (0, 2, 3, 5))
    ranks = []
    for rank in range(6):
        took = [(group, n) for group, n in ((0, 0), (0, 1), (0, 2), (1, 0)) if rank in sets[group]]
        ranks.append(summary_of(rank, [Part(group, n, 99 * n, 99 * n + 9) for group, n in took], both))
    matched = match(ranks)
    assert _groups(matched, np.ones(len(matched), dtype=np.bool_)).tolist() == [1, 1, UNKNOWN, UNKNOWN, 1, 1]


def test_the_first_of_two_ends_is_last_by_loss_or_embedding_else_by_its_number() -> None:
    first, second = summary_of(0, []), summary_of(1, [])

    def with_(one: RankSummary, **what: bool) -> RankSummary:
        return replace(one, fingerprint=replace(ALIKE, **what))

    assert [_first_is_last(first, second), _first_is_last(second, first)] == [False, True]
    assert _first_is_last(with_(first, has_loss=True), second) is True
    assert _first_is_last(first, with_(second, has_loss=True)) is False
    assert _first_is_last(first, with_(second, has_embedding=True)) is True
    assert _first_is_last(with_(first, has_embedding=True), with_(second, has_loss=True)) is False
    unknown = replace(second, identity=replace(second.identity, rank=None))
    assert _first_is_last(first, unknown) is None


def ledger(
    work_us: Mapping[tuple[int, int], Sequence[int]], groups: Sequence[Sequence[int]] = ((0, 1), (2, 3))
) -> Any:
    """Four ranks in groups that exchange tokens twice a step; expert work by (step, layer), of each rank."""
    ranks = []
    for rank in range(4):
        (number,) = (place for place, group in enumerate(groups) if rank in group)
        parts = [Part(0, turn, 1_000 * turn, 1_000 * turn + 10, SEND, step=turn // 2) for turn in range(6)]
        steps = [{"start": 2_000 * step, "end": 2_000 * step + 2_000} for step in range(3)]
        one = summary_of(
            rank, parts, [Group(GroupSource.COMMUNICATOR, number, len(groups[number]))], steps=steps
        )
        kind = one.instances.kind * 0 + COMM_KINDS.index("ep_a2a")
        cells = sorted(work_us)
        steps_and_layers = zip(*cells, strict=True)
        work = ExpertWork(*map(array, (*steps_and_layers, [work_us[cell][rank] * US for cell in cells])))
        ranks.append(replace(one, instances=replace(one.instances, kind=kind), experts=work))
    matched = match(ranks)
    routing = Routing(None, 0.0, (), np.zeros(len(matched), dtype=np.bool_))
    return experts_of(ranks, matched, grid_of(ranks, matched), routing, np.array([1, 1, 1, 2.0]))


def test_expert_work_is_held_within_each_group_and_a_slow_gpu_is_no_hot_rank() -> None:
    """The last rank's GPU takes twice as long; the first group loses 100 of 300 us in a mean cell."""
    found = ledger({(0, 0): (300, 100, 100, 200), (1, 0): (300, 100, 100, 200), (0, 5): (100, 100, 150, 100)})
    assert (found.groups, found.layer_count) == (((0, 1), (2, 3)), 2)
    layers = [(one.expert_group, one.layer, one.imbalance, one.hot_index) for one in found.uneven_layers]
    assert layers == [(0, 0, 1.5, 0), (0, 5, 1.0, 0), (1, 0, 1.0, 2), (1, 5, 1.5, 2)]
    worst = found.worst
    assert (worst.expert_group, worst.layer, worst.step, worst.hot_index) == (0, 0, 0, 0)
    assert (worst.imbalance, worst.above_ns, found.pattern) == (1.5, 100 * US, HotRank.SAME_RANK)


@pytest.mark.parametrize(
    ("cells", "pattern"),
    [
        ({(0, 0): (115, 85, 9, 18)}, HotRank.SAME_RANK),  # UNEVEN: 1.15
        ({(0, 0): (114, 86, 9, 18)}, HotRank.EVEN),
        ({(0, 0): (180, 20, 9, 18), (1, 0): (80, 120, 9, 18)}, HotRank.SAME_RANK),  # HOT: 80 of 100
        ({(0, 0): (180, 20, 9, 18), (1, 0): (20, 180, 9, 18), (0, 1): (180, 20, 9, 18)}, HotRank.BY_STEP),
        ({(0, 0): (180, 20, 9, 18), (1, 0): (180, 20, 9, 18), (0, 1): (20, 180, 9, 18)}, HotRank.BY_LAYER),
        ({(0, 0): (140, 60, 9, 18), (1, 0): (90, 110, 9, 18),
          (0, 1): (60, 140, 9, 18), (1, 1): (110, 90, 9, 18)}, HotRank.BY_LAYER),  # again 80 of 100
    ],
)  # fmt: skip
def test_most_of_what_is_uneven_is_one_ranks_or_one_of_each_layer(
    cells: Mapping[tuple[int, int], Sequence[int]], pattern: HotRank
) -> None:
    assert ledger(cells).pattern is pattern


def test_of_one_step_another_rank_by_layer_is_no_pattern() -> None:
    listed = ledger({(0, layer): (200 + layer, 100, 9, 9) for layer in range(70)}).uneven_layers
    assert [one.layer for one in listed] == [*range(6, 70)]  # 64 of 140
    assert isinstance(ledger({(0, 0): (180, 20, 9, 18), (0, 1): (20, 180, 9, 18)}).pattern, Missing)


def test_waiting_is_charged_by_kind_by_step_and_to_who_came_last() -> None:
    """Two steps of two collectives; rank 1 is 40 us late each time, but in the last one rank 0 by 10."""
    late = [(0, 40), (0, 40), (0, 40), (10, 0)]
    works = [[Work(compute=100 + us[rank]) for us in late] for rank in range(2)]
    ranks = together(works, per_step=2)
    matched = match(ranks)
    aligned = Aligned(matched.start_ns, matched.end_ns, ONE_CLOCK)
    waits, grid = measure_waits(matched, aligned), grid_of(ranks, matched)
    charged = charge(matched, waits, grid, step_of(matched, grid))
    assert charged.last.tolist() == [1, 1, 1, 0]
    assert by_kind(matched.kind, waits.wait_ns) == {"all_reduce": 130 * US}
    assert by_kind(array([UNKNOWN, 6, 5]), array([7, 8, 0])) == {"all_reduce": 8}
    assert (exposed_ns(ranks, matched), complete_frac(matched, all_ranks_seen=True)) == (210 * US, 1.0)
    short = replace(matched, groups=(replace(matched.groups[0], size=3),))  # nobody recorded the third
    assert [complete_frac(short, all_ranks_seen=seen) for seen in (False, True)] == [0.0, 1.0]
    run = SimpleNamespace(matched=matched, waits=waits)
    judged: Any = SimpleNamespace(measured=run, of_cause=charged.last == 1)
    assert _late_exposed_ns(judged) == {"all_reduce": 120 * US}
    matched.recorded.rows.exposed_ns[:] = 15 * US  # of 50 us, so that 35 of the 40 waited are under compute
    assert (_late_exposed_ns(judged), exposed_ns(ranks, matched)) == ({"all_reduce": 15 * US}, 120 * US)


def test_kinds_that_come_with_layers_are_told_from_what_every_stage_has() -> None:
    """Stages of 1, 3 and 2 layers: kind 0 once a layer, kind 1 once a stage, kind 2 between two layers."""
    layers, apart = array([1, 3, 2]), np.array([-1.0, 1.0, 0.0])
    place, kind = array([0, 1, 1, 1, 2, 2, 0, 1, 2, 1, 1, 2]), array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
    rising, shared = _rising(place, kind, layers, apart)
    assert (rising.tolist(), shared.tolist()) == ([True, False, True], [True, True, False])


def test_ranks_come_in_the_order_of_their_numbers_else_of_their_places_in_the_largest_communicator() -> None:
    def placed(name: str, *owns: tuple[int, int, int]) -> RankSummary:
        groups = tuple(Group(GroupSource.COMMUNICATOR, key, size, own=own) for key, size, own in owns)
        one = summary_of(ord(name), [])
        return replace(one, groups=groups, identity=replace(one.identity, rank=None, trace=name))

    ranks = [placed("a", (7, 4, 2), (8, 2, 0)), placed("b", (7, 4, 1), (8, 2, 1)), placed("c", (9, 4, 0))]
    numbered = replace(summary_of(5, []), groups=(Group(GroupSource.COMMUNICATOR, 7, 4),))
    assert put_together([*ranks, numbered]).indices[:3] == (3, 1, 0)


def test_bytes_to_a_peer_are_of_a_step_without_a_longer_first_one() -> None:
    def sends(rank: int, size: int, peer: int, kind: int = 0) -> RankSummary:
        columns = [[UNKNOWN, kind], [7, 7], [rank, rank], [peer, peer], [size, size], [0, 0]]
        return replace(summary_of(rank, []), peers=Peers(*map(array, columns)))

    ranks = [sends(0, 90, 1), sends(1, 80, 0, 2), sends(2, 70, 2), sends(UNKNOWN, 60, 0), sends(4, 0, 0)]
    found = [(one.sender, one.receiver, one.size_bytes) for one in _pairs(ranks, array([3, 2, 1, 1, 1]))]
    assert found == [(3, 0, 60), (1, 0, 40), (0, 1, 30)]
    ring = [sends(rank, 10 + rank, (rank + 1) % 40) for rank in range(40)]
    assert [one.sender for one in _pairs(ring, array([1] * 40))] == [*range(39, 7, -1)]
