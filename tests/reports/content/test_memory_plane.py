"""Memory over time on a plane."""

from __future__ import annotations

from reports.content.analysis.memory_snapshot import memory_plane


def test_each_stretch_is_as_wide_as_the_others_and_as_high_as_its_part_of_the_peak() -> None:
    plane = memory_plane([1_000_000_000, 2_000_000_000], "the recording")
    assert plane.lines == (((0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)),)
    assert plane.up == "memory in use, 2.00 GB at its peak"


def test_a_recording_without_memory_has_an_empty_plane() -> None:
    assert memory_plane([], "the recording").lines == ((),)
