"""A profiled step that is much longer than one without the profiler."""

from __future__ import annotations

from heuristics.findings.recorded import perturbed


def test_a_step_a_tenth_longer_still_stands_for_the_run() -> None:
    assert perturbed(0.10) == ()
    assert perturbed(None) == ()


def test_a_step_longer_than_that_is_to_be_recorded_again() -> None:
    (found,) = perturbed(0.177)
    assert (found.id, found.state) == ("CAP-1", "not_representative")
    assert "18 %" in found.text
