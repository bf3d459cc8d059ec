"""Waiting and moving, votes, nodes, pauses and experts: at each limit a case, and one just below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recordings.ranks import ALIKE, US, Part, array, summary_of
from traces.arrays import FloatArray, IntArray
from traces.ranks.charge import _folded, find_by_votes
from traces.ranks.clocks import Aligned, Clocks
from traces.ranks.late import NOTHING, Suspicion
from traces.ranks.match import Matched, match
from traces.ranks.nodes import Across, across, nodes_of, whole_node
from traces.ranks.pauses import Held, by_sum
from traces.ranks.routing import routing_of
from traces.ranks.side_by_side import Alike, Grid
from traces.ranks.summary import UNKNOWN, Group, GroupSource, Operation
from traces.ranks.turns import counted_from_one_step
from traces.ranks.waits import Links, Waits, _are_exchanges, measure_links, measure_waits, slowness
from traces.sections.cause import Cause

ONE_CLOCK = Clocks(True, 0, ())
EVERY = (Alike(ALIKE, (0, 1, 2, 3)),)


def measured(*ranks: Sequence[Part], groups: Sequence[Group] | None = None) -> tuple[Matched, Aligned, Waits]:
    """Ranks of one group of all, or of `groups`, on one clock."""
    several = groups or [Group(GroupSource.COMMUNICATOR, 7, len(ranks))]
    matched = match([summary_of(rank, parts, several) for rank, parts in enumerate(ranks)])
    aligned = Aligned(matched.start_ns, matched.end_ns, ONE_CLOCK)
    return matched, aligned, measure_waits(matched, aligned, all_ranks_seen=True)


def grid_of(steps: int = 4, *, ranks: int = 4, step_us: float = 10_000, **tables: FloatArray) -> Grid:
    names = ("length_ns", "compute_ns", "grouped_ns", "exposed_comm_ns", "host_ns", "loader_ns", "pace_ns")
    usual = {name: np.zeros((ranks, steps)) for name in names} | {
        "length_ns": np.full((ranks, steps), step_us * US)
    }
    return Grid(array([0] * ranks), **usual | tables)


@given(st.integers(3, 9), st.integers(1, 4), st.floats(1, 3))
def test_how_slow_a_link_is_follows_from_what_part_of_all_data_passes_it(
    size: int, behind: int, slow: float
) -> None:
    """Of n ranks k are behind it: the others send k of their n - 1 parts by it, these n - k."""
    if behind * 2 >= size:  # of half all take as long
        return
    of_them, of_others = (1 + (slow - 1) * count / (size - 1) for count in (size - behind, behind))
    seen = of_them / of_others
    found = slowness(np.array([seen]), array([size]), behind)
    assert found == pytest.approx(min(slow, 2 * seen + size))
    assert slowness(np.array([seen]), array([0])) == pytest.approx(seen)
    assert slowness(np.array([2.5]), array([3]), 2) == pytest.approx(2.5)  # all data of these passes it


def test_who_started_last_by_more_than_clocks_and_a_percent_is_the_last() -> None:
    """Of 1 ms a percent is 10 us: who is 10 us longer may be last, who is 11 us longer may not."""
    for longer, last in ((10, 1), (11, 0)):
        _, _, waits = measured([Part(0, 0, 0, 1_000)], [Part(0, 0, 5, 1_005 + longer)])
        assert waits.last.tolist() == [last]


def link_of(transfer_us: Sequence[float], count: int = 6, operation: Operation = Operation.EXCHANGE) -> Links:
    """Four ranks in exchanges that all begin at once and last so long on each."""
    parts = [
        [Part(0, turn, 1_000 * turn, 1_000 * turn + us, operation) for turn in range(count)]
        for us in transfer_us
    ]
    matched, _, waits = measured(*parts)
    return measure_links(matched, waits, EVERY, 4, without=np.zeros(len(matched), dtype=np.bool_))


def test_a_link_is_slow_beside_like_ranks_from_six_transfers_on_that_are_no_latency() -> None:
    links = link_of([20, 20, 40, 20])
    assert links.factor.tolist() == [1, 1, 2, 1]
    assert links.most[2] == pytest.approx(4)  # seen / (2 - seen) of a third each: by the part that passes
    assert links.cost_ns.tolist() == [0, 0, 6 * 20 * US, 0]
    assert np.isnan(link_of([20, 20, 40, 20], count=5).factor).all()
    assert link_of([10, 10, 20, 10]).factor[2] == 2
    assert np.isnan(link_of([9, 9, 20, 9]).factor).all()  # the middle of a kind is below 10 us
    assert np.isnan(link_of([20, 20, 20, 20], operation=Operation.ALL_REDUCE).factor).all()  # one ring of all


def test_instances_are_exchanges_where_each_is_one_of_more_than_two_ranks() -> None:
    rows: Any = SimpleNamespace(
        operation=array([Operation.EXCHANGE, Operation.EXCHANGE, Operation.ALL_REDUCE]),
        sizes=array([3, 2, 4]),
    )
    for which, are in (
        ([True, False, False], True),
        ([True, True, False], False),
        ([True, False, True], False),
    ):
        assert _are_exchanges(rows, np.array(which)) is are


def votes(count: int, *, late: Sequence[int] = (1,), apart_us: float = 500, **spent: float) -> Suspicion:
    """Collectives each 1 ms; in turn one of the ranks is 100 us late, and did so much more before."""
    ranks = []
    for rank in range(3):
        mine = []
        for turn in range(count + 1):
            last = rank == late[turn % len(late)]
            before = {name: 50 + us * last for name, us in spent.items()} if turn else {}
            mine.append(Part(0, turn, apart_us * turn + 100 * last, apart_us * turn + 110, before=before))
        ranks.append(mine)
    return find_by_votes(*measured(*ranks))


def test_without_steps_the_rank_with_most_of_the_waiting_is_named_by_what_it_did_longer() -> None:
    found = votes(12, compute=100)
    assert (found.cause, found.places, found.cost_ns) == (Cause.SLOW_DEVICE, (1,), 12 * 200 * US)
    assert votes(11, compute=100) is NOTHING  # LEAST
    assert votes(12, compute=50).cause is Cause.SLOW_DEVICE  # half of the lateness
    assert votes(12, compute=49) is NOTHING
    assert votes(12, compute=100, grouped=100).cause is Cause.ROUTING_IMBALANCE
    assert votes(12, compute=0, host=100, loader=40).cause is Cause.SLOW_HOST
    assert votes(12, compute=0, host=40, loader=100).cause is Cause.DATA_LOADER
    assert votes(15, late=[1, 1, 1, 0, 2], compute=100).places == (1,)  # MAJORITY: nine of fifteen
    assert votes(12, late=[1, 0], compute=100) is NOTHING
    assert votes(12, apart_us=19_900, compute=100).places == (1,)  # COST: 2.4 ms of 239
    assert votes(12, apart_us=20_000, compute=100) is NOTHING


def test_of_steps_that_share_a_column_the_mean_of_those_known_stands_in_it() -> None:
    table = np.array([[1.0, 3, np.nan, 5, 9], [np.nan, np.nan, 2, 4, np.nan]])
    expected = np.array([[2.0, 5, 9], [np.nan, 3, np.nan]])
    assert np.array_equal(_folded(table, 2), expected, equal_nan=True)
    assert _folded(table, 1) is table


NODES = array([0, 0, 2, 2])


@dataclass
class Case:
    """Two nodes of two ranks: what is seen across them."""

    device: Sequence[float] = (1, 1, 1, 1)
    pace: Sequence[float] = (1, 1, 1, 1)
    host_us: Sequence[float] = (0, 0, 0, 0)
    links: Sequence[float] | None = None
    compute_us: float = 8_000

    def node(self, found: Suspicion) -> Suspicion:
        beside = Across(np.array(self.device), np.array(self.pace), np.array(self.host_us) * US, NODES)
        grid = grid_of(compute_ns=np.full((4, 4), self.compute_us * US))
        links = None
        if self.links is not None:
            links = Links(np.array(self.links), np.array(self.links), np.zeros(4))
        return whole_node(found, beside, grid, links)


LINK = Suspicion(Cause.SLOW_LINK, (2,), 500.0 * US, factor=1.6)
DEVICE, HOST = (Suspicion(cause, (2,), 90.0 * US) for cause in (Cause.SLOW_DEVICE, Cause.SLOW_HOST))
JITTER = Suspicion(Cause.ROTATING_JITTER, (), 90.0 * US, by_step=(2, 3, 2, 3))


@pytest.mark.parametrize(
    ("found", "seen", "cause"),
    [
        (LINK, Case(links=[1, 1, 1.6, 1.3]), Cause.SLOW_LINK),
        (LINK, Case(links=[1, 1, 1.6, 1.29]), None),  # ALIKE: half of what the slowest takes longer
        (LINK, Case(links=[1, 1, 1.2, 1.151]), Cause.SLOW_LINK),
        (LINK, Case(links=[1, 1, 1.2, 1.149]), None),
        (LINK, Case(links=[1, 1.3, 1.6, 1.3]), None),  # and a rank of the other node
        (DEVICE, Case(device=[1, 1, 1.05, 1.04]), Cause.SLOW_DEVICE),
        (DEVICE, Case(device=[1, 1, 1.05, 1.03]), None),
        (DEVICE, Case(device=[1, 1.04, 1.05, 1.04]), None),
        (DEVICE, Case(pace=[1, 1, 1.5, 1.5], host_us=[0, 0, 900, 900]), None),  # that is another cause
        (HOST, Case(pace=[1, 1, 1.25, 1.25], host_us=[0, 0, 100, 90]), Cause.SLOW_HOST),
        (HOST, Case(pace=[1, 1, 1.25, 1.24], host_us=[0, 0, 100, 90]), None),
        (HOST, Case(pace=[1, 1, 1.25, 1.25], host_us=[0, 0, 99, 90]), None),  # COST: a hundredth is 100 us
        (NOTHING, Case(pace=[1, 1, 1.25, 1.25], host_us=[0, 0, 100, 90]), Cause.SLOW_HOST),
        (NOTHING, Case(device=[1, 1, 1.25, 1.25], compute_us=501), Cause.SLOW_DEVICE),  # a fifth of it
        (NOTHING, Case(device=[1, 1, 1.25, 1.25], compute_us=499), None),
        (JITTER, Case(device=[1, 1, 1.25, 1.25]), Cause.SLOW_DEVICE),
        (replace(DEVICE, by_step=(2, -1, 2, -1)), Case(device=[1, 1, 1.25, 1.25]), None),  # one rank at times
    ],
)
def test_a_node_is_named_whole_where_all_its_ranks_are_slow_and_no_others(
    found: Suspicion, seen: Case, cause: Cause | None
) -> None:
    named = seen.node(found)
    if cause is None:
        assert named is found
    else:
        assert (named.cause, named.places, named.is_nic) == (cause, (2, 3), cause is Cause.SLOW_LINK)


def test_of_a_node_is_said_how_slow_it_is_and_what_its_slowest_rank_loses() -> None:
    assert Case(links=[1, 1, 1.6, 1.4]).node(LINK).factor == pytest.approx(1.5)
    slow = Case(device=[1, 1, 1.2, 1.3]).node(DEVICE)
    assert (slow.factor, round(slow.cost_ns)) == (1.25, 1_600 * US)
    host = Case(pace=[1, 1, 2, 3], host_us=[0, 0, 200, 300]).node(HOST)
    assert (host.factor, host.cost_ns) == (2.5, 300 * US)
    assert whole_node(DEVICE, None, grid_of(), None) is DEVICE


def test_ranks_are_held_across_nodes_where_there_are_several_and_by_stage_elsewhere() -> None:
    ranks = [summary_of(rank, [], kernels_us=[10.0 * (1 + (rank == 3))] * 3) for rank in range(4)]
    ranks = [
        replace(each, identity=replace(each.identity, device=place % 2)) for place, each in enumerate(ranks)
    ]
    assert nodes_of(ranks).tolist() == [0, 0, 2, 2]
    unknown = [replace(each, identity=replace(each.identity, rank=None)) for each in ranks[:1]]
    assert nodes_of([*unknown, *ranks[1:]]).tolist() == [0] * 4
    pace = np.full((4, 4), 10.0 * US)
    pace[3], pace[0, 0] = 30.0 * US, np.nan
    host = np.zeros((4, 4))
    host[3] = 8.0 * US
    grid, stages = grid_of(pace_ns=pace, host_ns=host), (Alike(ALIKE, (0, 1)), Alike(ALIKE, (2, 3)))
    found = across(ranks, grid, stages, NODES)
    assert found is not None
    assert (found.device.tolist(), found.pace.tolist()) == ([1, 1, 1, 2], [1, 1, 1, 3])
    assert found.host_ns.tolist() == [0, 0, 0, 8 * US]
    alone = across(ranks, grid, EVERY, NODES)
    assert alone is not None
    assert np.isnan(alone.device).all()  # side by side already
    assert across(ranks, grid, stages, NODES * 0) is across(ranks, grid_of(0), stages, NODES) is None


@dataclass(frozen=True)
class Costing(Held):
    """What pauses cost is given."""

    cost_us: float = 0.0

    def cost_ns(self, pause_ns: IntArray) -> int:
        assert pause_ns.shape == self.matched.place.shape
        return round(self.cost_us * US)


def paused(
    than: Suspicion, pauses_us: Sequence[tuple[int, int, float]], cost_us: float, *, steps: int = 5
) -> Suspicion:
    """Four ranks, ten collectives in each of the steps; of these pauses each is (rank, collective, us)."""
    parts = [[Part(0, turn, 100 * turn, 100 * turn + 10) for turn in range(10 * steps)] for _ in range(4)]
    matched, aligned, _ = measured(*parts)
    table = np.zeros((len(matched), 4), dtype=np.int64)
    for rank, turn, us in pauses_us:
        table[turn, rank] = round(us * US)
    step = np.arange(len(matched)) // 10
    held = Costing([], grid_of(steps), matched, aligned, None, step, cost_us)  # type: ignore[arg-type]
    return by_sum(than, table.ravel(), held)


def spread(count: int, us: float = 200) -> list[tuple[int, int, float]]:
    """One rank after the other, now and then; 20 are one in a step of a rank."""
    return [(turn % 4, 7 * turn % 50, us) for turn in range(count)]


ROTATING = Suspicion(Cause.ROTATING_JITTER, (), 300.0 * US, by_step=(0, 1, 2, 3, 0))


@pytest.mark.parametrize(
    ("pauses", "cost_us", "is_cause"),
    [
        (spread(6), 500, True),  # OFTEN: 0.3 a step of a rank, ODD: a twentieth of 10 ms
        (spread(6), 499, False),
        (spread(5), 699, False),
        (spread(5), 701, True),  # HABIT
        (spread(4), 701, True),  # SELDOM
        (spread(3), 9_999, False),
        (
            [*((1, turn, 200.0) for turn in range(8)), (0, 8, 200.0), (2, 9, 200.0)],
            900,
            True,
        ),  # ONE: 8 of 10
        ([(1, turn, 200.0) for turn in range(9)] + [(2, 9, 200.0)], 900, False),
    ],
)
def test_pauses_are_a_habit_where_they_are_many_and_cost_much_and_no_rank_has_nearly_all(
    pauses: list[tuple[int, int, float]], cost_us: float, is_cause: bool
) -> None:
    found = paused(NOTHING, pauses, cost_us)
    assert found.cause is (Cause.ROTATING_JITTER if is_cause else Cause.NONE)
    assert found.cost_ns == (cost_us * US if is_cause else 0)


def test_what_costs_more_or_is_told_apart_by_other_signs_stays() -> None:
    dear = Suspicion(Cause.SLOW_HOST, (3,), 600.0 * US)
    assert paused(dear, spread(12), 600) is dear
    assert paused(dear, spread(12), 601).cause is Cause.ROTATING_JITTER
    assert paused(dear, [(3, turn, 200.0) for turn in range(20)], 900) is dear  # its own are no others'
    routing = Suspicion(Cause.ROUTING_IMBALANCE, (), 0.0)
    assert paused(routing, spread(12), 900) is routing
    assert paused(NOTHING, [(0, 1, 200.0), (1, 5, 200.0)], 900, steps=1) is NOTHING
    assert paused(ROTATING, spread(12), 700).cost_ns == 700 * US
    assert paused(ROTATING, spread(12), 200) is ROTATING


@pytest.mark.parametrize(
    ("pauses", "cost_us", "stays"),
    [
        (spread(3, 1_000), 999, False),  # TENTH: pauses that any host has
        (spread(3, 1_000), 1_000, True),
        ([*spread(2, 100), (0, 33, 2_500)], 100, True),  # LONG: a stop that none has
        ([*spread(2, 200), (0, 33, 2_499)], 100, True),  # IN_TURN: one rank in each step
        ([(0, 5, 900.0), (1, 6, 900.0), (2, 25, 900.0)], 100, False),  # two in one step
        ([(0, 5, 100.0), (1, 6, 900.0), (2, 25, 900.0)], 100, True),  # 1,800 of 1,900
        (spread(3, 200), 100, True),  # less than half of what it costs in five steps
    ],
)
def test_turns_that_are_few_pauses_are_chance_unless_they_are_long_dear_or_one_a_step(
    pauses: list[tuple[int, int, float]], cost_us: float, stays: bool
) -> None:
    assert (paused(ROTATING, pauses, cost_us) is ROTATING) is stays


def routed(*grouped_us: Sequence[float], operation: Operation = Operation.EXCHANGE, slow: float = 1.0) -> Any:
    """Four ranks with so much expert work before each collective; the last GPU takes so much longer."""
    ranks = [
        [
            Part(
                0,
                turn,
                1_000 * turn,
                1_000 * turn + 10,
                operation,
                before={"compute": 500, "grouped": each[rank]},
            )
            for turn, each in enumerate(grouped_us)
        ]
        for rank in range(4)
    ]
    matched, _, _ = measured(*ranks)
    return routing_of(matched, np.where(matched.place == 3, slow, 1.0), EVERY, 4)


def test_experts_are_uneven_by_the_largest_over_the_mean_and_hot_where_one_has_most_of_it() -> None:
    always = routed([100, 200, 100, 100], [100, 100, 100, 100])
    assert (always.imbalance, always.cost_ns, always.hot) == (1 + 75 / 225, 75 * US, (1,))
    assert always.of_experts.tolist() == [True, True]
    assert routed([200, 100, 100, 100], *[[100, 200, 100, 100]] * 4).hot == (1,)  # HOT: four of five
    assert routed(*[[200, 100, 100, 100]] * 2, *[[100, 200, 100, 100]] * 7).hot == ()
    assert routed([100, 100, 100, 200], slow=2.0).imbalance == 1
    reduced = routed([100, 200, 100, 100], operation=Operation.ALL_REDUCE)
    assert (reduced.imbalance, reduced.hot, reduced.of_experts.tolist()) == (None, (), [False])
    assert routed([100, 200, 100, 0]).imbalance is None  # one did none


def test_numbers_are_counted_from_the_latest_step_in_which_a_group_begins() -> None:
    groups = [Group(GroupSource.COMMUNICATOR, key, 2) for key in (1, 2)]
    parts = [
        *(Part(0, 7 + number, 100 * number, 100 * number + 10, step=number // 2) for number in range(6)),
        *(
            Part(1, 3 + number, 100 * number + 50, 100 * number + 60, step=number // 2)
            for number in range(3, 6)
        ),
    ]
    matched, _, _ = measured(parts, parts, groups=groups)
    step = matched.step[matched.first[:-1]]
    turned = counted_from_one_step(matched, grid_of(3, ranks=2), step)
    assert turned.sequence.tolist() == [-2, -1, 0, 1, 2, 3, 0, 1, 2]
    nowhere = counted_from_one_step(matched, grid_of(3, ranks=2), step * 0 + UNKNOWN)
    assert nowhere is matched is counted_from_one_step(matched, grid_of(0, ranks=2), step)
