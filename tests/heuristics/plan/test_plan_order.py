"""What a replay says of fixes' savings puts them in another order than the workflow's."""

from __future__ import annotations

from dataclasses import replace

from heuristics.fixes.change import NO_LINES
from heuristics.fixes.precondition import Precondition
from heuristics.plan.planned import Planned, in_paying_order
from tests.doubles.opinions import a_fix
from traces.sections.tables import WallId


def planned(
    number: str, low: float | None, high: float | None, *waits_for: str, wall: WallId = "host_overhead"
) -> Planned:
    needs = tuple(Precondition(f"{one} is done", "unmet", one) for one in waits_for)
    return Planned(a_fix(number, wall, *needs), NO_LINES, needs, high, low)


def order(*fixes: Planned, first: tuple[str, ...] = ()) -> list[str]:
    return [one.fix.id for one in in_paying_order(fixes, first)]


def test_what_saves_more_for_sure_comes_first_whatever_its_wall() -> None:
    some, more = planned("A", 0.0, 0.4), planned("B", 0.02, 0.5)
    most = planned("C", 0.1, 0.12, wall="memory")
    assert order(some, more, most) == ["C", "B", "A"]


def test_without_a_defended_saving_the_order_is_the_workflows() -> None:
    assert order(planned("A", None, 0.2), planned("B", -0.1, 0.3), planned("C", 0.0, 0.3)) == ["A", "B", "C"]
    assert order(planned("A", None, None), planned("B", None, 0.2)) == ["A", "B"]


def test_what_gains_under_a_point_comes_after_what_may_gain_more() -> None:
    assert order(planned("A", 0.005, 0.006), planned("B", None, 0.25)) == ["B", "A"]
    assert order(planned("A", 0.0, 0.006), planned("B", None, 0.009)) == ["A", "B"]


def test_what_another_waits_for_stands_before_it() -> None:
    assert order(planned("A", 0.0, 0.006), planned("B", None, 0.25, "A")) == ["A", "B"]
    others = planned("A", 0.02, 0.1), planned("B", None, 0.2), planned("C", 0.05, 0.2, "B")
    assert order(*others) == ["B", "C", "A"]


def test_what_is_set_wrongly_comes_before_all_tuning_and_after_what_it_waits_for() -> None:
    fixes = planned("A", None, 0.1), planned("B", None, 0.2, "A"), planned("C", 0.3, 0.4)
    assert order(*fixes, first=("B",)) == ["A", "B", "C"]


def test_what_another_waits_for_is_met_by_the_same_change_of_another_wall() -> None:
    same = Planned(a_fix("MEM-5", "memory", same_as="COM-2"), NO_LINES, (), 0.006, 0.0)
    assert order(same, planned("B", None, 0.25, "COM-2")) == ["MEM-5", "B"]
    assert order(same, planned("B", None, 0.25, "COM-3")) == ["B", "MEM-5"]


def test_what_stands_on_another_stands_behind_it_and_what_is_met_already_does_not() -> None:
    little = planned("A", 0.0, 0.006)
    assert order(little, replace(planned("B", None, 0.25), after=("A",))) == ["A", "B"]
    met = Precondition("A is done", "met", "A")
    assert order(little, replace(planned("B", None, 0.25), preconditions=(met,))) == ["B", "A"]


def test_what_a_recipe_may_have_comes_last_and_one_per_cent_is_not_little() -> None:
    late = Precondition("a recipe may have it", "unknown", late=True)
    first = replace(planned("A", 0.3, 0.4), preconditions=(late,))
    assert order(first, planned("B", 0.0, 0.0099), planned("C", None, 0.01)) == ["C", "B", "A"]
