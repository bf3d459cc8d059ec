"""The whole walk: every rule has its rows and its document, and says something that helps."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from heuristics.rules.rules import rules
from heuristics.run.run import Run
from heuristics.workflow.walk import FIT_BY_RUNNING, RULES, WorkflowRule, walk
from tests.doubles.workflow import Row, log_of, run_with
from tests.doubles.workflow_lists import ROWS as LISTS
from tests.doubles.workflow_phases import FIT, FOLDING, SCALE

ROWS: tuple[Row, ...] = (*FIT, *SCALE, *FOLDING, *LISTS)
NEVER_VIOLATED = {"profile-throughput", "profile-routing-mode"}
"""What a log can only show to be done, and what is right for a benchmark and for a run (W19)."""


def test_every_rule_has_rows_for_what_it_can_say() -> None:
    found = defaultdict(set)
    for row in ROWS:
        found[row.rule].add(row.state)
    needed = {
        rule.id: {"met", "unknown"} | ({"violated"} if rule.id not in NEVER_VIOLATED else set())
        for rule in RULES
        if rule.id not in rules()  # which have rows of their own
    }
    assert {one: states - found[one] for one, states in needed.items() if states - found[one]} == {}


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.id) for rule in RULES])
def test_of_an_unknown_run_no_rule_says_more_than_unknown(rule: WorkflowRule) -> None:
    """A rule that the newest release no longer has is none of an unknown one."""
    gone = rule.id in rules() and rules()[rule.id].until
    assert rule.judge(Run()).state == ("not_applicable" if gone else "unknown")


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_a_violation_has_advice_and_an_unknown_says_what_tells(row: Row) -> None:
    found = row.judged
    assert found.because
    assert bool(found.advice) or found.state != "violated"
    assert bool(found.tells) == (found.state == "unknown")
    assert re.fullmatch(r"(?:MEM|COM|HST|CMP|CFG|ENV)-\d+|", found.fix)


def test_the_walk_says_every_rule_once_in_order() -> None:
    steps = walk(run_with(log=log_of(oom=1)))
    assert [step.id for step in steps] == [rule.id for rule in RULES]
    assert (steps[0].id, steps[0].state) == ("fit-first", "violated")


@pytest.mark.parametrize(
    ("steps", "refused", "state"), [(0, False, "unknown"), (5, False, "met"), (5, True, "unknown")]
)
@pytest.mark.parametrize("rule", sorted(FIT_BY_RUNNING))
def test_w1_a_run_fits_by_evidence_alone_and_never_where_it_is_refused(
    rule: str, steps: int, refused: bool, state: str
) -> None:
    found = {step.id: step.state for step in walk(run_with(log=log_of(steps=steps)), refused)}
    assert found[rule] == state
