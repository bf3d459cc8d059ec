"""Edges of a plan: limits at and just below, one of two, and what an exception leaves out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.fixes.change import NO_LINES, Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition, Release
from heuristics.guides.memory_use import Use
from heuristics.plan import refusals
from heuristics.plan.combined import combined_of
from heuristics.plan.gains import Gain, Replayed, acts_on, ceiling_frac, gains_of, of_first_wall, wide_because
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan, Planned, Refused
from heuristics.plan.refusals import room_for, rooms_of
from heuristics.plan.variants import unlocked, upgraded
from heuristics.result.judged import Knobs, NeedState
from heuristics.run.repairs import LateRank
from heuristics.run.run import Run
from heuristics.words import say
from tests.doubles.opinions import a_fix, catalogue_of, costs, paying
from traces.missing import Missing
from traces.replay.changes.change import Change as Edit
from traces.sections.cause import Cause
from traces.sections.tables import WallId
from traces.settings.settings import Framework, Value, settings

GB = 10**9


def ids(plan: Plan) -> list[str]:
    return [one.fix.id for one in plan.fixes]


def kinds_refused(plan: Plan) -> dict[str, str]:
    return {one.fix.id: one.kind for one in plan.refused}


def tensor(number: str = "COM-5", **what: object) -> Fix:
    return a_fix(number, "communication", kinds=("tp",), **what)


def planned(fix: Fix, low: float | None = None, high: float | None = None, *needs: Precondition) -> Planned:
    return Planned(fix, NO_LINES, needs, high, low)


def of_lm(line: str) -> Knobs:
    return Knobs((line,), (), (), (), ())


# what is refused


def test_a_repair_is_not_refused_for_acting_on_little_of_its_wall() -> None:
    stages = a_fix("COM-6", "communication", kinds=("pp_p2p",))
    run = paying("communication", {"ep_dispatch": 96, "pp_p2p": 4})
    late = LateRank(Cause.PIPELINE_IMBALANCE, 0.2, {}, {})
    assert kinds_refused(make_plan(run, ["communication"], catalogue_of(stages))) == {"COM-6": "little"}
    for cause, repairs in ((Cause.PIPELINE_IMBALANCE, ["COM-6"]), (Cause.SLOW_DEVICE, [])):
        one = replace(run, late=replace(late, cause=cause))
        assert ids(make_plan(one, ["communication"], catalogue_of(stages))) == repairs


def test_a_fix_that_wins_what_costs_nothing_saves_nothing_and_says_of_which_kind() -> None:
    run = paying("communication", {"tp": 100})
    plan = make_plan(run, ["communication"], catalogue_of(tensor(wins=("cp",))))
    assert [one.because for one in plan.refused] == [say("plan.saves-nothing", kinds="cp")]
    assert ids(make_plan(run, ["communication"], catalogue_of(tensor(wins=())))) == ["COM-5"]


SET: dict[str, Value] = {"moe_permute_fusion": True}


@pytest.mark.parametrize(
    ("framework", "change", "is_set"),
    [
        *(("megatron_lm", Change(SET), True), ("megatron_bridge", Change(SET), True)),
        *((None, Change(SET), False), ("megatron_lm", Change({"moe_permute_fusion": False}), False)),
        ("megatron_lm", Change({**SET, "env.NCCL_ALGO": "Ring"}), False),
        ("megatron_lm", Change(SET, pytorch=("a line",)), False),
        ("megatron_lm", Change({**SET, "expert_model_parallel_size": "N"}), False),
        ("megatron_lm", Change(how=("by hand",)), False),
        ("megatron_lm", Change(SET, megatron_bridge={"train.manual_gc": True}), True),
        ("megatron_bridge", Change(SET, megatron_bridge={"train.manual_gc": True}), False),
    ],
)
def test_what_a_configuration_says_already_is_no_step(
    framework: Framework | None, change: Change, is_set: bool
) -> None:
    run = replace(paying("communication", {"tp": 100}), settings=settings(SET, "run.sh", framework))
    plan = make_plan(run, ["communication"], catalogue_of(tensor(change=lambda run: change)))
    assert [one.is_set for one in plan.refused] == ([True] if is_set else [])
    assert ids(plan) == ([] if is_set else ["COM-5"])


def test_what_a_run_has_already_lets_no_other_fix_in() -> None:
    run = replace(paying("communication", {"tp": 100}), settings=settings(SET, "run.sh", "megatron_lm"))
    first = tensor("COM-2", change=lambda run: Change(SET))
    waits = tensor("COM-1", advice=lambda run: (Precondition("a flex dispatcher", "unmet", "COM-2"),))
    plan = make_plan(run, ["communication"], catalogue_of(first, waits))
    assert {one.fix.id: one.unlocked_by for one in plan.refused} == {"COM-2": "", "COM-1": ""}


@pytest.mark.parametrize(("never", "then"), [(True, ["COM-1"]), (False, ["COM-2", "COM-1"])])
def test_a_fix_that_only_waits_for_its_turn_goes_where_the_other_is_never_made(
    never: bool, then: list[str]
) -> None:
    turn = Precondition("after COM-2", "unmet", "COM-2", order=True)
    first = tensor("COM-2", advice=lambda run: (Precondition("a rack", "unmet"),) if never else ())
    plan = make_plan(
        paying("communication", {"tp": 100}),
        ["communication"],
        catalogue_of(first, tensor("COM-1", advice=lambda run: (turn,))),
    )
    assert ids(plan) == then


def test_an_upgrade_is_no_help_where_more_is_missing() -> None:
    needs = (
        Precondition("PyTorch >= 2.6", "unmet", release=Release("torch", "2.6.0")),
        Precondition("a flex dispatcher", "unmet"),
    )
    plan = make_plan(
        paying("communication", {"tp": 100}),
        ["communication"],
        catalogue_of(tensor(advice=lambda run: needs)),
    )
    assert [one.because for one in plan.refused] == ["needs: a flex dispatcher"]


@pytest.mark.parametrize(
    ("memory_tight", "with_room", "kept"), [(False, False, False), (False, True, True), (True, False, True)]
)
def test_freeing_memory_is_no_step_where_there_is_room(
    memory_tight: bool, with_room: bool, kept: bool
) -> None:
    run = replace(paying("memory", {"recompute": 100}), given=Given(memory_tight=memory_tight))
    plan = make_plan(run, ["memory"], catalogue_of(a_fix("MEM-3", "memory", with_room=with_room)))
    assert ids(plan) == (["MEM-3"] if kept else [])
    room = say("plan.memory-not-short", room="there is room")
    assert [one.because for one in plan.refused] == ([] if kept else [room])


# room


@pytest.mark.parametrize(
    ("added", "estimated", "fits"),
    [
        (20, False, True),  # at most 23 of 23 free beside 10 of 100
        (20.1, False, False),
        (11.2, True, True),  # at most (67 + 11.2) x 1.15 = 89.93 of 90
        (11.3, True, None),
        (23, True, None),
        (23.1, True, False),  # 90.1 of 90
        (0, False, True),
        (-1, False, True),
    ],
)
def test_a_change_fits_up_to_what_is_left_beside_what_pytorch_does_not_count(
    monkeypatch: pytest.MonkeyPatch, added: float, estimated: bool, fits: bool | None
) -> None:
    monkeypatch.setattr(refusals, "memory_use", lambda run: Use(67 * GB, 100 * GB, estimated))
    monkeypatch.setattr(refusals, "estimated", lambda run: None)
    monkeypatch.setattr(refusals, "delta", lambda now, then: round(added * GB))
    found = room_for(Run(), {})
    assert (found.delta_bytes, found.free_bytes, found.fits) == (round(added * GB), 23 * GB, fits)
    assert estimated or added <= 0 or found.because.endswith(": fits" if fits else ": does not fit")


@pytest.mark.parametrize(("free", "left"), [(0, "none"), (1, "0.000000001 GB")])
def test_what_is_left_is_none_or_counted_and_one_byte_more_is_more(
    monkeypatch: pytest.MonkeyPatch, free: int, left: str
) -> None:
    monkeypatch.setattr(refusals, "memory_use", lambda run: Use(90 - free, 100, False))
    monkeypatch.setattr(refusals, "estimated", lambda run: None)
    monkeypatch.setattr(refusals, "delta", lambda now, then: 1)
    found = room_for(Run(), {})
    assert f"of {left} free" in found.because
    assert found.fits is (free == 1)


def test_only_what_changes_memory_has_a_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "estimated", lambda run: None)
    monkeypatch.setattr(refusals, "delta", lambda now, then: 0)
    plan = Plan((planned(tensor()),), (), (planned(tensor("COM-2")),))
    assert rooms_of(Run(), plan) == {}
    monkeypatch.setattr(refusals, "delta", lambda now, then: GB)
    assert {*rooms_of(Run(), plan)} == {"COM-5", "COM-2"}


# order


def test_the_first_wall_leads_with_what_acts_on_the_largest_family_of_its_kinds() -> None:
    gather, experts = (
        planned(a_fix(number, "communication", kinds=(kind,)), high=0.1)
        for number, kind in (("COM-4", "dp_all_gather"), ("COM-3", "ep_combine"))
    )
    every = [gather, experts]
    run = paying("communication", {"ep_dispatch": 51, "dp_all_gather": 49})
    assert of_first_wall(run, ["communication"], every) == ("COM-3",)
    even = paying("communication", {"ep_dispatch": 50, "dp_all_gather": 50})
    assert of_first_wall(even, ["communication"], every) == ("COM-4",)
    assert of_first_wall(run, ["communication"], [gather]) == ("COM-4",)
    assert of_first_wall(run, ["memory"], every) == of_first_wall(run, [], every) == ()
    little = replace(experts, ceiling_frac=0.0099)
    asked = replace(experts, preconditions=(Precondition("unknown", "unknown", late=True),))
    assert [of_first_wall(run, ["communication"], [gather, one]) for one in (little, asked)] == [
        ("COM-4",)
    ] * 2


def test_only_fixes_of_one_wall_share_its_costs_and_none_that_acts_otherwise() -> None:
    run = paying("communication", {"tp": 100, "cp": 100})
    run = replace(
        run,
        cost_by_kind_ns={**run.cost_by_kind_ns, "memory": {"tp": 100}},
        total_ns={**run.total_ns, "memory": 100},
    )
    every = catalogue_of(
        tensor("COM-5"),
        tensor("COM-2", wins=()),
        tensor("COM-1", wins=("cp",)),
        tensor("COM-4", direct=()),
        a_fix("MEM-3", "memory", kinds=("tp",)),
    )
    shared = {
        one.fix.id: {*one.shares_with} for one in make_plan(run, ["communication", "memory"], every).fixes
    }
    assert shared == {
        "COM-5": {"COM-2"}, "COM-2": {"COM-5", "COM-1"}, "COM-1": {"COM-2"}, "COM-4": set(), "MEM-3": set(),
    }  # fmt: skip


# gains


@pytest.mark.parametrize(
    ("ns", "total", "window", "frac", "ceiling"),
    [
        (50, 100, 1000, None, 0.05), (50, 100, 1000, 0.4, 0.2), (50, 100, 40, None, 1.0),
        (50, 100, 40, 3.0, 1.0), (50, 100, 0, None, None), (0, 0, 1000, 0.4, 0.0),
        (None, None, 1000, 0.4, None),
    ],
)  # fmt: skip
def test_a_ceiling_is_the_part_of_its_wall_and_never_above_the_whole(
    ns: int | None, total: int | None, window: int, frac: float | None, ceiling: float | None
) -> None:
    run = Run(
        cost_by_kind_ns={} if ns is None else {"communication": {"tp": ns, "cp": 0}},
        window_ns=window,
        total_ns={} if total is None else {"communication": total},
        total_frac={} if frac is None else {"communication": frac},
    )
    assert ceiling_frac(run, "communication", ("tp",)) == ceiling


def test_gains_are_parts_of_uneven_windows_and_a_change_of_two_walls_on_one_rank_is_across() -> None:
    one, other = (Edit("a", {"communication": ("tp",)}, 30, 60, None) for _ in range(2))
    both = replace(other, acts_on={"communication": ("tp",), "memory": ()})
    nothing = replace(one, low_ns=0)
    assert gains_of([Replayed(costs(), [nothing], 100)])["a"].low_frac == 0.0
    found = gains_of([Replayed(costs(), [one], 200), Replayed(costs(), [both], 100)])
    assert found == {"a": Gain(0.2, 0.4, None, across=True)}
    assert not gains_of([Replayed(costs(), [one], 200)])["a"].across


@pytest.mark.parametrize(
    ("low", "high", "is_wide"),
    [(0.1, 0.2, True), (0.11, 0.21, False), (0.09, 0.18, False), (None, 0.9, False), (0.1, None, False)],
)
def test_a_range_is_wide_from_twice_its_lower_end_and_a_wall_on(
    low: float | None, high: float | None, is_wide: bool
) -> None:
    said = wide_because(planned(tensor(changes=lambda run: ("other",)), low, high), Run())
    assert said == (say("plan.wide-any") if is_wide else "")
    own = tensor(changes=lambda run: ("other", "batches_in_time"))
    assert wide_because(planned(own, 0.1, 0.3), Run()) == say("plan.wide-batches_in_time")


def test_what_a_fix_acts_on_is_its_kinds_that_cost_something() -> None:
    run = paying("communication", {"tp": 100, "cp": 50, "ep_a2a": 0})
    assert acts_on(planned(tensor(), high=0.1), run) == {"tp": 0.1}
    assert acts_on(planned(a_fix("COM-2", "communication"), high=0.1), run) == {"tp": 0.1, "cp": 0.05}
    assert acts_on(planned(tensor(wins=("ep_a2a", "cp")), high=0.1), run) == {"cp": 0.05}
    assert acts_on(planned(tensor()), run) == {}
    assert acts_on(planned(tensor(acts_on=lambda run: 0.3), high=0.1), run) == {}


def test_pairs_are_of_the_first_five_replayed_and_a_set_of_the_first_three_steps() -> None:
    fixes = [planned(tensor(f"COM-{at}", changes=lambda run: ("a",)), 0.1, 0.1) for at in range(1, 7)]
    ranks = [Replayed(replace(costs(), together=None), [Edit("a", {}, 100, 100, None)], 1000)]
    found = combined_of(fixes, Run(), ranks)
    assert not isinstance(found, Missing)
    assert [len(one.ids) for one in found] == [3] + [2] * 10
    assert found[0].ids == ("COM-1", "COM-2", "COM-3")
    assert {name for one in found for name in one.ids} == {f"COM-{at}" for at in range(1, 6)}
    unreplayed = [replace(fixes[0], low_frac=None), *fixes[1:]]
    later = combined_of(unreplayed, Run(), ranks)
    assert not isinstance(later, Missing)
    assert [len(one.ids) for one in later] == [2] * 10
    assert {name for one in later for name in one.ids} == {f"COM-{at}" for at in range(2, 7)}
    assert combined_of(fixes[:1], Run(), ranks) == ()


def test_a_rank_that_is_not_replayed_together_adds_its_changes_own_savings() -> None:
    fixes = [
        planned(tensor(f"COM-{name}", changes=lambda run, name=name: (name,)), 0.1, 0.02) for name in "ab"
    ]
    edits = [
        Edit(kind, {}, low, high, None) for kind, low, high in (("a", 10, 20), ("b", None, 5), ("c", 7, 9))
    ]
    ranks = [Replayed(replace(costs(), together=None), edits, 1000)]
    (found,) = combined_of(fixes, Run(), ranks)  # type: ignore[misc]
    assert found.gain_frac == (0.01, 0.025)


@pytest.mark.parametrize(
    ("kinds", "waits", "low"),
    [(("tp",), {"tp": 100}, 0.1), (("tp",), {"cp": 100}, 0.2), ((), {"tp": 50, "cp": 50}, 0.1)],
)
def test_a_saving_is_less_only_by_the_waiting_of_its_own_kinds(
    kinds: tuple[str, ...], waits: dict[str, int], low: float
) -> None:
    run = paying("communication", {"tp": 300, "cp": 300})
    run = replace(run, late=LateRank(Cause.SLOW_DEVICE, 0.2, waits, {}))
    fix = a_fix("COM-5", "communication", kinds=kinds, changes=lambda run: ("a",))
    (one,) = make_plan(run, ["communication"], catalogue_of(fix), gains={"a": Gain(0.2, 0.25, None)}).fixes
    assert one.low_frac == pytest.approx(low)


# after an upgrade


def upgrade(*releases: Release, before: Plan, later: Plan, run: Run | None = None) -> Plan:
    needs = tuple(Precondition(str(one), "unmet", release=one) for one in releases)
    wanted = [planned(tensor(), None, None, *needs)]
    return unlocked(run or Run(), "communication", wanted, before, lambda run: later)


def refusing(fix: Fix, kind: str = "needs") -> Plan:
    return Plan((), (Refused(fix, kind, "needs: a release"),), ())  # type: ignore[arg-type]


LATER = Plan((planned(tensor()), planned(tensor("COM-2"))), (), ())


def test_of_several_releases_of_a_package_the_newest_is_the_step_and_each_package_has_one() -> None:
    releases = (Release("te", "2.9.0"), Release("torch", "2.6.0"), Release("te", "2.10.0"))
    found = upgrade(*releases, before=refusing(tensor()), later=LATER)
    assert ids(found) == ["ENV-3", "ENV-1", "COM-5", "COM-2"]
    assert [one.after for one in found.fixes] == [(), (), ("ENV-3", "ENV-1"), ()]
    assert found.releases == (Release("te", "2.10.0"), Release("torch", "2.6.0"))


@pytest.mark.parametrize(("releases", "before", "later"), [
    ((), refusing(tensor()), LATER), ((Release("te", "2.9.0"),), refusing(tensor(), "excluded"), LATER),
    ((Release("te", "2.9.0"),), LATER, LATER),
    ((Release("te", "2.9.0"),), refusing(tensor()), Plan((planned(tensor("COM-2")),), (), ())),
    ((Release("bridge", "0.6.0"),), refusing(tensor()), LATER),
])  # fmt: skip
def test_no_upgrade_is_planned_where_it_is_not_all_that_the_fix_needs(
    releases: tuple[Release, ...], before: Plan, later: Plan
) -> None:
    assert upgrade(*releases, before=before, later=later) == before


def test_a_step_that_the_upgrade_changes_or_drops_comes_after_it() -> None:
    same, other = planned(tensor("COM-2")), replace(planned(tensor("COM-4")), knobs=of_lm("--a"))
    before = replace(refusing(tensor()), fixes=(same, other, planned(tensor("COM-9"))))
    changed = replace(other, knobs=of_lm("--b"))
    later = Plan((changed, planned(tensor()), replace(same, shares_with=("COM-4",))), (), ())
    found = upgrade(Release("te", "2.9.0"), before=before, later=later)
    assert ids(found) == ["COM-2", "ENV-3", "COM-4", "COM-5"]
    assert found.fixes[0].shares_with == ("COM-4",)


@pytest.mark.parametrize(("bridge", "then"), [("0.3.1", "0.6"), (None, None)])
def test_a_bridge_goes_with_its_megatron_core(bridge: str | None, then: str | None) -> None:
    run = Run(given=Given(bridge_version=bridge, torch_version="2.9.0"))
    found = upgraded(run, [Release("core", "0.19.0")]).given
    assert (found.core_version, found.bridge_version, found.torch_version) == ("0.19.0", then, "2.9.0")
    plan = upgrade(Release("core", "0.19.0"), before=refusing(tensor()), later=LATER, run=run)
    assert (" 0.6" in plan.fixes[0].fix.title) == (bridge is not None)


@pytest.mark.parametrize(("first", "then"), [(True, ["HST-1", "HST-2", "COM-2"]), (False, [])])
def test_of_two_that_another_wall_waits_for_both_can_be_made_or_none_is(first: bool, then: list[str]) -> None:
    needs = [Precondition(f"{name} is done", "unmet", name) for name in ("HST-1", "HST-2")]
    missing = () if first else (Precondition("root", "unmet"),)
    aside = (
        a_fix("HST-1", "host_overhead", *missing, aside=True),
        a_fix("HST-2", "host_overhead", aside=True),
    )
    every = catalogue_of(*aside, tensor("COM-2", advice=lambda run: needs))
    assert ids(make_plan(paying("communication", {"tp": 100}), ["communication"], every)) == then


@pytest.mark.parametrize(("state", "kept"), [("unknown", []), ("unmet", []), ("met", ["COM-5"])])
def test_a_need_that_blocks_keeps_a_fix_out_while_it_is_unknown(state: NeedState, kept: list[str]) -> None:
    fix = tensor(advice=lambda run: (Precondition("a flex dispatcher", state, blocks=True),))
    assert ids(make_plan(paying("communication", {"tp": 100}), ["communication"], catalogue_of(fix))) == kept


@pytest.mark.parametrize(
    ("walls", "found"),
    [(["communication", "memory"], ["MEM-3", "ENV-1", "COM-1"]), (["memory", "communication"], ["MEM-3"])],
)
def test_only_the_first_fix_of_the_first_wall_is_worth_an_upgrade(
    walls: list[WallId], found: list[str]
) -> None:
    old = Precondition("PyTorch >= 2.6", "unmet", release=Release("torch", "2.6.0"))
    ready = Precondition("PyTorch >= 2.6", "met")
    waits = a_fix(
        "COM-1", "communication", advice=lambda run: (old if run.given.torch_version == "2.5.1" else ready,)
    )
    plain = paying("communication", {"tp": 100})
    run = replace(
        plain,
        given=Given(torch_version="2.5.1"),
        cost_by_kind_ns={**plain.cost_by_kind_ns, "memory": {"recompute": 100}},
        total_ns={**plain.total_ns, "memory": 100},
    )
    assert ids(make_plan(run, walls, catalogue_of(waits, a_fix("MEM-3", "memory")))) == found
