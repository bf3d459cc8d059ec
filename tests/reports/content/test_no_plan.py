"""What stands where a plan would, when none can be made."""

from __future__ import annotations

from heuristics.result.judged import Refused, Verdict
from heuristics.result.result import Result
from reports.content.analysis.plan import plan
from reports.content.check_workflow import workflow_rules
from tests.doubles.result import double


def test_an_option_that_does_not_exist_here_is_not_named_as_the_reason() -> None:
    wall = double(Verdict, wall="memory")
    segments = double(Refused, id="MEM-1", because="needs: another GPU", kind="absent")
    cache = double(Refused, id="MEM-18", because="needs: frees beside the cache", kind="needs")
    both = double(Result, verdict=wall, refused=(segments, cache))
    assert "2 known changes were refused; MEM-18: needs: frees beside the cache." in str(plan(both))
    alone = str(plan(double(Result, verdict=wall, refused=(segments,))))
    assert "No change fits: 1 known change was refused." in alone
    assert "MEM-1" not in alone


def test_rules_that_wait_for_nothing_name_no_missing_input() -> None:
    assert not [*workflow_rules(double(Result, workflow=(), rules=None))]
