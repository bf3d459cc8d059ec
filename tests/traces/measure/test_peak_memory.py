"""Peak memory: what was recorded of memory in use, or a snapshot tells, and when that is enough."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.simulate.recording import Recording
from tests.places import Export
from tests.recordings.kineto import GEMM, PID, Event, call, on_gpu, write
from tests.recordings.launches import rank_of
from traces.addresses.measure import READ
from traces.formats.memory_snapshot import Allocation, DeviceMemory
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.intervals import spans
from traces.measure.memory import memory_curve, peak_memory
from traces.measure.memory_snapshot import snapshot_of, used_over_entries
from traces.missing import Missing

TABLE = "CUDA_GPU_MEMORY_USAGE_EVENTS"


def recorded(*changes: tuple[int, int, int], kernel_ns: int = 100) -> Recording:
    """Changes (time, address, bytes; negative: given back) of one process, and kernels of 100 ns."""
    recording = Recording()
    for at_ns in (kernel_ns, kernel_ns + 10_000):
        recording.kernel(GEMM, at_ns, at_ns + 100, launch_ns=at_ns - 10)
    for time_ns, address, size in changes:
        recording.memory_use(time_ns, size_bytes=abs(size), address=address, frees=size < 0)
    return recording


def peak(path: Path, *windows: tuple[int, int]) -> int | Missing:
    return peak_memory(rank_of(path), spans(*windows or ((100, 200),)))


def reason(found: int | Missing) -> str:
    assert isinstance(found, Missing)
    return found.reason


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([(100, 200)], 30),  # all of it is held when the window starts
        ([(151, 170)], 25),  # 20 when it starts, then 5 more
        ([(151, 160)], 20),  # a change at the end comes after it
        ([(150, 155)], 20),  # one at the start counts at once
        ([(180, 190)], 25),  # nothing changes
        ([(150, 155), (165, 170)], 25),
        ([(2, 3)], 10),
        ([(0, 1)], 0),
    ],
)
def test_the_peak_is_of_the_windows_and_what_is_held_when_they_start(
    export: Export, windows: list[tuple[int, int]], expected: int
) -> None:
    path = export(recorded((1, 0x10, 10), (3, 0x20, 20), (150, 0x10, -10), (160, 0x30, 5)))
    assert peak(path, *windows) == expected


def test_the_curve_holds_the_most_of_each_stretch(export: Export) -> None:
    """10 from before the windows; 5 more for a tenth of them, which has a tenth of the 200 points."""
    path = export(recorded((20, 1, 10), (1_500, 2, 5), (1_600, 2, -5), kernel_ns=1_000))
    found = memory_curve(rank_of(path), spans((1_000, 1_300), (1_400, 2_000)))
    assert not isinstance(found, Missing)
    assert (found.start_ns, found.at_ns) == (1_000, tuple(range(0, 1_000, 5)))
    assert found.used_bytes == (10,) * 100 + (15,) * 20 + (10,) * 80
    assert max(found.used_bytes) == peak(path, (1_000, 2_000))


def test_a_recording_that_began_late_tells_no_peak(export: Export) -> None:
    """After a kernel; what is given back was never taken, or a second time."""
    given_back = [(1, 0x10, 10), (2, 0x20, -20)], [(1, 0x10, 10), (2, 0x10, -10), (3, 0x10, -10)]
    for place, changes in enumerate(([(100, 0x10, 10)], *given_back)):
        found = peak(export(recorded(*changes), f"{place}.sqlite"))
        assert reason(found) == "the recording began after memory had been allocated"
        assert isinstance(found, Missing)
        assert "from the start of the program" in found.cure


@pytest.mark.parametrize(
    ("kind", "expected"), [(0, 10), (1, 10), (2, 17), (3, 17), (4, 10), (5, 17), (6, 10)]
)
def test_only_the_memory_of_the_gpu_counts(export: Export, kind: int, expected: int) -> None:
    recording = recorded((1, 0x10, 10), (2, 0x20, 7))
    recording.rows[TABLE][1]["memKind"] = kind
    assert peak(export(recording)) == expected


def test_an_address_taken_again_holds_what_was_taken_last(export: Export) -> None:
    assert peak(export(recorded((1, 0x10, 10), (2, 0x10, 4), (3, 0x20, 1)))) == 5


def test_each_process_and_device_has_its_own_memory(export: Export) -> None:
    recording = recorded((1, 0x10, 10))
    for pid, device, size in ((2000, 0, 20), (1000, 1, 40)):
        recording.kernel(GEMM, 100, 200, launch_ns=90, pid=pid, device=device)
        recording.memory_use(2, size_bytes=size, address=0x10, pid=pid, device=device)
    recording.kernel(GEMM, 100, 200, launch_ns=90, pid=2000, device=1)
    ranks = build(read_trace(export(recording))).ranks
    found = {(rank.process, rank.device): peak_memory(rank, spans((100, 200))) for rank in ranks}
    assert [found[key] for key in ((1000, 0), (2000, 0), (1000, 1))] == [10, 20, 40]
    assert reason(found[2000, 1]) == "no memory use of this process on this GPU was recorded"


def test_memory_of_a_pool_is_what_the_pool_holds(export: Export) -> None:
    recording = recorded((1, 0x10, 10), (2, 0x20, 3), (3, 0x30, 3), (4, 0x20, -3))
    for row, size in zip(recording.rows[TABLE][1:], (32, 64, 64), strict=True):
        row |= {"localMemoryPoolAddress": 0x99, "localMemoryPoolSize": size}
    assert peak(export(recording)) == 74


def test_memory_taken_by_cu_mem_create_must_have_left_its_size(export: Export) -> None:
    recording = recorded((1, 0x10, 10))
    recording.call("cuMemCreate", 5, 6, correlation_id=77)
    found = peak(export(recording, "unseen.sqlite"))
    assert reason(found) == "memory was taken with cuMemCreate, and the recording does not have its size"
    recording.memory_use(5, size_bytes=7, address=0x20, correlation_id=77)
    assert peak(export(recording, "seen.sqlite")) == 17
    recording.call("cuMemCreate", 7, 8, correlation_id=78)
    assert reason(peak(export(recording, "one of two.sqlite"))) == reason(found)


def test_clocks_apart_tell_no_peak(export: Export) -> None:
    recording = recorded((1, 0x10, 10))
    recording.rows["CUPTI_ACTIVITY_KIND_KERNEL"][0] |= {"start": -(10**9), "end": 100 - 10**9}
    assert "clocks are apart" in reason(peak(export(recording), (-(10**9), 100 - 10**9)))


def mark(ts: int, reserved: int | None, device: int = 0, kind: int = 1, pid: int = PID) -> Event:
    """The profiler's memory event, as a real trace has it."""
    args = {"Device Type": kind, "Device Id": device, "Addr": 16, "Bytes": 4, "Total Allocated": 4}
    told = args if reserved is None else args | {"Total Reserved": reserved}
    place = {"pid": pid, "tid": pid, "ts": ts}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", **place, "args": told}


def profiled(*marks: Event) -> list[Event]:
    """A kernel from 100 to 200 us, and memory events."""
    return [call("cudaLaunchKernel", 90, 2, 1), on_gpu("kernel", GEMM, 100, 100, 1), *marks]


@pytest.mark.parametrize(
    ("window_us", "expected"),
    [((100, 200), 70), ((100, 150), 50), ((160, 200), 70), ((180, 200), 40), ((10, 60), 50), ((10, 100), 50)],
)
def test_a_total_that_the_profiler_tells_needs_no_beginning(
    tmp_path: Path, window_us: tuple[int, int], expected: int
) -> None:
    marks = [mark(170, 40), mark(50, 50), mark(150, 70), mark(160, 999, kind=0), mark(160, 888, device=1)]
    path = write(tmp_path / "run.json", profiled(*marks))
    assert peak(path, (window_us[0] * 1_000, window_us[1] * 1_000)) == expected


def test_a_window_before_the_first_total_has_none(tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", profiled(mark(150, 70)))
    why = "memory use was recorded only after the first window"
    assert reason(peak(path, (100_000, 150_000), (160_000, 170_000))) == why


def test_marks_without_a_total_of_the_host_or_of_another_kind_are_no_record(tmp_path: Path) -> None:
    others = [mark(50, None), mark(50, 9, kind=0), mark(50, 9) | {"name": "[OutOfMemory]"}]
    path = write(tmp_path / "run.json", profiled(*others))
    assert read_trace(path).memory is None
    assert reason(peak(path)) == "memory use was not recorded"


def test_memory_of_a_trace_of_several_processes_is_of_no_rank(tmp_path: Path) -> None:
    other = call("cudaLaunchKernel", 91, 2, 9) | {"pid": PID + 1}
    path = write(tmp_path / "run.json", [*profiled(mark(50, 50), mark(60, 60, pid=PID + 1)), other])
    assert reason(peak(path)) == "no memory use of this process on this GPU was recorded"


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
    assert [stack.category for stack in found.stacks_at_peak[1:]] == ["unknown"] * is_held


def test_without_a_history_no_peak_is_known() -> None:
    none = replace(EXAMPLE, allocations=(held(15),), entry_count=0, reserved_bytes=10)
    (found,) = snapshot_of([none]).devices
    assert isinstance(found.peak_bytes, Missing)
    assert found.peak_bytes == found.peak_reserved_bytes == found.at_peak_bytes
    assert (found.used_bytes, found.unused_reserved_bytes) == (15, 0)


def test_of_many_stacks_the_largest_are_listed_and_alike_ones_are_one() -> None:
    most = int(READ.value)
    several = tuple(held(10 + place, by=f"f{place}") for place in range(most + 2))
    (found,) = snapshot_of([replace(EXAMPLE, allocations=(*several, held(3, by="f0"), held(1, 0)))]).devices
    assert [one.size_bytes for one in found.stacks_at_peak][:2] == [10 + most + 1, 10 + most]
    assert len(found.stacks_at_peak) == most
    assert (found.stacks_left_out, found.stacks_left_out_bytes) == (3, 11 + 12 + 1)
    again = next(one for one in found.stacks_at_peak if one.size_bytes == 13 and one.count == 2)
    assert again.category == "optimizer"
