"""Memory over the history of a snapshot: the level after each entry, its peak, and what holds that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traces.formats.memory_snapshot import Allocation, DeviceMemory
from traces.measure.memory_snapshot import STACKS, snapshot_of, used_over_entries
from traces.missing import Missing


def held(size_bytes: int, begin: int = -1, end: int | None = None, by: str = "") -> Allocation:
    frames = ((f"/home/someone/torch/optim/{by}.py", "_init_group"),) if by else ()
    return Allocation(size_bytes, size_bytes, frames, begin, end)


EXAMPLE = DeviceMemory(
    device=1,
    reserved_bytes=64,
    segment_count=2,
    allocations=(held(15), held(10, 0, 2, by="adam"), held(5, 1)),
    entry_count=3,
    out_of_memory_count=4,
    peak_reserved_bytes=80,
)
"""The one of the module's docstring: 15 were there before; 10 are taken, 5 are taken, 10 are given back."""


def test_the_level_is_that_before_the_first_entry_and_after_each() -> None:
    assert used_over_entries(EXAMPLE).tolist() == [15, 25, 30, 20]
    (found,) = snapshot_of([EXAMPLE]).devices
    assert (found.device, found.segment_count, found.entries, found.out_of_memory) == (1, 2, 3, 4)
    assert (found.before_recording_bytes, found.used_bytes, found.peak_bytes) == (15, 20, 30)
    assert (found.reserved_bytes, found.unused_reserved_bytes, found.peak_reserved_bytes) == (64, 44, 80)
    assert found.at_peak_bytes == {"before_recording": 15, "optimizer": 10, "unknown": 5}
    assert [(one.category, one.count, one.size_bytes) for one in found.stacks_at_peak] == [
        ("before_recording", 1, 15),
        ("optimizer", 1, 10),
        ("unknown", 1, 5),
    ]
    assert (found.curve.entry, found.curve.used_bytes) == ((0, 1, 2, 3), (15, 25, 30, 20))


@pytest.mark.parametrize(
    ("one", "is_held"),
    [
        (held(1, 1), True),  # taken by the entry that reaches the peak
        (held(1, 2), False),  # by the next
        (held(1, 0, 2), True),  # given back by the next
        (held(1, 0, 1), False),  # given back before
    ],
)
def test_what_is_held_at_the_peak_was_taken_until_then_and_is_given_back_later(
    one: Allocation, is_held: bool
) -> None:
    """100 are there from the second entry to the third, so the peak is after that."""
    (found,) = snapshot_of([replace(EXAMPLE, allocations=(held(100, 1, 2, by="adam"), one))]).devices
    assert sum(stack.size_bytes for stack in found.stacks_at_peak) == 100 + is_held


def test_without_a_history_no_peak_is_known() -> None:
    none = replace(EXAMPLE, allocations=(held(15),), entry_count=0, reserved_bytes=10)
    (found,) = snapshot_of([none]).devices
    assert isinstance(found.peak_bytes, Missing)
    assert found.peak_bytes == found.peak_reserved_bytes == found.at_peak_bytes
    assert (found.used_bytes, found.unused_reserved_bytes) == (15, 0)


def test_of_many_stacks_the_largest_are_listed_and_alike_ones_are_one() -> None:
    most = int(STACKS.value)
    several = tuple(held(10 + place, by=f"f{place}") for place in range(most + 2))
    (found,) = snapshot_of([replace(EXAMPLE, allocations=(*several, held(3, by="f0"), held(1, 0)))]).devices
    assert [one.size_bytes for one in found.stacks_at_peak][:2] == [10 + most + 1, 10 + most]
    assert len(found.stacks_at_peak) == most
    assert (found.stacks_left_out, found.stacks_left_out_bytes) == (3, 11 + 12 + 1)
    again = next(one for one in found.stacks_at_peak if one.size_bytes == 13 and one.count == 2)
    assert again.category == "optimizer"
