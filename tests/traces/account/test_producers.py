"""Producers where no event was recorded: who was told to wait, and for what."""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from tests.by_hand.names import KERNELS
from tests.by_hand.run import Run
from traces.account.clocks import clock_offset_ns
from traces.account.inferred import stream_waits
from traces.account.producers import find_producers, pending
from traces.timeline import RankTimeline

US = 1_000
STEPS = 30


def steps(*waits: int, other: bool = False) -> Run:
    """In each step a GEMM, a SendRecv on stream 20, and a norm that begins 2 us after the SendRecv ended.

    `waits`: when in the step a stream is told to wait; the launches are at 0, 4 and 8. `other`: a
    reduction on stream 24 as well, launched at 2, long done when the norm begins.
    """
    run = Run()
    for number in range(STEPS):
        step = run.at(1_000 * number)
        step.work("gemm", 20, 100, launch=0)
        if other:
            step.work("reduce_scatter", 20, 40, launch=2, stream=24)
        step.work("send_recv", 30, 150 + number, launch=4, stream=20)
        step.work("norm", 152 + number, 192 + number, launch=8)
        for wait in waits:
            step.call("stream_wait", wait, wait + 0.1)
    return run


def streams_before(rank: RankTimeline, word: str) -> list[set[int]]:
    """Streams of the producers of each kernel of a name, its own stream left out."""
    rows, place = rank.activities, find_producers(rank).place
    mine = [rank.columns.kernel_names[code] == KERNELS[word] for code in rows.name.tolist()]
    return [
        {int(rows.stream_id[one]) for one in place[at] if one >= 0} - {int(rows.stream_id[at])}
        for at in np.flatnonzero(mine).tolist()
    ]


def test_without_calls_that_let_streams_wait_nothing_is_known_of_them() -> None:
    assert stream_waits(steps().rank()) is None


@pytest.mark.parametrize(("gap", "stream"), [(5, 20), (5.001, 24)])
def test_what_binds_ended_no_more_than_five_microseconds_before(gap: float, stream: int) -> None:
    """Else of two that fit one wait the one that was launched later is taken, long done as it is."""
    run = Run()
    for number in range(STEPS):
        step = run.at(1_000 * number)
        step.work("gemm", 20, 100, launch=0)
        step.work("send_recv", 30, 150 + number, launch=4, stream=20)
        step.work("reduce_scatter", 20, 40, launch=6, stream=24)
        step.work("norm", 150 + number + gap, 300, launch=8)
        for wait in (3, 5, 7):
            step.call("stream_wait", wait, wait + 0.1)
    assert streams_before(run.rank(), "norm") == [{stream}] * STEPS


def test_two_waits_leave_room_for_both() -> None:
    rank = steps(1, 3, 6, 7, other=True).rank()
    assert streams_before(rank, "norm") == [{20, 24}] * STEPS


def gradients() -> Run:
    """Five reductions on stream 24, each told to wait, after a GEMM that another thread launched."""
    run = Run()
    for turn in range(5):
        part = run.at(1_000 * turn)
        part.work("norm", 10, 20, launch=0)
        part.work("gemm", 20, 100, launch=2, thread=1)
        part.call("stream_wait", 250, 251)
        part.work("reduce_scatter", 300, 350, launch=252, stream=24)
    return run


def beside_weight_gradients(
    second: tuple[int, int] = (104, 200),
    blocks: int = 132,
    launched: int = 40,
    sm_count: int | None = 132,
) -> Run:
    """A GEMM of 132 blocks on stream 20, 10-100 us, launched at 0, and a norm on stream 7."""
    run = Run(sm_count=sm_count)
    run.call("stream_wait", -2, -1)  # the GEMM was told to wait, the norm was not
    run.work("gemm", 10, 100, launch=0, stream=20, blocks=132)
    run.work("norm", *second, launch=launched, blocks=blocks)
    return run


@pytest.mark.parametrize(
    ("run", "streams"),
    [
        (beside_weight_gradients(), {20}),
        (beside_weight_gradients(second=(105, 200)), {20}),
        (beside_weight_gradients(second=(105.001, 200)), set()),  # not within 5 us of the end
        (beside_weight_gradients(launched=-4), {20}),  # launched first, and yet it waits
        (beside_weight_gradients(second=(102, 200), launched=100), set()),  # it did not wait over 2 us
        (beside_weight_gradients(blocks=1), {20}),
        (beside_weight_gradients(blocks=1, sm_count=133), set()),  # together they just fit
        (beside_weight_gradients(sm_count=None), {20}),  # no SM count: 264 blocks fill any GPU
    ],
)
def test_a_kernel_waits_for_room_on_the_sms(run: Run, streams: set[int]) -> None:
    assert streams_before(run.rank(), "norm") == [streams]


def test_room_that_a_kernel_launched_later_holds_is_marked() -> None:
    """Of two kernels one goes first in any case where it was launched first."""
    first = find_producers(beside_weight_gradients().rank())
    second = find_producers(beside_weight_gradients(launched=-4).rank())
    assert (first.room.tolist(), second.room.tolist()) == ([-1, -1], [-1, 0])


def behind_its_host(pause: int, count: int = 40) -> Run:
    """Kernels of 100 us launched 3 ms ahead, one every 100 us, and so long a pause before each."""
    run = Run()
    for turn in range(count):
        begin = 3_000 + (100 + pause) * turn
        run.work("gemm", begin, begin + 100, launch=begin - 3_000)
    return run


def test_a_host_that_stays_ahead_whatever_its_clock_is_trusted() -> None:
    assert clock_offset_ns(behind_its_host(pause=1).rank()) == 0


def test_work_that_may_follow_its_launches_at_once_has_clocks_apart() -> None:
    """2 us of every 102 without compute would be the host's if the clocks were 3 ms apart: more than 1 %."""
    assert clock_offset_ns(behind_its_host(pause=2).rank()) == 3_000 * US


@pytest.mark.parametrize(("prefix", "streams"), [("hip", {20}), ("cuda", set())])
def test_on_amd_a_signal_to_another_stream_takes_longer(prefix: str, streams: set[int]) -> None:
    run = Run()
    run.work("gemm", 20, 100, launch=0)
    run.work("send_recv", 30, 300, launch=4, stream=20)
    run.call(f"{prefix}StreamWaitEvent", 6, 7)
    run.work("norm", 320, 330, launch=8)  # 20 us after the SendRecv
    assert streams_before(run.rank(), "norm") == [streams]


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


@pytest.mark.parametrize("later", [{"launched": False}, {"launch": 460}])
def test_nobody_waits_for_work_without_a_launch_row_that_began_later(later: dict[str, Any]) -> None:
    run = Run()
    run.work("gemm", 10, 20, launch=0)
    other = run.on(stream=20)
    other.work("reduce_scatter", 20, 40, launched=False)
    run.wait(20, by=7, recorded=3, waits=4)
    run.work("norm", 42, 60, launch=6)
    other.work("reduce_scatter", 500, 520, **later)
    other.work("reduce_scatter", 600, 620, launched=False)
    rank = run.rank()
    (norm,) = np.flatnonzero(rank.activities.start_ns == 42_000).tolist()
    producers = find_producers(rank).place[norm]
    assert sorted(rank.activities.start_ns[producers[producers >= 0]].tolist()) == [10_000, 20_000]
