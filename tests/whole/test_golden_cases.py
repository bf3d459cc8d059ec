"""Golden cases: a configuration and symptoms in; wall, first fix and what must not be recommended out."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.plan.planned import Planned
from tests.configurations.golden import Case, broken, cases, judgement_of, symptoms_of, wrongs
from tests.doubles.fixes import spelled_as
from tests.doubles.opinions import a_fix
from traces.errors import InputError
from traces.sections.tables import WallId

CASES = cases()
JUDGED = [case for case in CASES if "error" not in case.expected]
FURTHER = 200
"""Numbers from here on are cases of the kind that are no rows of the table."""
RULES = ("fix", "first", "before", "together", "knob", "text")


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: f"{case.number}")
def test_a_golden_case_is_judged_as_its_row_says(case: Case) -> None:
    assert wrongs(case, judgement_of(case)) == []


def test_a_window_without_time_is_an_error_and_no_wall() -> None:
    (case,) = [case for case in CASES if "error" in case.expected]
    with pytest.raises(InputError, match=case.expected["error"]):
        symptoms_of(case)


def test_every_row_of_the_golden_table_is_a_case_and_so_are_the_controls() -> None:
    rows = (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 15, 16, 18, 19, 21, 22, 24, 26, 28, 30, 31, 32, 34, 35, 37, 38)
    more = (39, 41, 43, 44, 46, 47, 48, 49, 50, 51)
    controls = (101, 102, 103)
    assert [case.number for case in CASES if case.number < FURTHER] == [*rows, *more, *controls]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}")
def test_what_a_case_expects_can_be_read(case: Case) -> None:
    said = case.expected
    assert said.get("wall") in (None, *get_args(WallId))
    for rule in said.get("must_not", ()):
        assert rule["because"]
        assert len([kind for kind in RULES if kind in rule]) == 1
        for pattern in ("knob", "text", "unless_knob", "with_knob"):
            re.compile(rule.get(pattern, ""))


def test_a_fix_that_a_case_names_is_in_the_catalogue() -> None:
    named = {
        name
        for case in CASES
        for key in ("first", "accepted", "second")
        for name in case.expected.get(key, ())
    }
    named |= {
        rule[kind]
        for case in CASES
        for rule in case.expected.get("must_not", ())
        for kind in ("fix", "first")
        if kind in rule
    }
    ours = {name for name in named if not name.startswith(("ENV", "CFG", "CAP"))}
    assert ours <= set(CATALOGUE)


def planned(number: str, *lines: str) -> Planned:
    return Planned(a_fix(number, "communication"), spelled_as(megatron_bridge=lines), (), None)


PLAN = [planned("COM-2", "model.a=1", "model.b=2"), planned("COM-1", "model.c=3")]


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"fix": "COM-1"}, True),
        ({"fix": "COM-9"}, False),
        ({"first": "COM-2"}, True),
        ({"first": "COM-1"}, False),
        ({"before": ["COM-2", "COM-1"]}, True),
        ({"before": ["COM-2", "COM-9"]}, True),
        ({"before": ["COM-1", "COM-2"]}, False),
        ({"together": ["COM-1", "COM-2"]}, True),
        ({"together": ["COM-1", "COM-8"]}, False),
        ({"knob": "a=1"}, True),
        ({"knob": "a=1", "of": "COM-1"}, False),
        ({"knob": "a=1", "unless_of": "COM-2"}, False),
        ({"knob": "a=1", "unless_knob": "b="}, False),
        ({"knob": "a=1", "with_knob": "b="}, True),
        ({"knob": "a=1", "with_knob": "c="}, False),
        ({"text": "is slow"}, True),
        ({"text": "is fast"}, False),
    ],
)
def test_what_a_row_forbids_is_seen(rule: dict[str, object], holds: bool) -> None:
    assert broken(rule, PLAN, ["rank 8 is slow"]) is holds
