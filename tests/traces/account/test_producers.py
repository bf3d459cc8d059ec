"""Producers where no event was recorded: who was told to wait, and for what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from bench.simulate.recording import Recording
from traces.account.clocks import clock_offset_ns
from traces.account.inferred import stream_waits
from traces.account.producers import find_producers, pending
from traces.formats.open import read_trace
from traces.timeline import RankTimeline, build

Export = Callable[..., Path]
US = 1_000
WAIT = "cudaStreamWaitEvent_v3020"
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
REDUCE = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
STEPS = 30


def rank_of(path: Path) -> RankTimeline:
    (rank,) = build(read_trace(path)).ranks
    return rank


def steps(*waits_us: int, other: bool = False) -> Recording:
    """In each step a GEMM, a SendRecv on stream 20, and a norm that begins 2 us after the SendRecv ended.

    `waits_us`: when in the step a stream is told to wait; the launches are at 0, 4 and 8. `other`: a
    reduction on stream 24 as well, launched at 2, long done when the norm begins.
    """
    recording = Recording()
    for step in range(STEPS):
        at = 1_000 * step
        recording.kernel(GEMM, (at + 20) * US, (at + 100) * US, launch_ns=at * US)
        if other:
            recording.kernel(REDUCE, (at + 20) * US, (at + 40) * US, launch_ns=(at + 2) * US, stream=24)
        recording.kernel(SENDRECV, (at + 30) * US, (at + 150 + step) * US, launch_ns=(at + 4) * US, stream=20)
        norm = (at + 152 + step) * US
        recording.kernel("rms_norm", norm, norm + 40 * US, launch_ns=(at + 8) * US)
        for wait in waits_us:
            recording.call(WAIT, (at + wait) * US, (at + wait) * US + 100)
    return recording


def streams_before(rank: RankTimeline, name: str) -> list[set[int]]:
    """Streams of the producers of each kernel of a name, its own stream left out."""
    rows, place = rank.activities, find_producers(rank).place
    mine = [rank.columns.kernel_names[code] == name for code in rows.name.tolist()]
    return [
        {int(rows.stream_id[one]) for one in place[at] if one >= 0} - {int(rows.stream_id[at])}
        for at in np.flatnonzero(mine).tolist()
    ]


def test_a_wait_belongs_to_the_next_launch_of_its_thread(export: Export) -> None:
    told = stream_waits(rank_of(export(steps(3, 6))))
    assert told is not None
    assert told.reshape(STEPS, 3).tolist() == [[0, 1, 1]] * STEPS


def test_a_wait_that_another_launch_took_is_not_told_twice(export: Export) -> None:
    told = stream_waits(rank_of(export(steps(3))))
    assert told is not None
    assert told.reshape(STEPS, 3).tolist() == [[0, 1, 0]] * STEPS


def test_without_calls_that_let_streams_wait_nothing_is_known_of_them(export: Export) -> None:
    assert stream_waits(rank_of(export(steps()))) is None


def test_work_that_was_told_to_wait_keeps_its_inferred_producer(export: Export) -> None:
    assert streams_before(rank_of(export(steps(3, 6))), "rms_norm") == [{20}] * STEPS


def test_work_that_was_told_nothing_has_no_inferred_producer(export: Export) -> None:
    assert streams_before(rank_of(export(steps(3))), "rms_norm") == [set()] * STEPS


def test_of_two_that_fit_one_wait_the_one_that_binds_is_taken(export: Export) -> None:
    rank = rank_of(export(steps(1, 3, 6, other=True)))
    assert streams_before(rank, "rms_norm") == [{20}] * STEPS


def test_two_waits_leave_room_for_both(export: Export) -> None:
    rank = rank_of(export(steps(1, 3, 6, 7, other=True)))
    assert streams_before(rank, "rms_norm") == [{20, 24}] * STEPS


def gradients() -> Recording:
    """Five reductions on stream 24, each told to wait, after a GEMM that another thread launched."""
    recording = Recording()
    for turn in range(5):
        at = 1_000 * turn
        recording.kernel("rms_norm", (at + 10) * US, (at + 20) * US, launch_ns=at * US)
        recording.kernel(GEMM, (at + 20) * US, (at + 100) * US, launch_ns=(at + 2) * US, tid=1_001)
        recording.call(WAIT, (at + 250) * US, (at + 251) * US)
        recording.kernel(REDUCE, (at + 300) * US, (at + 350) * US, launch_ns=(at + 252) * US, stream=24)
    return recording


def test_a_collective_waits_for_what_was_launched_last_on_its_callers_compute_stream(export: Export) -> None:
    rank = rank_of(export(gradients()))
    assert streams_before(rank, REDUCE) == [{7}] * 5
    rows = rank.activities
    assert [rank.columns.kernel_names[rows.name[one]] for one in find_producers(rank).place[2:3, 0]] == [GEMM]


def beside_weight_gradients(
    second_us: tuple[int, int] = (104, 200),
    blocks: int = 132,
    launched_us: int = 40,
    sm_count: int | None = 132,
) -> Recording:
    """A GEMM of 132 blocks on stream 20, 10-100 us, launched at 0, and a norm on stream 7."""
    recording = Recording()
    if sm_count:
        recording.gpu(sm_count=sm_count)
    recording.call(WAIT, -2 * US, -1 * US)  # the GEMM was told to wait, the norm was not
    recording.kernel(GEMM, 10 * US, 100 * US, launch_ns=0, stream=20, grid=(132, 1, 1))
    start, end = (at * US for at in second_us)
    recording.kernel("rms_norm", start, end, launch_ns=launched_us * US, stream=7, grid=(blocks, 1, 1))
    return recording


@pytest.mark.parametrize(
    ("recording", "streams"),
    [
        (beside_weight_gradients(), {20}),
        (beside_weight_gradients(second_us=(105, 200)), set()),  # not within 5 us of the end
        (beside_weight_gradients(launched_us=-4), {20}),  # launched first, and yet it waits
        (beside_weight_gradients(second_us=(102, 200), launched_us=100), set()),  # it did not wait over 2 us
        (beside_weight_gradients(blocks=1), {20}),
        (beside_weight_gradients(blocks=1, sm_count=133), set()),  # together they just fit
        (beside_weight_gradients(sm_count=None), {20}),  # no SM count: 264 blocks fill any GPU
    ],
)
def test_a_kernel_waits_for_room_on_the_sms(export: Export, recording: Recording, streams: set[int]) -> None:
    assert streams_before(rank_of(export(recording)), "rms_norm") == [streams]


def test_room_that_a_kernel_launched_later_holds_is_marked(export: Export) -> None:
    """Of two kernels one goes first in any case where it was launched first."""
    first = find_producers(rank_of(export(beside_weight_gradients())))
    second = find_producers(rank_of(export(beside_weight_gradients(launched_us=-4), "second.sqlite")))
    assert (first.room.tolist(), second.room.tolist()) == ([-1, -1], [-1, 0])


def behind_its_host(pause_us: int, count: int = 40) -> Recording:
    """Kernels of 100 us launched 3 ms ahead, one every 100 us, and so long a pause before each."""
    recording = Recording()
    for turn in range(count):
        begin = 3_000 + (100 + pause_us) * turn
        launch_ns = (begin - 3_000) * US
        recording.kernel(GEMM, begin * US, (begin + 100) * US, launch_ns=launch_ns)
    return recording


def test_a_host_that_stays_ahead_whatever_its_clock_is_trusted(export: Export) -> None:
    assert clock_offset_ns(rank_of(export(behind_its_host(pause_us=1)))) == 0


def test_work_that_may_follow_its_launches_at_once_has_clocks_apart(export: Export) -> None:
    """2 us of every 102 without compute would be the host's if the clocks were 3 ms apart: more than 1 %."""
    assert clock_offset_ns(rank_of(export(behind_its_host(pause_us=2)))) == 3_000 * US


def test_few_launches_say_nothing_of_clocks(export: Export) -> None:
    assert clock_offset_ns(rank_of(export(behind_its_host(pause_us=50, count=31)))) == 0


@pytest.mark.parametrize(("late_us", "offset_us"), [(50, 0), (51, 3_000)])
def test_a_synchronisation_that_returns_with_its_work_proves_the_clocks(
    export: Export, late_us: int, offset_us: int
) -> None:
    recording = behind_its_host(pause_us=50)
    last_us = 3_000 + 150 * 39 + 100
    recording.call("cudaDeviceSynchronize_v3020", 6_000 * US, (last_us + late_us) * US)
    assert clock_offset_ns(rank_of(export(recording))) == offset_us * US


@pytest.mark.parametrize(("prefix", "streams"), [("hip", {20}), ("cuda", set())])
def test_on_amd_a_signal_to_another_stream_takes_longer(
    export: Export, prefix: str, streams: set[int]
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 20 * US, 100 * US, launch_ns=0)
    recording.kernel(SENDRECV, 30 * US, 300 * US, launch_ns=4 * US, stream=20)
    recording.call(f"{prefix}StreamWaitEvent", 6 * US, 7 * US)
    recording.kernel("rms_norm", 320 * US, 330 * US, launch_ns=8 * US)  # 20 us after the SendRecv
    assert streams_before(rank_of(export(recording)), "rms_norm") == [streams]


Waited = tuple[int, int, int, int, int]
"""Stream that waits and when, stream whose event it was and when, and that stream's last work before."""


def reached_by_definition(waits: list[Waited]) -> dict[int, dict[int, int]]:
    """By stream the latest record that each wait has behind it, from wait to wait."""
    found = {}
    for row in range(len(waits)):
        open_, seen = [row], {row}
        while open_:
            _, _, stream, record_ns, work_ns = waits[open_.pop()]
            nearest = {
                other
                for other, (waiting, wait_ns, *_) in enumerate(waits)
                if waiting == stream and work_ns < wait_ns <= record_ns
            }
            open_ += nearest - seen
            seen |= nearest
        latest: dict[int, int] = {}
        for other in seen - {row}:
            stream, record_ns = waits[other][2:4]
            latest[stream] = max(record_ns, latest.get(stream, 0))
        found[row] = latest
    return found


@st.composite
def waits_of_streams(draw: st.DrawFn) -> list[Waited]:
    """Waits for events of some streams, in any order, some with work between them; all times differ."""
    count = draw(st.integers(1, 14))
    times = draw(st.lists(st.integers(1, 400), min_size=2 * count, max_size=2 * count, unique=True))
    works = {stream: sorted(draw(st.lists(st.integers(1, 400), max_size=3))) for stream in range(4)}
    made = []
    for first, second in zip(times[::2], times[1::2], strict=True):
        record_ns, wait_ns = sorted((first, second))
        stream = draw(st.integers(0, 3))
        before = [ns for ns in works[stream] if ns < record_ns]
        made.append((draw(st.integers(0, 3)), wait_ns, stream, record_ns, before[-1] if before else -1))
    return made


@trials(max_examples=300)
@given(waits_of_streams())
def test_what_lies_behind_a_wait_is_what_it_reaches_from_wait_to_wait(waits: list[Waited]) -> None:
    own, earlier = pending(*np.array(waits, dtype=np.int64).T)
    found: dict[int, dict[int, int]] = {row: {} for row in range(len(waits))}
    for row, other in zip(own.tolist(), earlier.tolist(), strict=True):
        stream, record_ns = waits[other][2:4]
        found[row][stream] = record_ns
    assert found == reached_by_definition(waits)


def test_ten_thousand_waits_without_work_are_followed_at_once() -> None:
    at_ns = np.arange(10_000, dtype=np.int64)
    begun = process_time()
    pending(at_ns % 3, 2 * at_ns + 1, (at_ns + 1) % 3, 2 * at_ns, np.full(10_000, -1, dtype=np.int64))
    assert process_time() - begun < 2.0


@pytest.mark.parametrize("later_launch_us", [None, 460])
def test_nobody_waits_for_work_without_a_launch_row_that_began_later(
    export: Export, later_launch_us: int | None
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 10 * US, 20 * US, launch_ns=0)
    recording.kernel(REDUCE, 20 * US, 40 * US, stream=20)
    record = recording.call("cudaEventRecord_v3020", 3 * US, 4 * US)
    recording.event_record(1, 1, 20, correlation_id=record)
    wait = recording.call(WAIT, 4 * US, 5 * US)
    recording.synchronisation("stream wait", 4 * US, 5 * US, correlation_id=wait, stream=7, sync_id=1)
    recording.kernel("rms_norm", 42 * US, 60 * US, launch_ns=6 * US)
    launch_ns = later_launch_us and later_launch_us * US
    recording.kernel(REDUCE, 500 * US, 520 * US, stream=20, launch_ns=launch_ns)
    recording.kernel(REDUCE, 600 * US, 620 * US, stream=20)
    rank = rank_of(export(recording))
    (norm,) = np.flatnonzero(rank.activities.start_ns == 42 * US).tolist()
    producers = find_producers(rank).place[norm]
    assert sorted(rank.activities.start_ns[producers[producers >= 0]].tolist()) == [10 * US, 20 * US]
