"""A profiled step that is much longer than one without the profiler."""

from heuristics.findings.contradictions import find_contradictions
from heuristics.run.run import Run


def test_a_step_a_tenth_longer_still_stands_for_the_run() -> None:
    assert find_contradictions(Run(), perturbation_frac=0.10) == ()
    assert find_contradictions(Run()) == ()


def test_a_step_longer_than_that_is_to_be_recorded_again() -> None:
    (found,) = find_contradictions(Run(), perturbation_frac=0.177)
    assert (found.id, found.state) == ("CAP-1", "not_representative")
    assert "18 %" in found.text
