"""The replay: one hand-built recording per rule, and each limit just below and at it."""

from __future__ import annotations

import pytest

from bench.simulate.recording import Row
from tests.by_hand.run import Run
from tests.recordings.replay import US, again, begun, by_call, us
from traces import loops
from traces.limits import Limit


def test_what_was_queued_before_the_recording_takes_room_in_the_queue_as_well() -> None:
    run = Run()
    for number in range(600):
        run.work("gemm", 10 * number, 10 * number + 10, launched=False)
    run.work("gemm", 6_000, 6_010, launch=(5, 6))
    run.work("gemm", 6_010, 6_020, launch=(7, 8))
    # returns 1 after the 20th of those has ended, so 583 launches were in the queue
    run.work("gemm", 6_020, 6_030, launch=(10, 201))
    found = again(run)
    assert by_call(found.graph.timing.waits) == {2: [(19, us(1))]}
    assert found.graph.timing.own_ns[2] == us(1)
    # the first work 10 shorter: room is made, and the call returns, 10 earlier
    assert found.times(work={0: 0})[252] == (2_510, 2_520)


def test_the_host_goes_on_when_the_control_kernel_that_it_polls_for_has_ended() -> None:
    run = begun()
    for layer in range(3):
        at = 200 * layer
        run.work("token_counts", at + 100, at + 150, launch=at + 60)
        run.work("gemm", at + 165, at + 250, launch=(at + 155, at + 160))
    found = again(run)
    assert found.times(work={1: 20})[1:3] == [(100, 120), (135, 220)]
    assert by_call(found.graph.timing.polled)[2] == [(1, 5 * US)]


def test_a_host_that_comes_much_later_than_the_counts_is_late_by_itself() -> None:
    run = begun()
    for layer, after in enumerate((5, 200, 5)):
        at = 500 * layer
        run.work("token_counts", at + 100, at + 150, launch=at + 60)
        run.work("gemm", at + 370, at + 450, launch=(at + 150 + after, at + 160 + after))
    found = again(run)
    assert by_call(found.graph.timing.polled)[4] == [(3, 5 * US)]
    assert found.graph.timing.pause_ns[4] == us(288)


def test_the_compiled_replay_is_the_interpreted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun()
    run.work("gemm", 155, 200, launch=150)
    run.call("sync", 160, 210)
    run.work("send_recv", 230, 260, launch=220, stream=9)
    found = again(run)
    interpreted = found.times(work={1: 90}), found.times(pause={1: 0})
    monkeypatch.setattr(loops, "COMPILED_FROM", Limit(0, "rounds", "the test's"))
    assert (found.times(work={1: 90}), found.times(pause={1: 0})) == interpreted


def waits_of(run: Run) -> dict[int, list[tuple[int, int]]]:
    return by_call(again(run).graph.timing.waits)


@pytest.mark.parametrize(("back", "work"), [(150, 1), (150.001, 2)])
def test_a_small_copy_within_so_long_before_the_return_says_more_than_what_ended_later(
    back: float, work: int
) -> None:
    """The copy ends at 100 and the exchange at 140: 50 us is as long as a call returns after its work."""
    run = Run()
    run.work("gemm", -50, 0)
    run.work("d2h", 90, 100, launch=20, size_bytes=256)
    run.work("send_recv", 95, 140, launch=23, stream=20)
    run.call("sync", 30, back)
    assert [one for one, _ in waits_of(run)[3]] == [work]


@pytest.mark.parametrize(("end", "after"), [(168, -50), (168.001, None)])
def test_a_call_may_return_before_its_work_ends_by_what_clocks_are_apart(
    end: float, after: float | None
) -> None:
    run = begun()
    run.work("send_recv", 120, end, launch=20, stream=20, thread=1)
    run.call("sync", 110, 118)
    found = waits_of(run)[2]
    assert found == ([(0, 8 * US)] if after is None else [(1, after * US)])


@pytest.mark.parametrize(
    ("start", "length", "waits"), [(120, 21, True), (120, 20, False), (191, 21, True), (191.001, 21, False)]
)
def test_a_copy_call_of_over_twenty_waits_for_a_copy_that_begins_fifty_after_it_at_most(
    start: float, length: float, waits: bool
) -> None:
    run = begun()
    run.work("h2d", start, start + 30, launch=(120, 120 + length), stream=20)
    found = again(run)
    assert by_call(found.graph.timing.waits) == (
        {1: [(1, round((120 + length - start - 30) * US))]} if waits else {}
    )
    assert found.graph.timing.own_ns[1] == (20 if waits else length) * US


def queued(ended: int, launch: tuple[float, float]) -> bool:
    """Whether a launch behind 600 kernels of 10 us, from 1,000 on, waits until the one `ended` has ended."""
    run = begun()
    for number in range(600):
        run.work("gemm", 1_000 + 10 * number, 1_010 + 10 * number, launch=(1.5 * number, 1.5 * number + 1))
    run.work("gemm", 7_000, 7_010, launch=launch)
    return waits_of(run).get(601) == [(ended, US)]


@pytest.mark.parametrize(
    ("ended", "length", "waits"),
    [
        (90, 700, True),  # 511 launches were in flight, half of the queue
        (91, 700, False),
        (20, 20.001, True),
        (20, 20, False),  # so late a call returns from any wait
    ],
)
def test_a_launch_waits_for_room_where_it_is_long_and_many_are_in_flight(
    ended: int, length: float, waits: bool
) -> None:
    back = 1_000 + 10 * ended + 1
    assert queued(ended, (back - length, back)) is waits


@pytest.mark.parametrize(("room", "waits"), [(0, True), (20, True), (20.001, False)])
def test_a_launch_returns_as_there_is_room_or_soon_after(room: float, waits: bool) -> None:
    """The queue stands still from 1,010 on for 100 us."""
    run = begun()
    for number in range(600):
        begin = 1_000 + 10 * number + (100 if number else 0)
        run.work("gemm", begin, begin + 10, launch=(1.5 * number, 1.5 * number + 1))
    run.work("gemm", 7_200, 7_210, launch=(900, 1_010 + room))
    assert (601 in waits_of(run)) is waits


@pytest.mark.parametrize(("gap", "residual"), [(4, 0), (4.001, 2.001)])
def test_what_a_gap_takes_more_than_usual_is_its_own_up_to_two_microseconds(
    gap: float, residual: float
) -> None:
    run = begun()
    run.work("gemm", 102, 200, launch=10)
    run.work("gemm", 202, 300, launch=13)
    run.work("gemm", 300 + gap, 400, launch=16)
    timing = again(run).graph.timing
    assert timing.residual_ns.tolist() == [0, 0, 0, residual * US]
    assert timing.gap_ns[3] == (2 if residual else gap) * US


@pytest.mark.parametrize(
    ("second", "stream", "way", "engine"),
    [
        (205, 21, "h2d", 1),
        (205.001, 21, "h2d", -1),
        (200, 21, "h2d", 1),
        (199, 21, "h2d", -1),  # both ran at once: another engine
        (205, 21, "d2h", -1),
    ],
)
def test_a_copy_follows_another_of_its_direction_within_five_microseconds(
    second: float, stream: int, way: str, engine: int
) -> None:
    run = begun()
    run.work("h2d", 100, 200, launch=(10, 11), stream=20)
    run.work(way, second, 300, launch=(12, 13), stream=stream)
    assert again(run).graph.timing.engine.tolist() == [-1, -1, engine]


def test_work_does_not_wait_again_for_what_another_stream_had_not_ended_as_it_began() -> None:
    run = begun()
    run.work("send_recv", 100, 200, launch=20, stream=20)
    run.wait(20, by=7, recorded=42, waits=45)
    run.work("gemm", 150, 250, launch=50)
    found = again(run)
    assert found.times(work={1: 50})[2] == found.times(work={1: 300})[2] == (150, 250)


def test_each_part_of_a_pause_is_told_once_by_what_says_most() -> None:
    """From a synchronisation's return at 100 to a launch, at 250 to 300, and within that."""
    run = begun()
    run.call("sync", 50, 100)
    run.range("gc", 110, 140)
    run.flush(130, 145)
    run.range("checkpoint", 120, 170)
    gid = run.recording.global_id(1_000, 1_000)
    row: Row = {"start": run.ns(160), "end": run.ns(200), "globalTid": gid, "nameId": "poll"}
    run.recording.rows["OSRT_API"] = [row]
    run.range("gc", 210, 240, thread=1)  # another thread collects
    run.work("gemm", 310, 400, launch=(250, 300))
    run.flush(280, 290)
    run.flush(285, 320, thread=1)
    found = again(run).graph
    (place,) = (found.calls.start_ns == run.ns(250)).nonzero()[0].tolist()
    pauses = found.pauses
    named = {kind: int(ns[place]) // US for kind, ns in pauses.named_ns.items() if ns[place]}
    assert named == {"gc": 20, "checkpoint": 25, "os_wait": 30}
    assert (pauses.profiler_ns[place], pauses.cold_ns[place]) == (15 * US, 10 * US)
    assert pauses.profiler_in_call_ns[place] == 10 * US
    assert pauses.said_ns[place] == (15 + 20 + 25 + 30) * US
