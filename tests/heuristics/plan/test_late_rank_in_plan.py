"""A late rank in the plan: its repair first, and no other change is promised what waiting for it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.needs import needed
from heuristics.plan.gains import Gain
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan
from heuristics.run.repairs import FIRST, LateRank, comes_first
from heuristics.run.run import Run
from tests.doubles.opinions import a_fix, catalogue_of, paying
from traces.sections.cause import Cause

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
        (Cause.ROUTING_IMBALANCE, "COM-11"),
        (Cause.PIPELINE_IMBALANCE, "COM-6"),
        (Cause.SLOW_HOST, "HST-1"),
        (Cause.ROTATING_JITTER, "HST-2"),
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
    assert [comes_first(frac) for frac in (None, 0.049, FIRST.value)] == [False, False, True]


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
