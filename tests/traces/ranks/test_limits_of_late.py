"""Who is late, by plain tables: of each limit a case at it, and one just below that is none.

Four ranks of four steps of 10 ms, so that a hundredth is 100 us. Tables give what a rank has beyond the
others, in us of each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.recordings.ranks import ALIKE, US, array
from traces.arrays import FloatArray
from traces.ranks.group_links import SlowGroups
from traces.ranks.late import Suspicion, apart, find_late
from traces.ranks.routing import Routing
from traces.ranks.side_by_side import Alike, Excess, Grid
from traces.ranks.waits import Links
from traces.sections.cause import Cause

Table = Mapping[int, Sequence[float]]
NAN = float("nan")
NO_ROUTING = Routing(None, 0.0, (), np.zeros(0, dtype=np.bool_))


def found(
    *,
    step_us: float = 10_000,
    steps: int = 4,
    factor: Mapping[int, float] | None = None,
    pace: Mapping[int, float] | None = None,
    usual: Mapping[str, float] | None = None,
    links: tuple[int, float, float] | None = None,
    groups: SlowGroups | None = None,
    routing: Routing = NO_ROUTING,
    layers: Sequence[int] = (2,),
    **beyond: Table,
) -> Suspicion:
    """The cause. `beyond`: `dense`, `grouped`, `host` and `loader`; `links`: of one rank its factor, and its
    cost in us; `pace` and `factor` are of some ranks times as long; `layers` of groups of as many ranks each.
    """
    usual_us = {"dense": 8_000.0, "grouped": 0.0, "host": 1_000.0, "loader": 0.0} | dict(usual or {})

    def table(name: str) -> FloatArray:
        result = np.zeros((4, steps))
        for rank, row in beyond.get(name, {}).items():
            result[rank] = row
        return result * US

    more = {name: table(name) for name in usual_us}
    took = {name: more[name] + usual_us[name] * US for name in more}
    paces = np.array([(pace or {}).get(rank, 1.0) for rank in range(4)])
    grid = Grid(
        later=array([0] * 4),
        length_ns=np.full((4, steps), step_us * US),
        compute_ns=took["dense"] + took["grouped"],
        grouped_ns=took["grouped"],
        exposed_comm_ns=np.zeros((4, steps)),
        host_ns=took["host"],
        loader_ns=took["loader"],
        pace_ns=np.repeat(paces[:, np.newaxis] * 10_000, steps, axis=1),
    )
    seen = None
    if links is not None:
        rank, times, cost_us = links
        ones = np.where(np.arange(4) == rank, times, 1.0)
        seen = Links(ones, ones + 1, np.where(ones > 1, cost_us * US, 0.0))
    each = 4 // len(layers)
    alike = [
        Alike(replace(ALIKE, attention=count), tuple(range(each * place, each * (place + 1))))
        for place, count in enumerate(layers)
    ]
    factors = np.array([(factor or {}).get(rank, 1.0) for rank in range(4)])
    excess = Excess(more["dense"], more["grouped"], more["host"], more["loader"])
    return find_late(grid, excess, factors, seen, groups, routing, alike)


def slow_groups(cost_us: float) -> SlowGroups:
    return SlowGroups((0, 1), 1.5, cost_us * US, (7,))


def routed(imbalance: float, cost_us: float = 4_000) -> Routing:
    return Routing(imbalance, cost_us * US, (2,), np.zeros(0, dtype=np.bool_))


def late(us: float, *ranks: str) -> dict[int, list[float]]:
    """So much more of the ranks, in order, in their steps of a 1; a dot is a step that nobody knows."""
    worth = {"0": 0.0, "1": us, ".": NAN}
    return {rank: [worth[step] for step in steps] for rank, steps in enumerate(ranks) if steps}


def host(us: float, *ranks: str) -> dict[str, Any]:
    return {"host": late(us, *ranks)}


def loader(us: float, of_last: str) -> dict[str, Any]:
    return {"loader": late(us, *[of_last.replace("1", "0")] * 3, of_last)}


HOST, LOADER, DEVICE = Cause.SLOW_HOST, Cause.DATA_LOADER, Cause.SLOW_DEVICE
JITTER, LINK, STAGES = Cause.ROTATING_JITTER, Cause.SLOW_LINK, Cause.PIPELINE_IMBALANCE
ROUTING = Cause.ROUTING_IMBALANCE
SECOND = "0000", "1111"
TURNS = "1000", "0100", "0010", "0001"
LAYERS: dict[str, Any] = {"layers": (2, 3), "dense": late(450, *SECOND[:1] * 2, *SECOND[1:] * 2)}
EDGES: list[tuple[str, Cause, tuple[int, ...], dict[str, Any], dict[str, Any]]] = [
    ("COST", HOST, (1,), {"pace": {1: 2}} | host(100, *SECOND), host(99, *SECOND)),
    ("HOST of launches", HOST, (1,), {"pace": {1: 1.25}} | host(200, *SECOND), {"pace": {1: 1.24}}),
    ("HOST of idle time", HOST, (1,), host(250, *SECOND), host(249, *SECOND)),
    ("STEADY of idle time", HOST, (1,), host(900, "", "1110"), host(1_350, "", "1100")),
    ("DEVICE", DEVICE, (2,), {"factor": {2: 1.041}, "dense": late(9, "", "", "1111")}, {"factor": {2: 1.04}}),
    ("DEVICE in most steps", DEVICE, (2,), {"factor": {2: 1.2}, "dense": late(9, "", "", "1110")},
     {"dense": late(9, "", "", "1100")}),
    ("COST of a loader", LOADER, (3,), loader(100, "1111"), loader(99, "1111")),
    ("ODD, seldom", LOADER, (3,), loader(1_000, "1100"), loader(999, "1100")),
    ("MANY", LOADER, (3,), {"steps": 3} | loader(200, "111"), loader(200, "101")),
    ("STEADY of a loader", LOADER, (3,), loader(140, "1011"), {"steps": 5} | loader(180, "10110")),
    ("ONCE", LOADER, (3,), loader(1_800, "0100"), loader(1_799, "0100")),
    ("ONE_LATE", LOADER, (3,), {"steps": 3} | loader(1_500, "010"), loader(1_499, "010")),
    ("ONE_LATE of two", LOADER, (3,), {"steps": 2} | loader(1_500, "10"), loader(1_499, "10")),
    ("ALONE_NS", LOADER, (3,), loader(1_500, "1..."), loader(1_499, "1...")),
    ("ALONE", LOADER, (3,), {"step_us": 20_000} | loader(2_000, "1..."), loader(1_999, "1...")),
    ("IN_EACH", JITTER, (), host(400, *TURNS), host(399, *TURNS)),
    ("ODD of turns", JITTER, (), host(670, *TURNS[:3]), host(660, *TURNS[:3])),
    ("FEW", JITTER, (), host(1_200, *TURNS[:2]), host(1_199, *TURNS[:2])),
    ("LONG", JITTER, (), {"steps": 2, "step_us": 100_000} | host(2_500, "10"), host(2_499, "10")),
    ("STEADY of one rank", JITTER, (), host(999, "1100", "0011"), host(999, "1110", "0001")),
    ("COST of a group", LINK, (0, 1), {"groups": slow_groups(400)}, {"groups": slow_groups(399)}),
    ("LINK", LINK, (2,), {"links": (2, 1.15, 400)}, {"links": (2, 1.14, 400)}),
    ("COST of a link", LINK, (2,), {"links": (2, 1.5, 400)}, {"links": (2, 1.5, 399)}),
    ("UNEVEN", ROUTING, (2,), {"routing": routed(1.15)}, {"routing": routed(1.14)}),
    ("COST of routing", ROUTING, (2,), {"routing": routed(2, 400)}, {"routing": routed(2, 399)}),
    ("STAGE", STAGES, (), LAYERS, {"dense": late(449, *SECOND[:1] * 2, *SECOND[1:] * 2)}),
    ("STAGE of most layers", STAGES, (), LAYERS, {"layers": (3, 2)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "places", "at", "below"), [edge[1:] for edge in EDGES], ids=[edge[0] for edge in EDGES]
)
def test_at_each_limit_there_is_a_cause_and_just_below_there_is_none(
    cause: Cause, places: tuple[int, ...], at: dict[str, Any], below: dict[str, Any]
) -> None:
    suspicion = found(**at)
    assert (suspicion.cause, suspicion.places) == (cause, places)
    assert found(**at | below).cause is Cause.NONE


def test_what_is_said_of_a_cause_is_its_cost_in_a_step_and_how_many_times_as_long() -> None:
    device = found(factor={2: 1.25}, dense=late(2_000, "", "", "1111"))
    assert (round(device.cost_ns), device.factor) == (2_000 * US, 1.25)  # a fifth of 8 ms and 2 ms
    assert (device.place, found(groups=slow_groups(400)).place) == (2, -1)
    slow = found(pace={1: 2}, host=late(300, *SECOND), loader=late(100, *SECOND))
    assert (slow.cause, slow.cost_ns, slow.factor) == (HOST, 400 * US, 2)
    assert (found(**loader(300, "1111")).factor, found(**host(300, *SECOND)).factor) == (1, 1)
    link, groups = found(links=(2, 1.5, 800)), found(groups=slow_groups(800))
    assert (link.cost_ns, link.factor) == (200 * US, 2.5)  # the largest of its kinds
    assert (groups.cost_ns, groups.factor, groups.spared) == (200 * US, 1.5, (7,))
    assert found(routing=routed(2, 800)).cost_ns == 200 * US
    stage = found(**LAYERS)
    assert (stage.group, stage.cost_ns) == (1, 450 * US)
    turns = found(**host(1_000, "1100", "0010"))
    assert (turns.by_step, turns.cost_ns) == ((0, 0, 1, -1), 750 * US)


def test_the_cause_that_costs_the_most_is_the_one() -> None:
    both: dict[str, Any] = host(300, *SECOND) | loader(400, "1111")
    assert found(**both).cause is LOADER
    assert found(**both, groups=slow_groups(1_601)).cause is LINK
    assert found(**both, groups=slow_groups(1_599)).cause is LOADER
    assert found(steps=1, groups=slow_groups(9_999)).cause is Cause.NONE


def test_one_gpu_that_is_slow_in_some_steps_and_in_its_experts_too_is_named_with_these() -> None:
    slow: dict[str, Any] = {"usual": {"grouped": 1_000}, "dense": late(1_600, "", "", "0110")}
    device = found(**slow, grouped=late(200, "", "", "0110"))
    assert (device.cause, device.places, device.by_step) == (DEVICE, (2,), (-1, 2, 2, -1))
    assert (device.cost_ns, device.factor) == (900 * US, 1.2)  # of 9 ms each 1.8
    stops, tokens = (found(**slow, grouped=late(us, "", "", "0110")).cause for us in (50, 900))
    assert DEVICE not in (stops, tokens)  # a stop makes none of its experts longer, and tokens more than that
    shared = late(1_600, "", "", "0110")
    assert found(dense=shared | {1: [1_100, 0, 0, 0]}).cause is JITTER  # of one is less than three quarters
    assert found(dense=shared | {1: [900, 0, 0, 0]}).places == (2,)
    assert found(dense=late(1_600, "", "", "1111")).cause is Cause.NONE  # then its kernels would show it
    assert found(dense=late(200, "", "", "0110")).cause is Cause.NONE  # as much as GPUs differ by


def test_of_loaders_that_are_late_once_each_none_is_named() -> None:
    assert found(loader=late(1_900, "", "", "1000", "0100")).cause is Cause.NONE
    assert found(loader=late(1_900, "", "", "1100", "0100")).places == (2, 3)


@pytest.mark.parametrize(
    ("cost", "may", "places"),
    [
        ([0, 0, 5, 0], [2], (2,)),
        ([0, 5, 5, 0], [1, 2], (1, 2)),
        ([0, 5, 5, 0], [1], ()),
        ([0, 5, 5, 5], [1, 2, 3], ()),  # more than half
        ([0, NAN, 5, 0], [0, 1, 2], (2,)),
        ([0, 0, 3.9, 0], [2], ()),
        ([0, 0, 4, 0], [2], (2,)),
        ([0, 10, 20, 30, 40, 50, 60, 178], range(8), ()),  # 30 and five times 1.4826 times 20 is 178.26
        ([0, 10, 20, 30, 40, 50, 60, 179], range(8), (7,)),
        ([9, 0], [0, 1], (0,)),
        ([9], [0], ()),
        ([0, 0, 9, 9, 40], [2, 3, 4], (4,)),  # of two gaps the widest
    ],
)
def test_the_ranks_that_stand_apart_are_at_most_half_and_far_from_what_the_others_scatter(
    cost: list[float], may: Sequence[int], places: tuple[int, ...]
) -> None:
    which = np.isin(np.arange(len(cost)), list(may))
    assert apart(np.array(cost, dtype=np.float64), which, 4.0) == places
