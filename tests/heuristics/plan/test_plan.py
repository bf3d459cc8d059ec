"""Which fixes are tried, in which order, and why others are not."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise, permutations
from random import Random

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.fixes.precondition import Precondition
from heuristics.judging.judgement import judge_observed
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan
from heuristics.plan.variants import IDS, upgraded
from heuristics.run.run import WALL_IDS
from reports.result.fill.plan import fix as fix_section
from tests.doubles.opinions import a_fix, catalogue_of, paying
from tests.megatron.random_runs import random_run
from traces.missing import Missing
from traces.sections.tables import WallId


def ids(plan: Plan) -> list[str]:
    return [one.fix.id for one in plan.fixes]


def refused_ids(plan: Plan) -> list[str]:
    return [one.fix.id for one in plan.refused]


def refused(plan: Plan) -> dict[str, str]:
    return {one.fix.id: one.because for one in plan.refused}


def waited_for(plan: Plan) -> set[str]:
    """What stands in a plan directly before a fix that waits for it."""
    return {
        first.fix.id
        for first, then in pairwise(plan.fixes)
        if first.fix.id in [one.cure for one in then.preconditions if one.state == "unmet"]
    }


def unmet(text: str, cure: str = "") -> Precondition:
    return Precondition(text, "unmet", cure)


def plan_of(about: WallId, *fixes: str, **needs: Precondition) -> Plan:
    """A plan of fixes that act on all of a wall; `needs` by id with _ for -."""
    made = [
        a_fix(one, about, *[needs[key] for key in needs if key == one.replace("-", "_")]) for one in fixes
    ]
    return make_plan(paying(about, {"all": 100}), [about], catalogue_of(*made))


@pytest.mark.parametrize(
    ("about", "kinds", "first"),
    [
        ("host_overhead", {"gc": 60, "python": 40}, "HST-2"),
        ("host_overhead", {"long_python_pauses": 60, "python": 40}, "HST-2"),
        ("host_overhead", {"cpu_optimizer": 60, "python": 40}, "HST-9"),
        ("memory", {"allocator": 60, "recompute": 40}, "MEM-1"),
        ("memory", {"offload": 60, "recompute": 40}, "MEM-6"),
        ("memory", {"host_resident": 60, "recompute": 40}, "MEM-14"),
        ("memory", {"recompute": 60, "offload": 20, "allocator": 20}, "MEM-2"),
        ("communication", {"dp_reduce_scatter": 30, "dp_all_gather": 30, "ep_dispatch": 40}, "COM-4"),
        ("communication", {"tp": 60, "ep_dispatch": 40}, "COM-5"),
        ("compute", {"no_tensor_cores": 60, "gemm": 40}, "CMP-9"),
        ("compute", {"low_precision_unused": 60, "gemm": 40}, "CMP-9"),
    ],
)
def test_what_acts_on_more_than_half_comes_before_the_general_order(
    about: WallId, kinds: dict[str, int], first: str
) -> None:
    plan = make_plan(paying(about, kinds), [about], CATALOGUE)
    assert ids(plan)[0] == first


def test_exactly_half_is_not_direct() -> None:
    run = paying("host_overhead", {"gc": 50, "python": 50})
    general, direct = a_fix("HST-3", "host_overhead"), a_fix("HST-2", "host_overhead", kinds=("gc",))
    assert ids(make_plan(run, ["host_overhead"], catalogue_of(direct, general))) == ["HST-3", "HST-2"]


def test_a_fix_of_under_a_twentieth_of_the_wall_is_refused_with_its_share() -> None:
    tp = a_fix("COM-5", "communication", kinds=("tp",))
    at, below = (
        make_plan(
            paying("communication", {"tp": ns, "ep_dispatch": 100 - ns}), ["communication"], catalogue_of(tp)
        )
        for ns in (5, 4)
    )
    assert ids(at) == ["COM-5"]
    assert refused(below) == {"COM-5": "what it acts on (tp) is 4.0 % of this wall's cost"}


def test_kinds_that_add_up_to_more_than_the_wall_have_its_cost_as_ceiling() -> None:
    run = replace(paying("communication", {"tp": 150, "cp": 150}), total_ns={"communication": 200})
    both = a_fix("COM-5", "communication", kinds=("tp", "cp"))
    (planned,) = make_plan(run, ["communication"], catalogue_of(both)).fixes
    assert planned.ceiling_frac == 0.2


EXPERTS = {"kinds": ("ep_dispatch", "ep_combine", "ep_a2a", "ep_control")}
PERHAPS = Precondition(
    "the unresolved SendRecv is expert all-to-all",
    "unknown",
    told_by="NVTX ranges of layers, or NCCL's own, identify it",
)


def test_sendrecv_that_may_be_expert_traffic_counts_with_it_and_is_to_be_settled_first() -> None:
    fixes = catalogue_of(
        a_fix("COM-1", "communication", **EXPERTS), a_fix("COM-5", "communication", kinds=("tp",))
    )
    run = paying("communication", {"ep_dispatch": 60, "sendrecv_unresolved": 180, "tp": 60})
    experts, tensor = make_plan(run, ["communication"], fixes).fixes
    assert (experts.fix.id, experts.ceiling_frac, experts.preconditions) == ("COM-1", 0.24, (PERHAPS,))
    assert (tensor.fix.id, tensor.ceiling_frac, tensor.preconditions) == ("COM-5", 0.06, ())


def test_gathers_that_may_be_data_parallel_count_with_it_and_are_to_be_settled_first() -> None:
    fixes = catalogue_of(CATALOGUE["COM-4"], a_fix("COM-5", "communication", kinds=("tp",)))
    plain = paying("communication", {"dp_all_gather": 60, "other_comm": 180, "tp": 60})
    run = replace(plain, observed=Observed(gathers_unresolved=True))
    data, tensor = make_plan(run, ["communication"], fixes).fixes
    assert (data.fix.id, data.ceiling_frac) == ("COM-4", 0.24)
    assert data.preconditions[0].text == "the unresolved gathers and scatters are data parallelism's"
    assert (tensor.fix.id, tensor.ceiling_frac, tensor.preconditions) == ("COM-5", 0.06, ())


def test_an_earlier_fix_meets_what_a_later_one_needs_but_not_the_reverse() -> None:
    after = plan_of("communication", "COM-2", "COM-1", COM_1=unmet("flex dispatches", "COM-2"))
    assert ids(after) == ["COM-2", "COM-1"]
    before = plan_of("communication", "COM-2", "COM-1", COM_2=unmet("overlap runs", "COM-1"))
    assert (ids(before), refused(before)) == (["COM-1"], {"COM-2": "needs: overlap runs"})


def test_a_fix_of_another_wall_that_makes_the_same_change_meets_it_too() -> None:
    flex = a_fix("MEM-5", "memory", same_as="COM-2")
    overlap = a_fix("COM-1", "communication", unmet("flex dispatches", "COM-2"))
    run = paying("memory", {"recompute": 100})
    assert ids(make_plan(run, ["memory", "communication"], catalogue_of(flex, overlap))) == ["MEM-5", "COM-1"]


@pytest.mark.parametrize("says", ["MEM-2", "MEM-9"])
def test_of_two_that_exclude_each_other_the_earlier_stays(says: str) -> None:
    fixes = [
        a_fix(one, "memory", excludes=(other,) if one == says else ())
        for one, other in (("MEM-2", "MEM-9"), ("MEM-9", "MEM-2"))
    ]
    plan = make_plan(paying("memory", {"recompute": 100}), ["memory"], catalogue_of(*fixes))
    assert ids(plan) == ["MEM-2"]
    assert refused(plan) == {"MEM-9": "not in one plan with MEM-2, which comes first"}


def test_what_does_not_act_by_its_walls_handicap_has_no_ceiling_and_an_entry_instead() -> None:
    """Lower precision beside the small grids it does not fill; larger shapes do."""
    run = paying("compute", {"gemm": 200})
    ceilings = {one.fix.id: one.ceiling_frac for one in make_plan(run, ["compute"], CATALOGUE).fixes}
    assert (ceilings["CMP-3"], ceilings["CMP-4"]) == (None, 0.2)
    other = a_fix("CMP-3", "compute", kinds=("gemm",), direct=())
    plan = make_plan(run, ["compute"], catalogue_of(other))
    assert isinstance(fix_section(plan.fixes[0], run).gain_frac, Missing)


@pytest.mark.parametrize("seed", range(20))
def test_every_fix_of_drawn_walls_is_refused_once_or_planned_behind_all_that_it_needs(seed: int) -> None:
    draw = Random(seed)
    one, found = random_run(draw), draw.sample(WALL_IDS, draw.randint(1, 4))
    run = judge_observed(one.evidence, one.given, one.configured).run
    plan = make_plan(run, found, CATALOGUE)
    done: set[str] = set()
    for planned in plan.fixes:
        needed = {one.cure for one in planned.preconditions if one.state == "unmet"}
        assert needed <= done - {""}, f"{planned.fix.id} needs {needed}, after {done}"
        done |= {planned.fix.id, planned.fix.same_as}
    later = upgraded(run, plan.releases)
    assert all(planned.knobs == planned.fix.knobs(later) for planned in plan.fixes)
    for first, other in permutations([planned.fix for planned in plan.fixes], 2):
        assert other.id not in first.excludes
    asked = set(chain.from_iterable(WALL_ORDER[about] for about in found))
    guests = waited_for(plan) - asked
    assert all(CATALOGUE[number].aside for number in guests)
    upgrades = {IDS[one.package] for one in plan.releases}
    assert sorted([*ids(plan), *refused_ids(plan)]) == sorted(asked | guests | upgrades)
    assert all(len(one.because) > 10 for one in plan.refused)
    assert plan.levers == ()


def test_where_one_kind_dominates_a_fix_of_under_a_twentieth_of_the_windows_waits() -> None:
    fixes = catalogue_of(
        a_fix("COM-4", "communication", kinds=("dp",)), a_fix("COM-5", "communication", kinds=("tp",))
    )
    at, below = (
        make_plan(paying("communication", {"dp": 200, "tp": ns}), ["communication"], fixes) for ns in (50, 49)
    )
    assert ids(at) == ["COM-4", "COM-5"]
    assert refused(below) == {"COM-5": "what it acts on (tp) is 4.9 % of the windows"}


BOUND = Precondition("ranks are bound to NUMA nodes", "unmet", "HST-1")
BINDING = a_fix("HST-1", "host_overhead", aside=True)


def test_what_is_put_before_another_walls_fix_is_planned_only_where_that_fix_is() -> None:
    run = paying("communication", {"tp": 200})
    waits = a_fix("COM-2", "communication", BOUND)
    useless = a_fix("COM-2", "communication", BOUND, kinds=("cp",))
    assert ids(make_plan(run, ["communication"], catalogue_of(BINDING, waits))) == ["HST-1", "COM-2"]
    plan = make_plan(run, ["communication"], catalogue_of(BINDING, useless))
    assert (ids(plan), refused_ids(plan)) == ([], ["COM-2"])


def test_what_its_own_wall_refused_and_another_walls_fix_waits_for_is_planned_and_not_refused() -> None:
    binding = a_fix("HST-1", "host_overhead", aside=True, kinds=("launch",))
    waits = a_fix("COM-2", "communication", BOUND)
    run = paying("host_overhead", {"launch": 4, "gc": 96})
    plan = make_plan(run, ["host_overhead", "communication"], catalogue_of(binding, waits))
    assert refused(make_plan(run, ["host_overhead"], catalogue_of(binding))) == {
        "HST-1": "what it acts on (launch) is 4.0 % of this wall's cost"
    }
    assert (ids(plan), refused_ids(plan)) == (["HST-1", "COM-2"], [])
