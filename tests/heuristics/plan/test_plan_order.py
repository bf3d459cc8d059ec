"""The order of a plan: what a replay says of savings, and a late rank's repair first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.change import NO_LINES
from heuristics.fixes.needs import needed
from heuristics.fixes.precondition import Precondition
from heuristics.plan.gains import Gain
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan, Planned, in_paying_order
from heuristics.run.repairs import LateRank, comes_first
from heuristics.run.run import Run
from tests.doubles.opinions import a_fix, catalogue_of, paying
from traces.limits import HALF_A_WALL
from traces.sections.cause import Cause
from traces.sections.tables import WallId


def planned(
    number: str, low: float | None, high: float | None, *waits_for: str, wall: WallId = "host_overhead"
) -> Planned:
    needs = tuple(Precondition(f"{one} is done", "unmet", one) for one in waits_for)
    return Planned(a_fix(number, wall, *needs), NO_LINES, needs, high, low)


SAME = Planned(a_fix("MEM-5", "memory", same_as="COM-2"), NO_LINES, (), 0.006, 0.0)
LITTLE, MAY = planned("A", 0.0, 0.006), planned("B", None, 0.25)
MET = replace(MAY, preconditions=(Precondition("A is done", "met", "A"),))
PERHAPS = replace(
    planned("A", 0.3, 0.4), preconditions=(Precondition("a recipe may have it", "unknown", late=True),)
)
ORDERS: list[tuple[list[Planned], list[str]]] = [
    # what saves more for sure comes first, whatever its wall
    (
        [planned("A", 0.0, 0.4), planned("B", 0.02, 0.5), planned("C", 0.1, 0.12, wall="memory")],
        ["C", "B", "A"],
    ),
    # without a defended saving the order is the workflow's
    ([planned("A", None, 0.2), planned("B", -0.1, 0.3), planned("C", 0.0, 0.3)], ["A", "B", "C"]),
    ([planned("A", None, None), planned("B", None, 0.2)], ["A", "B"]),
    # what gains under a point comes after what may gain more
    ([planned("A", 0.005, 0.006), MAY], ["B", "A"]),
    ([LITTLE, planned("B", None, 0.009)], ["A", "B"]),
    # what another waits for stands before it, or the same change of another wall
    ([LITTLE, planned("B", None, 0.25, "A")], ["A", "B"]),
    ([planned("A", 0.02, 0.1), planned("B", None, 0.2), planned("C", 0.05, 0.2, "B")], ["B", "C", "A"]),
    ([SAME, planned("B", None, 0.25, "COM-2")], ["MEM-5", "B"]),
    ([SAME, planned("B", None, 0.25, "COM-3")], ["B", "MEM-5"]),
    # so does what it stands on, and not what is met already
    ([LITTLE, replace(MAY, after=("A",))], ["A", "B"]),
    ([LITTLE, MET], ["B", "A"]),
    # what a recipe may have comes last, and one per cent is not little
    ([PERHAPS, planned("B", 0.0, 0.0099), planned("C", None, 0.01)], ["C", "B", "A"]),
]


@pytest.mark.parametrize(("fixes", "order"), ORDERS)
def test_the_order_is_by_what_is_saved_for_sure_behind_all_that_a_step_waits_for(
    fixes: list[Planned], order: list[str]
) -> None:
    assert [one.fix.id for one in in_paying_order(fixes, ())] == order


def test_what_is_set_wrongly_comes_before_all_tuning_and_after_what_it_waits_for() -> None:
    fixes = planned("A", None, 0.1), planned("B", None, 0.2, "A"), planned("C", 0.3, 0.4)
    assert [one.fix.id for one in in_paying_order(fixes, ("B",))] == ["A", "B", "C"]


EP = ("ep_dispatch",)
OVERLAP = a_fix("COM-1", "communication", kinds=EP, changes=lambda run: ("overlap",))
BALANCE = a_fix("COM-11", "communication", kinds=EP)
LAYOUT = a_fix("COM-6", "communication", kinds=("pp_p2p",))
BINDING, COLLECTOR = a_fix("HST-1", "host_overhead"), a_fix("HST-2", "host_overhead")
FIXES = catalogue_of(OVERLAP, BALANCE, LAYOUT, BINDING, COLLECTOR)


def waiting(cause: Cause, saved_frac: float | None = 0.2, waits_ns: int = 0) -> Run:
    """Of 1000 ns dispatch costs 300, pipeline exchange 300; so much of the dispatch is waiting."""
    run = paying("communication", {"ep_dispatch": 300, "pp_p2p": 300})
    late = LateRank(cause, saved_frac, {"ep_dispatch": waits_ns} if waits_ns else {}, {"ep_dispatch": 300})
    return replace(run, late=late)


def plan(run: Run, **gains: Gain) -> Plan:
    return make_plan(run, ["communication"], FIXES, gains=gains)


@pytest.mark.parametrize(
    ("cause", "first"),
    [
        *((Cause.ROUTING_IMBALANCE, "COM-11"), (Cause.PIPELINE_IMBALANCE, "COM-6")),
        *((Cause.SLOW_HOST, "HST-1"), (Cause.ROTATING_JITTER, "HST-2")),
    ],
)
def test_each_cause_has_its_own_first_fix(cause: Cause, first: str) -> None:
    assert plan(waiting(cause)).fixes[0].fix.id == first


def test_a_repair_saves_at_most_what_the_run_does_without_its_cause() -> None:
    first = plan(waiting(Cause.SLOW_HOST, 0.2)).fixes[0]
    assert (first.fix.id, first.ceiling_frac, first.low_frac) == ("HST-1", 0.2, None)


def test_a_repair_of_little_does_not_lead() -> None:
    found = [one.fix.id for one in plan(waiting(Cause.SLOW_HOST, 0.03)).fixes]
    assert found[0] != "HST-1"
    assert "HST-1" in found
    assert [comes_first(frac) for frac in (None, 0.049, HALF_A_WALL.value)] == [False, False, True]


def test_a_replayed_saving_of_one_rank_is_less_by_the_waiting_for_the_late_one() -> None:
    replayed = {"overlap": Gain(0.25, 0.3, None)}
    one = next(one for one in plan(waiting(Cause.SLOW_DEVICE, waits_ns=100), **replayed).fixes)
    assert (one.fix.id, one.low_frac) == ("COM-1", 0.15)
    none = next(one for one in plan(waiting(Cause.SLOW_DEVICE, waits_ns=250), **replayed).fixes)
    assert none.low_frac is None
    assert "waiting for a late rank" in none.low_because


def test_a_faster_transfer_waits_for_the_repair_of_the_late_rank() -> None:
    seen = Observed(a2a_waiting_frac=0.8)
    cures = {
        cause: needed("moving", replace(waiting(cause), observed=seen))[0].met_by
        for cause in (Cause.SLOW_DEVICE, Cause.SLOW_HOST, Cause.ROUTING_IMBALANCE)
    }
    assert cures == {
        Cause.SLOW_DEVICE: "the repair of the late rank",
        Cause.SLOW_HOST: "HST-1",
        Cause.ROUTING_IMBALANCE: "COM-11",
    }
    assert needed("moving", Run(observed=seen))[0].met_by == "COM-11"
