"""The replay: one hand-built recording per rule, and what follows when something takes another time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.simulate.recording import Recording
from tests.recordings.replay import (
    DEVICE_SYNC,
    GEMM,
    LAYOUT,
    NOTIFY,
    SENDRECV,
    SYNC,
    US,
    Said,
    again,
    by_call,
    rank_of,
    us,
)
from traces import loops
from traces.account.device import find_queueing
from traces.intervals import spans
from traces.limits import Limit
from traces.replay.graph import build_graph
from traces.replay.run import replay


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


# the GPU


def test_a_kernel_starts_when_its_launch_arrives(path: Path) -> None:
    said = Said()
    said.kernel(GEMM, 155, 200, launch=(150, 152))
    found = again(path, said)
    # the pause before the second launch was 158; with 128 all comes 30 earlier, also after the kernel's gap
    assert found.times(pause={1: 128}) == [(0, 100), (125, 170)]


def test_a_kernel_starts_no_earlier_than_its_streams_previous_ends(path: Path) -> None:
    said = Said()
    said.kernel(GEMM, 155, 200, launch=(150, 152))
    found = again(path, said)
    assert found.times(pause={1: 0}) == [(0, 100), (100, 145)]
    assert found.times(work={0: 170}) == [(0, 170), (170, 215)]


def test_the_usual_gap_stays_between_dependent_kernels(path: Path) -> None:
    said = Said()
    said.kernel(GEMM, 102, 200, launch=(10, 12))
    said.kernel(GEMM, 202, 300, launch=(13, 15))
    said.kernel(GEMM, 302, 400, launch=(16, 18))
    found = again(path, said)
    assert found.graph.timing.gap_ns.tolist() == [0, 2 * US, 2 * US, 2 * US]
    assert found.times(work={0: 50})[1:] == [(52, 150), (152, 250), (252, 350)]


def test_waiting_beyond_the_usual_gap_is_a_residual_that_stays(path: Path) -> None:
    said = Said()
    said.kernel(GEMM, 102, 200, launch=(10, 12))
    said.kernel(GEMM, 202, 300, launch=(13, 15))
    said.kernel(GEMM, 340, 400, launch=(16, 18))
    found = again(path, said)
    assert found.graph.timing.residual_ns.tolist()[1:] == [0, 0, 38 * US]
    assert found.times(work={0: 50})[3] == (290, 350)


def test_a_recorded_event_holds_another_stream(path: Path) -> None:
    said = Said()
    said.kernel(SENDRECV, 50, 180, launch=(10, 12), stream=20)
    said.event(20, 13, 7, 15)
    said.kernel(GEMM, 180, 260, launch=(20, 22))
    found = again(path, said)
    assert found.times(work={1: 100}) == [(0, 100), (50, 150), (150, 230)]
    assert found.times(work={1: 10}) == [(0, 100), (50, 60), (100, 180)]


def test_without_an_event_another_stream_holds_nothing(path: Path) -> None:
    said = Said()
    said.kernel(SENDRECV, 50, 180, launch=(10, 12), stream=20)
    said.kernel(GEMM, 100, 160, launch=(20, 22))
    found = again(path, said)
    assert found.times(work={1: 1_000}) == [(0, 100), (50, 1_050), (100, 160)]


def test_a_copy_waits_for_the_copy_before_it_in_its_direction_on_any_stream(path: Path) -> None:
    said = Said()
    said.copy("h2d", 100, 200, launch=(10, 11), stream=20)
    said.copy("h2d", 201, 211, launch=(12, 13), stream=21)
    said.copy("d2h", 211, 220, launch=(14, 15), stream=22)
    found = again(path, said)
    assert found.graph.timing.engine.tolist() == [-1, -1, 1, -1]
    assert found.times(work={1: 40})[2] == (141, 151)


def test_a_copy_long_after_another_did_not_wait_for_it(path: Path) -> None:
    said = Said()
    said.copy("h2d", 100, 200, launch=(10, 11), stream=20)
    said.copy("h2d", 206, 216, launch=(12, 13), stream=21)
    found = again(path, said)
    assert found.graph.timing.engine.tolist() == [-1, -1, -1]


def test_nodes_of_a_graph_follow_their_one_launch_and_their_own_streams(path: Path) -> None:
    said = Said()
    number = said.kernel(GEMM, 200, 220, launch=(190, 195), api="cudaGraphLaunch_v10000", graph_node_id=1)
    said.recording.kernel(GEMM, us(220), us(240), correlation_id=number, graph_node_id=2)
    said.recording.kernel(SENDRECV, us(200), us(250), correlation_id=number, graph_node_id=3, stream=20)
    found = again(path, said)
    assert found.graph.launched_by.tolist() == [0, 1, 1, 1]
    # 40 of the pause before the launch gone: both streams come 40 earlier
    assert found.times(pause={1: 158})[1:] == [(160, 180), (160, 210), (180, 200)]
    assert found.times(work={1: 5})[1:] == [(200, 205), (200, 250), (205, 225)]


def test_work_of_which_no_launch_was_recorded_follows_its_stream(path: Path) -> None:
    said = Said()
    said.recording.kernel(GEMM, us(100), us(150))
    said.recording.kernel(GEMM, us(120), us(180), stream=20)
    found = again(path, said)
    # the third comes after nothing that is known, so it stays where it was
    assert found.times(work={0: 60}) == [(0, 60), (60, 110), (120, 180)]


# the host


def test_a_call_follows_the_call_before_it_and_its_pause(path: Path) -> None:
    said = Said()
    said.call("cudaMalloc_v3020", 110, 150)
    said.kernel(GEMM, 175, 200, launch=(170, 172))
    found = again(path, said)
    assert found.times(own={1: 10})[1] == (145, 170)
    assert found.times(pause={2: 10})[1] == (165, 190)


def test_a_sync_waits_for_the_work_that_ended_within_it(path: Path) -> None:
    said = Said()
    said.kernel(SENDRECV, 100, 160, launch=(20, 22), stream=20)
    said.call(SYNC, 30, 170)
    said.kernel(GEMM, 190, 250, launch=(180, 185))
    found = again(path, said)
    # the sync returns 10 after its work: 40 less work, 40 earlier; no work at all, and it waits no longer
    assert found.times(work={1: 20})[2] == (150, 210)
    assert found.times(work={1: 100})[2] == (230, 290)
    assert by_call(found.graph.timing.waits)[2] == [(1, 10 * US)]


def test_a_sync_whose_row_names_a_stream_waits_for_that_stream(path: Path) -> None:
    said = Said()
    said.kernel(SENDRECV, 100, 160, launch=(20, 22), stream=20)
    said.kernel(SENDRECV, 100, 165, launch=(23, 24), stream=21)
    said.sync_of(20, 30, 170)
    said.kernel(GEMM, 190, 250, launch=(180, 185))
    found = again(path, said)
    assert found.times(work={2: 1})[3] == (190, 250)
    assert found.times(work={1: 30})[3] == (160, 220)


def test_a_sync_that_found_its_work_done_waits_for_it_where_the_host_is_faster(path: Path) -> None:
    said = Said()
    said.call(SYNC, 150, 152)
    said.kernel(GEMM, 160, 200, launch=(152, 154))
    found = again(path, said)
    # begun at -8, it returns 2 after the first kernel's end, and the launch takes 8 to arrive
    assert found.times(pause={1: 0})[1] == (110, 150)


def test_a_sync_of_unnamed_work_waits_for_the_small_copy_that_ended_last(path: Path) -> None:
    said = Said()
    said.copy("d2h", 100, 110, launch=(20, 22), size_bytes=256)
    said.kernel(SENDRECV, 100, 115, launch=(23, 25), stream=20)
    said.call(SYNC, 30, 118)
    found = again(path, said)
    assert by_call(found.graph.timing.waits)[3] == [(1, 8 * US)]
    assert found.graph.feeds_host.tolist() == [False, True, False]


def test_a_device_wide_sync_waits_for_every_stream(path: Path) -> None:
    said = Said()
    said.kernel(SENDRECV, 100, 150, launch=(20, 22), stream=20)
    said.kernel(SENDRECV, 100, 160, launch=(23, 24), stream=21)
    said.call(DEVICE_SYNC, 30, 165)
    said.kernel(GEMM, 180, 250, launch=(170, 175))
    found = again(path, said)
    assert found.times(work={2: 10})[3] == (170, 240)
    assert found.times(work={2: 10, 1: 10})[3] == (130, 200)


def test_freeing_memory_waits_for_every_stream(path: Path) -> None:
    said = Said()
    said.kernel(SENDRECV, 100, 150, launch=(20, 22), stream=20)
    said.kernel(SENDRECV, 100, 160, launch=(23, 24), stream=21)
    said.call("cudaFree_v3020", 30, 180)
    said.kernel(GEMM, 195, 250, launch=(185, 190))
    found = again(path, said)
    assert found.graph.timing.own_ns[3] == 20 * US
    assert found.times(work={2: 10})[3] == (185, 240)


def test_freeing_memory_in_stream_order_waits_for_nothing(path: Path) -> None:
    said = Said()
    said.kernel(SENDRECV, 100, 150, launch=(20, 22), stream=20)
    said.call("cudaFreeAsync_v11020", 30, 180)
    found = again(path, said)
    assert by_call(found.graph.timing.waits) == {}


def test_a_long_copy_call_waits_for_its_own_copy(path: Path) -> None:
    said = Said()
    said.copy("h2d", 130, 180, launch=(120, 190))
    said.kernel(GEMM, 205, 250, launch=(195, 197))
    found = again(path, said)
    assert found.times(work={1: 25})[1:] == [(130, 155), (180, 225)]
    # without the copy it still takes 20 of its own
    assert found.times(work={1: 0})[2] == (155, 200)


def test_a_copy_from_pageable_memory_may_return_before_its_copy_ends(path: Path) -> None:
    said = Said()
    said.copy("h2d", 130, 230, launch=(120, 190), stream=20)
    said.kernel(GEMM, 200, 250, launch=(195, 197))
    found = again(path, said)
    assert by_call(found.graph.timing.waits)[1] == [(1, -40 * US)]
    assert found.times(work={1: 70})[2] == (170, 220)


def test_a_long_copy_call_does_not_wait_for_a_copy_that_begins_long_after_its_return(path: Path) -> None:
    said = Said()
    said.copy("d2d", 300, 350, launch=(20, 50), stream=20)
    found = again(path, said)
    assert by_call(found.graph.timing.waits) == {}
    assert found.graph.timing.own_ns[1] == 30 * US


def test_a_launch_into_a_full_queue_waits_until_an_earlier_launch_has_made_room(path: Path) -> None:
    said = Said()
    for number in range(250):
        said.kernel(GEMM, 1_000 + 10 * number, 1_010 + 10 * number, launch=(2 * number, 2 * number + 1))
    # returns 1 after the 20th of these has ended, so 231 launches were in the queue
    said.kernel(GEMM, 3_500, 3_510, launch=(500, 1_201))
    said.kernel(GEMM, 3_510, 3_520, launch=(1_210, 1_211))
    found = again(path, said)
    assert by_call(found.graph.timing.waits)[251] == [(20, us(1))]
    assert found.graph.timing.own_ns[251] == us(1)
    assert by_call(found.graph.timing.waits)[252] == [(21, 0)]
    # the first work 100 shorter: room is made, and the host goes on, 100 earlier
    starts = found.times(work={1: -90})
    assert starts[20] == (1_090, 1_100)
    assert starts[252] == (3_410, 3_420)


def test_what_was_queued_before_the_recording_takes_room_in_the_queue_as_well(path: Path) -> None:
    said = Said()
    said.recording = Recording()
    for number in range(250):
        said.recording.kernel(GEMM, us(10 * number), us(10 * number + 10))
    said.kernel(GEMM, 2_500, 2_510, launch=(5, 6))
    said.kernel(GEMM, 2_510, 2_520, launch=(7, 8))
    # returns 1 after the 20th of those has ended, so 233 launches were in the queue
    said.kernel(GEMM, 2_520, 2_530, launch=(10, 201))
    found = again(path, said)
    assert by_call(found.graph.timing.waits) == {2: [(19, us(1))]}
    assert found.graph.timing.own_ns[2] == us(1)
    # the first work 10 shorter: room is made, and the call returns, 10 earlier
    assert found.times(work={0: 0})[252] == (2_510, 2_520)


def test_a_long_launch_with_few_before_it_is_the_hosts_own(path: Path) -> None:
    said = Said()
    for number in range(30):
        said.kernel(GEMM, 100 + 10 * number, 110 + 10 * number, launch=(2 * number, 2 * number + 1))
    said.kernel(GEMM, 400, 410, launch=(100, 201))
    found = again(path, said)
    assert by_call(found.graph.timing.waits) == {}
    assert found.graph.timing.own_ns[31] == us(101)


def test_the_host_goes_on_when_the_control_kernel_that_it_polls_for_has_ended(path: Path) -> None:
    said = Said()
    for layer in range(3):
        at = 200 * layer
        said.kernel(NOTIFY, at + 100, at + 150, launch=(at + 60, at + 62))
        said.kernel(GEMM, at + 165, at + 250, launch=(at + 155, at + 160))
    found = again(path, said)
    assert found.times(work={1: 20})[1:3] == [(100, 120), (135, 220)]
    assert by_call(found.graph.timing.polled)[2] == [(1, 5 * US)]


def test_of_two_control_kernels_in_a_row_the_host_polls_for_the_last(path: Path) -> None:
    said = Said()
    for layer in range(3):
        at = 200 * layer
        said.kernel(LAYOUT, at + 90, at + 100, launch=(at + 56, at + 58))
        said.kernel(NOTIFY, at + 100, at + 150, launch=(at + 60, at + 62))
        said.kernel(GEMM, at + 165, at + 250, launch=(at + 155, at + 160))
    assert by_call(again(path, said).graph.timing.polled)[3] == [(2, 5 * US)]


def test_a_host_that_comes_late_by_itself_does_not_poll(path: Path) -> None:
    """Its pause is 90 in every layer, and the kernel ends now sooner, now later within it."""
    said = Said()
    for layer, end in enumerate((150, 140, 150, 140, 150)):
        at = 200 * layer
        said.kernel(LAYOUT, at + 100, at + end, launch=(at + 60, at + 62))
        said.kernel(GEMM, at + 165, at + 250, launch=(at + 152, at + 160))
    assert not len(again(path, said).graph.timing.polled)


def test_a_host_late_by_itself_still_polls_for_token_counts(path: Path) -> None:
    """The same with DeepEP's notify_dispatch, within whose run no call was ever made."""
    said = Said()
    for layer, end in enumerate((150, 140, 150, 140, 150)):
        at = 200 * layer
        said.kernel(NOTIFY, at + 100, at + end, launch=(at + 60, at + 62))
        said.kernel(GEMM, at + 165, at + 250, launch=(at + 152, at + 160))
    polled = again(path, said).graph.timing.polled
    assert polled.work.tolist() == [1, 3, 5, 7, 9]
    assert polled.after_ns.tolist() == [2 * US, 12 * US, 2 * US, 12 * US, 2 * US]


def test_a_host_that_comes_much_later_than_the_counts_is_late_by_itself(path: Path) -> None:
    said = Said()
    for layer, after in enumerate((5, 200, 5)):
        at = 500 * layer
        said.kernel(NOTIFY, at + 100, at + 150, launch=(at + 60, at + 62))
        said.kernel(GEMM, at + 370, at + 450, launch=(at + 150 + after, at + 160 + after))
    found = again(path, said)
    assert by_call(found.graph.timing.polled)[4] == [(3, 5 * US)]
    assert found.graph.timing.pause_ns[4] == us(288)


def test_a_call_while_the_counts_are_made_shows_that_nobody_polls(path: Path) -> None:
    said = Said()
    for layer in range(3):
        at = 500 * layer
        said.kernel(NOTIFY, at + 100, at + 150, launch=(at + 60, at + 62))
        said.call("cudaEventRecord", at + 120, at + 121)
        said.kernel(GEMM, at + 385, at + 390, launch=(at + 375, at + 380))
    assert not len(again(path, said).graph.timing.polled)


def test_a_control_kernel_that_mostly_ends_within_calls_is_not_polled_for(path: Path) -> None:
    said = Said()
    said.kernel(NOTIFY, 100, 150, launch=(60, 62))
    said.kernel(GEMM, 165, 250, launch=(155, 160))
    said.kernel(NOTIFY, 250, 300, launch=(260, 310))
    found = again(path, said)
    assert by_call(found.graph.timing.polled) == {}


def test_a_host_that_goes_on_now_sooner_now_later_does_not_poll(path: Path) -> None:
    said = Said()
    for layer, after in enumerate((5, 45, 5, 45)):
        at = 200 * layer
        said.kernel(LAYOUT, at + 100, at + 150, launch=(at + 60, at + 62))
        said.kernel(GEMM, at + 199, at + 250, launch=(at + 150 + after, at + 152 + after))
    assert not len(again(path, said).graph.timing.polled)


def test_a_thread_hands_over_to_another(path: Path) -> None:
    said = Said()
    said.call("cudaMalloc_v3020", 110, 150)
    said.kernel(GEMM, 175, 200, launch=(170, 172), tid=1_001)
    found = again(path, said)
    assert found.graph.calls.before.tolist() == [-1, 0, 1]
    assert found.graph.calls.own_before.tolist() == [-1, 0, -1]
    assert found.times(own={1: 10})[1] == (145, 170)


def test_two_threads_at_once_do_not_wait_for_each_other(path: Path) -> None:
    said = Said()
    said.kernel(GEMM, 120, 150, launch=(105, 118))
    said.kernel(SENDRECV, 115, 200, launch=(110, 112), stream=20, tid=1_001)
    found = again(path, said)
    # the other thread began while the main thread was in its launch: both follow the first launch
    assert found.graph.calls.before.tolist() == [-1, 0, 0]
    assert found.times(own={1: 500})[1] == (115, 200)


def test_a_driver_call_within_a_runtime_call_is_one_with_it(path: Path) -> None:
    said = Said()
    said.call("cudaLaunchKernel_v7000", 120, 140)
    said.kernel(GEMM, 150, 200, launch=(125, 135), api="cuLaunchKernel")
    said.kernel(GEMM, 200, 250, launch=(145, 147))
    found = again(path, said)
    assert (found.graph.calls.start_ns / US).tolist() == [-10, 120, 145]
    assert found.graph.launched_by.tolist() == [0, 1, 2]
    assert found.times(pause={1: 108})[1] == (130, 180)


def test_a_sync_may_return_before_its_work_begins_where_the_gpus_clock_is_ahead(path: Path) -> None:
    said = Said()
    said.kernel(SENDRECV, 120, 130, launch=(112, 114), stream=20)
    said.call(SYNC, 114, 118)
    said.kernel(GEMM, 140, 200, launch=(132, 134))
    found = again(path, said)
    assert by_call(found.graph.timing.waits)[2] == [(1, -12 * US)]
    assert found.times(work={1: 30})[2] == (160, 220)


def test_a_sync_follows_work_that_began_within_another_threads_launch(path: Path) -> None:
    said = Said()
    said.kernel(SENDRECV, 140, 160, launch=(110, 150), stream=20, tid=1_001)
    said.call(SYNC, 120, 125)
    said.kernel(GEMM, 165, 200, launch=(160, 162))
    found = again(path, said)
    assert by_call(found.graph.timing.waits)[2] == [(1, -35 * US)]
    # 60 earlier, the exchange ends at 100 and the sync, begun at 120, returns at once; the last launch then
    # takes 120 to 122, and 3 to arrive
    assert found.times(pause={1: 58})[1:] == [(80, 100), (125, 160)]


def test_work_never_waits_for_later_work_of_its_stream(path: Path) -> None:
    said = Said()
    said.event(9, 1, 9, 3)
    said.kernel(GEMM, 20, 30, launch=(10, 12), stream=9)
    said.recording.kernel(GEMM, us(50), us(60), stream=9)
    found = again(path, said)
    assert found.graph.producers.max(axis=1).tolist() == [-1, -1, 1]
    assert found.times(pause={3: 1})[1] == (15, 25)


def test_a_call_that_takes_no_time_still_follows_the_call_before_it(path: Path) -> None:
    said = Said()
    said.call("cudaMalloc_v3020", 110, 150)
    said.kernel(GEMM, 175, 200, launch=(170, 170), tid=1_001)
    found = again(path, said)
    assert found.graph.calls.before.tolist() == [-1, 0, 1]
    assert found.times(own={1: 10})[1] == (145, 170)


def test_work_outside_the_window_stays_as_recorded(path: Path) -> None:
    said = Said()
    said.kernel(GEMM, 100, 150, launch=(10, 12))
    said.kernel(GEMM, 150, 250, launch=(14, 16))
    rank = rank_of(path, said)
    graph = build_graph(rank, spans((us(0), us(150))), find_queueing(rank))
    done = replay(graph, replace(graph.timing, duration_ns=graph.timing.duration_ns // 2))
    assert (done.start_ns / US).tolist() == [0, 50, 150]
    assert (done.end_ns / US).tolist() == [50, 75, 250]


def test_the_compiled_replay_is_the_interpreted_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = Said()
    said.kernel(GEMM, 155, 200, launch=(150, 152))
    said.call(SYNC, 160, 210)
    said.kernel(SENDRECV, 230, 260, launch=(220, 222), stream=9)
    found = again(path, said)
    interpreted = found.times(work={1: 90}), found.times(pause={1: 0})
    monkeypatch.setattr(loops, "COMPILED_FROM", Limit(0, "rounds", "the test's"))
    assert (found.times(work={1: 90}), found.times(pause={1: 0})) == interpreted
