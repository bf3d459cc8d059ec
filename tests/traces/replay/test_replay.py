"""The replay: one hand-built recording per rule, and what follows when something takes another time."""

from __future__ import annotations

import pytest

from tests.by_hand.run import Run
from tests.recordings.replay import US, again, begun, by_call, us
from traces import loops
from traces.limits import Limit
from traces.replay.run import replay
from traces.replay.without import without_unexplained

# the GPU


def test_nodes_of_a_graph_follow_their_one_launch_and_their_own_streams() -> None:
    run = begun()
    number = run.call("graph_launch", 190, 195)
    for node, start in ((1, 200), (2, 220)):
        run.work("gemm", start, start + 20, of=number, node=node)
    run.work("send_recv", 200, 250, of=number, node=3, stream=20)
    found = again(run)
    assert found.graph.launched_by.tolist() == [0, 1, 1, 1]
    # 40 of the pause before the launch gone: both streams come 40 earlier
    assert found.times(pause={1: 158})[1:] == [(160, 180), (160, 210), (180, 200)]
    assert found.times(work={1: 5})[1:] == [(200, 205), (200, 250), (205, 225)]


# the host


def test_a_sync_waits_for_the_work_that_ended_within_it() -> None:
    run = begun()
    run.work("send_recv", 100, 160, launch=20, stream=20)
    run.call("sync", 30, 170)
    run.work("gemm", 190, 250, launch=(180, 185))
    found = again(run)
    # the sync returns 10 after its work: 40 less work, 40 earlier; no work at all, and it waits no longer
    assert found.times(work={1: 20})[2] == (150, 210)
    assert found.times(work={1: 100})[2] == (230, 290)
    assert by_call(found.graph.timing.waits)[2] == [(1, 10 * US)]


def test_a_sync_that_found_its_work_done_waits_for_it_where_the_host_is_faster() -> None:
    run = begun()
    run.call("sync", 150, 152)
    run.work("gemm", 160, 200, launch=152)
    found = again(run)
    # begun at -8, it returns 2 after the first kernel's end, and the launch takes 8 to arrive
    assert found.times(pause={1: 0})[1] == (110, 150)


def test_a_launch_into_a_full_queue_waits_until_an_earlier_launch_has_made_room() -> None:
    run = begun()
    for number in range(250):
        run.work("gemm", 1_000 + 10 * number, 1_010 + 10 * number, launch=(2 * number, 2 * number + 1))
    # returns 1 after the 20th of these has ended, so 231 launches were in the queue
    run.work("gemm", 3_500, 3_510, launch=(500, 1_201))
    run.work("gemm", 3_510, 3_520, launch=(1_210, 1_211))
    found = again(run)
    assert by_call(found.graph.timing.waits)[251] == [(20, us(1))]
    assert found.graph.timing.own_ns[251] == us(1)
    assert by_call(found.graph.timing.waits)[252] == [(21, 0)]
    # the first work 100 shorter: room is made, and the host goes on, 100 earlier
    starts = found.times(work={1: -90})
    assert starts[20] == (1_090, 1_100)
    assert starts[252] == (3_410, 3_420)


def test_what_was_queued_before_the_recording_takes_room_in_the_queue_as_well() -> None:
    run = Run()
    for number in range(250):
        run.work("gemm", 10 * number, 10 * number + 10, launched=False)
    run.work("gemm", 2_500, 2_510, launch=(5, 6))
    run.work("gemm", 2_510, 2_520, launch=(7, 8))
    # returns 1 after the 20th of those has ended, so 233 launches were in the queue
    run.work("gemm", 2_520, 2_530, launch=(10, 201))
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


def test_a_thread_hands_over_to_another() -> None:
    run = begun()
    run.call("malloc", 110, 150)
    run.work("gemm", 175, 200, launch=170, thread=1)
    found = again(run)
    assert found.graph.calls.before.tolist() == [-1, 0, 1]
    assert found.graph.calls.own_before.tolist() == [-1, 0, -1]
    assert found.times(own={1: 10})[1] == (145, 170)


def test_a_sync_may_return_before_its_work_begins_where_the_gpus_clock_is_ahead() -> None:
    run = begun()
    run.work("send_recv", 120, 130, launch=112, stream=20)
    run.call("sync", 114, 118)
    run.work("gemm", 140, 200, launch=132)
    found = again(run)
    assert by_call(found.graph.timing.waits)[2] == [(1, -12 * US)]
    assert found.times(work={1: 30})[2] == (160, 220)


def test_a_sync_follows_work_that_began_within_another_threads_launch() -> None:
    run = begun()
    run.work("send_recv", 140, 160, launch=(110, 150), stream=20, thread=1)
    run.call("sync", 120, 125)
    run.work("gemm", 165, 200, launch=160)
    found = again(run)
    assert by_call(found.graph.timing.waits)[2] == [(1, -35 * US)]
    # 60 earlier, the exchange ends at 100 and the sync, begun at 120, returns at once; the last launch then
    # takes 120 to 122, and 3 to arrive
    assert found.times(pause={1: 58})[1:] == [(80, 100), (125, 160)]


def test_work_never_waits_for_later_work_of_its_stream() -> None:
    run = begun()
    run.wait(9, by=9, recorded=1, waits=3)
    run.work("gemm", 20, 30, launch=10, stream=9)
    run.work("gemm", 50, 60, launched=False, stream=9)
    found = again(run)
    assert found.graph.producers.max(axis=1).tolist() == [-1, -1, 1]
    assert found.times(pause={3: 1})[1] == (15, 25)


def test_the_compiled_replay_is_the_interpreted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun()
    run.work("gemm", 155, 200, launch=150)
    run.call("sync", 160, 210)
    run.work("send_recv", 230, 260, launch=220, stream=9)
    found = again(run)
    interpreted = found.times(work={1: 90}), found.times(pause={1: 0})
    monkeypatch.setattr(loops, "COMPILED_FROM", Limit(0, "rounds", "the test's"))
    assert (found.times(work={1: 90}), found.times(pause={1: 0})) == interpreted


def test_what_several_streams_waited_for_before_the_recording_moves_nothing_in_it() -> None:
    run = Run()
    run.work("gemm", 0, 100, launch=-1_000)
    run.on(stream=20).work("all_gather", 5, 60, launch=-990)
    run.work("gemm", 100, 200, launch=-980)
    found = again(run)
    assert (found.graph.timing.residual_ns / US).tolist() == [0, 5, 0]
    timing = without_unexplained(found.graph.timing)
    assert (replay(found.graph, timing).start_ns / US).tolist() == [0, 0, 100]
