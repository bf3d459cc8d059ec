"""What a replay says of fixes' gains puts them in another order than the workflow's."""

from __future__ import annotations

from heuristics.fixes.fix import Knobs, Precondition
from heuristics.plan import Planned
from heuristics.plan_order import by_gain
from tests.opinions_doubles import a_fix


def planned(number: str, low: float | None, high: float | None, *waits_for: str) -> Planned:
    needs = tuple(Precondition(f"{one} is done", "unmet", one) for one in waits_for)
    return Planned(a_fix(number, "host_overhead", *needs), Knobs(), needs, high, low)


def order(*fixes: Planned) -> list[str]:
    return [one.fix.id for one in by_gain(fixes)]


def test_what_gains_less_for_sure_comes_after_what_gains_more() -> None:
    assert order(planned("A", 0.01, 0.02), planned("B", 0.03, 0.2)) == ["B", "A"]


def test_what_may_gain_as_much_keeps_its_place() -> None:
    assert order(planned("A", 0.0, 0.2), planned("B", 0.1, 0.3)) == ["A", "B"]
    assert order(planned("A", 0.01, 0.02), planned("B", None, 0.2)) == ["A", "B"]


def test_what_gains_under_a_point_comes_after_what_may_gain_more() -> None:
    assert order(planned("A", 0.0, 0.006), planned("B", None, 0.25)) == ["B", "A"]
    assert order(planned("A", 0.0, 0.006), planned("B", None, 0.009)) == ["A", "B"]


def test_what_another_waits_for_stays_before_it() -> None:
    assert order(planned("A", 0.0, 0.006), planned("B", None, 0.25, "A")) == ["A", "B"]


def test_where_no_gain_is_known_the_order_is_the_workflows() -> None:
    assert order(planned("A", None, None), planned("B", 0.1, 0.2)) == ["A", "B"]
