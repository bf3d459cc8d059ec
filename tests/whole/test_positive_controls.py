"""What the frameworks' own people run is read whole, is legal, and no plan forbids it."""

from __future__ import annotations

from collections.abc import Iterator

from heuristics.fixes.catalogue import fixes_of
from heuristics.judging.judgement import Judgement
from heuristics.plan.plan import make_plan
from heuristics.result.configured import BrokenRule
from heuristics.run.run import WALL_IDS
from tests.configurations.positive_controls import configured, functional_tests, judged, listed, recipes
from traces.settings.effective import effective
from traces.settings.settings import FileProblem

FORBIDDEN = ("forbidden", "rejected")


def test_functional_tests_are_read_whole_and_legal() -> None:
    seen: set[str] = set()
    unread, illegal = set(), set()
    for control in functional_tests():
        seen.add(control.name)
        read = configured(control)
        unread |= {(control.name, _of(problem)) for problem in read.problems}
        illegal |= {(control.name, one.id) for one in _errors(judged(control, read))}
        assert len(read.settings.by_knob) > 10, control.name
    assert len(seen) > 200
    assert unread == listed("test-unread", seen)
    assert illegal == listed("test-illegal", seen)


def test_recipes_are_read_whole_legal_and_kept_by_every_plan() -> None:
    seen: set[str] = set()
    unread, illegal, forbidden = set(), set(), set()
    for control in recipes():
        seen.add(control.name)
        read = configured(control)
        unread |= {(control.name, _of(problem)) for problem in read.problems}
        found = judged(control, read)
        illegal |= {(control.name, one.id) for one in _errors(found)}
        forbidden |= {(control.name, fix) for fix in _forbidden_though_set(found)}
    assert len(seen) > 400
    assert unread == listed("recipe-unread", seen)
    assert illegal == listed("recipe-illegal", seen)
    assert forbidden == listed("recipe-forbidden", seen)


def _of(problem: FileProblem) -> str:
    """The name that a problem is about."""
    return problem.text.partition(" ")[0].rstrip(":")


def _errors(found: Judgement) -> Iterator[BrokenRule]:
    assert found.from_files is not None
    return (one for one in found.from_files.rules.broken if one.level == "error")


def _forbidden_though_set(found: Judgement) -> Iterator[str]:
    """Fixes that a plan of any one wall forbids, and whose every knob the configuration has so already."""
    run = found.run
    runs_as = effective(run.settings, run.given.core_version)
    for wall in WALL_IDS:
        for refused in make_plan(run, [wall], fixes_of(run.framework)).refused:
            changed = refused.fix.change(run).in_run(run)
            is_set = bool(changed) and all(runs_as.value(knob) == value for knob, value in changed.items())
            if is_set and refused.kind in FORBIDDEN and refused.fix.wall == wall:
                yield refused.fix.id
