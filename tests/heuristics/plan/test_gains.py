"""What changes give over several ranks, and what a plan makes of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.plan.gains import Gain, Replayed, gains_of, is_direct
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Planned
from heuristics.run.run import Run
from heuristics.words import say
from tests.doubles.opinions import a_fix, catalogue_of, cost, costs, paying
from traces.replay.changes.change import Change
from traces.sections.tables import WallId

ACTS = {"host_overhead": ("gc",)}


def change(low_ns: int | None, high_ns: int, because: str | None = None) -> Change:
    return Change("collection_at_edges", ACTS, low_ns, high_ns, because)


def planned(
    about: WallId,
    kinds: Mapping[str, int],
    *changes: str,
    gains: Mapping[str, Gain],
    acts_on: tuple[str, ...] = (),
) -> Planned:
    """The only fix of a plan; it makes some changes, of which some were replayed."""
    fix = a_fix(
        {"host_overhead": "HST-2", "compute": "CMP-1"}[about],
        about,
        kinds=acts_on,
        changes=lambda run: changes,
    )
    (one,) = make_plan(paying(about, kinds), [about], catalogue_of(fix), gains=gains).fixes
    return one


# over ranks


def test_a_rank_without_the_change_gives_nothing_or_what_it_acts_on() -> None:
    other = costs(host_overhead=cost(100, {"gc": 60, "python": 40}))
    ranks = [Replayed(costs(), [change(100, 200)], 1_000), Replayed(other, [], 1_000)]
    assert gains_of(ranks)["collection_at_edges"] == Gain(0.05, 0.13, None)


def test_one_rank_without_a_lower_end_leaves_all_without() -> None:
    ranks = [
        Replayed(costs(), [change(100, 200)], 1_000),
        Replayed(costs(), [change(None, 40, "why")], 1_000),
    ]
    assert gains_of(ranks)["collection_at_edges"] == Gain(None, 0.12, "why")


# in a plan


def test_the_ceiling_is_never_above_what_the_fix_acts_on() -> None:
    gain = Gain(0.25, 0.4, None)
    one = planned("host_overhead", {"gc": 200, "python": 100}, "gc", acts_on=("gc",), gains={"gc": gain})
    assert (one.low_frac, one.ceiling_frac) == (0.2, 0.2)


def test_a_change_that_acts_on_two_walls_may_win_more_than_one_of_them_costs() -> None:
    gain = Gain(0.25, 0.4, None, across=True)
    one = planned("compute", {"gemm": 200}, "grouped", gains={"grouped": gain})
    assert (one.low_frac, one.ceiling_frac) == (0.25, 0.4)


@pytest.mark.parametrize(("changes", "gains", "why"), [
    ((), {}, say("plan.not-replayed")), (("gc",), {}, say("plan.not-found")),
    (("gc",), {"gc": Gain(None, 0.2, "nobody says so")}, "nobody says so"),
    (("a", "b"), {"a": Gain(None, 0.2, "first"), "b": Gain(None, 0.2, "second")}, "first"),
])  # fmt: skip
def test_without_a_lower_end_the_plan_says_why(
    changes: tuple[str, ...], gains: Mapping[str, Gain], why: str
) -> None:
    one = planned("host_overhead", {"gc": 300}, *changes, gains=gains)
    assert (one.low_frac, one.low_because) == (None, why)


@pytest.mark.parametrize(
    ("about", "kinds", "direct"),
    [
        ("memory", {"recompute": 60, "offload": 40}, False),
        ("memory", {"allocator": 40, "recompute": 60}, True),
        ("host_overhead", {"gc": 60, "python": 40}, True),
    ],
)
def test_where_memory_is_too_small_its_fixes_are_direct_by_the_allocator_and_others_by_their_share(
    about: WallId, kinds: dict[str, int], direct: bool
) -> None:
    run = paying(about, kinds, does_not_fit=True)
    assert is_direct(run, a_fix("NEW-1", about, kinds=(next(iter(kinds)),))) is direct


# which changes a fix stands for


def test_recompute_is_dropped_where_memory_has_room_and_narrowed_where_not() -> None:
    whole = Observed(recompute_full=True)
    recomputed = CATALOGUE["MEM-2"].changes
    assert recomputed(Run(observed=whole, given=Given(memory_tight=False))) == ("recompute_dropped",)
    assert recomputed(Run(observed=whole, given=Given(memory_tight=True))) == ("recompute_narrowed",)
