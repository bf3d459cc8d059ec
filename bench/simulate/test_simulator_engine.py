from __future__ import annotations

import pytest

from bench.simulate.engine import execute
from bench.simulate.happened import Activity, Executed
from bench.simulate.host_program import (
    AUTOGRAD,
    MAIN,
    Allocate,
    Await,
    Busy,
    Engine,
    Initialise,
    Launch,
    Machine,
    Operation,
    Place,
    Program,
    Record,
    Signal,
    Spin,
    StreamWait,
    Synchronise,
    Work,
)

SMS = 100
ARRIVAL, GAP, EVENT_GAP = 5, 1, 2
PLACE = Place(0, 0, 0, "forward", "some")


def work(
    alone_ns: int = 50,
    stream: int = 7,
    engine: Engine = Engine.SMS,
    blocks: int = SMS,
    peer_ns: int = 0,
) -> Work:
    return Work("some", engine, stream, alone_ns, PLACE, blocks, peer_ns, GAP, EVENT_GAP, ARRIVAL)


def launch(
    *works: Work, returns_with: str | None = None, return_ns: int = 0, mark: int | None = None
) -> Launch:
    """A call of 10 ns, after which its work arrives."""
    return Launch("launch", works, 10, returns_with=returns_with, return_ns=return_ns, mark=mark)


def ran(
    *operations: Operation,
    queue: int = 1022,
    beside: float = 0.0,
    autograd: tuple[Operation, ...] = (),
) -> Executed:
    threads = {MAIN: operations, AUTOGRAD: autograd}
    return execute(Program(Machine(SMS, queue, beside), threads))


def times(activity: Activity) -> tuple[int, int]:
    return activity.start_ns, activity.end_ns


def test_on_an_empty_stream_work_starts_an_arrival_after_its_submission() -> None:
    (only,) = ran(Busy(100), launch(work(50))).activities
    assert times(only) == (115, 165)
    assert only.bound == "launch"


def test_behind_other_work_it_starts_a_gap_later() -> None:
    _, second = ran(launch(work(50)), launch(work(50))).activities
    assert times(second) == (66, 116)  # the first ends at 65
    assert second.bound == "stream"


def test_a_stream_waits_for_the_end_of_what_an_event_was_recorded_behind() -> None:
    first, second = ran(
        launch(work(50)), Record(1, 7, 1), StreamWait(1, 8, 1), launch(work(50, stream=8))
    ).activities
    assert first.end_ns == 65
    assert times(second) == (67, 117)
    assert second.bound == "event"


def test_an_event_recorded_before_the_work_is_not_waited_for() -> None:
    half = SMS // 2
    _, second = ran(
        Record(1, 7, 1),
        launch(work(50, blocks=half)),
        StreamWait(1, 8, 1),
        launch(work(50, stream=8, blocks=half)),
    ).activities
    assert second.start_ns == 1 + 10 + 1 + 10 + ARRIVAL


def test_a_launch_returns_only_when_the_queue_has_room() -> None:
    done = ran(*(launch(work(100)) for _ in range(4)), queue=2)
    ends = [activity.end_ns for activity in done.activities]
    assert ends[:2] == [115, 216]
    assert [call.end_ns for call in done.calls] == [10, 20, 115, 216]
    assert [activity.why_late for activity in done.activities] == ["launch", "launch", "queue", "queue"]


def test_a_pageable_copy_to_the_host_returns_after_it_and_one_to_the_device_before() -> None:
    down = launch(work(100, engine=Engine.COPY_TO_HOST), returns_with="d2h", return_ns=7)
    up = launch(work(100, engine=Engine.COPY_TO_DEVICE), returns_with="h2d", return_ns=43)
    assert ran(down).calls[0].end_ns == 115 + 7
    assert ran(up).calls[0].end_ns == 115 - 43


def test_copies_in_one_direction_take_turns_and_directions_do_not_disturb_each_other() -> None:
    first, second, other = ran(
        launch(work(100, 7, Engine.COPY_TO_HOST)),
        launch(work(100, 8, Engine.COPY_TO_HOST)),
        launch(work(100, 9, Engine.COPY_TO_DEVICE)),
    ).activities
    assert (first.end_ns, times(second), other.start_ns) == (115, (115, 215), 35)
    assert second.bound == "engine"


@pytest.mark.parametrize("scope", ["stream", "device"])
def test_a_synchronising_call_returns_late_after_the_work_it_waits_for(scope: str) -> None:
    done = ran(launch(work(100)), Synchronise(scope, 7, 2, 20), launch(work(10)))
    assert done.calls[1].end_ns == 115 + 20
    assert done.activities[1].bound == "sync"


def test_a_synchronising_call_with_nothing_to_wait_for_returns_at_once() -> None:
    done = ran(launch(work(100)), Busy(1000), Synchronise("stream", 7, 2, 20))
    assert done.calls[1].end_ns == 10 + 1000 + 2


def test_waiting_for_one_stream_or_event_is_not_waiting_for_another() -> None:
    both = (launch(work(20)), Record(1, 7, 1), launch(work(500, 8, Engine.COPY_TO_HOST)))
    for wait in (Synchronise("stream", 7, 2, 20), Synchronise("event", 1, 2, 20)):
        assert ran(*both, wait).calls[-1].end_ns == 35 + 20


def test_free_waits_for_the_whole_device_and_malloc_for_nothing() -> None:
    both = (launch(work(100)), launch(work(200, engine=Engine.COPY_TO_HOST, stream=8)))
    assert ran(*both, Allocate(30, 1, True)).calls[-1].end_ns == 225 + 30
    assert ran(*both, Allocate(30, 1, False)).calls[-1].end_ns == 20 + 30


def test_a_thread_that_hands_over_goes_on_when_the_other_is_done_without_a_call() -> None:
    done = ran(
        Signal(1),
        Await(2, 15),
        launch(work()),
        autograd=(Await(1, 15), Busy(100), launch(work()), Signal(2)),
    )
    assert [(call.thread, call.start_ns) for call in done.calls] == [(AUTOGRAD, 115), (MAIN, 115 + 10 + 15)]


def test_a_host_that_polls_goes_on_when_the_marked_work_ends() -> None:
    done = ran(launch(work(100), mark=1), launch(work(500)), Spin(1, 6), launch(work()))
    assert done.calls[2].start_ns == 115 + 6
    assert len(done.calls) == 3


def test_a_host_that_polls_late_goes_on_at_once() -> None:
    done = ran(launch(work(100), mark=1), Busy(400), Spin(1, 6), launch(work()))
    assert done.calls[1].start_ns == 10 + 400


def test_compute_is_slower_while_communication_holds_its_sms_and_no_longer() -> None:
    compute, moving = ran(
        launch(work(100, blocks=SMS)), launch(work(50, 8, Engine.COMMUNICATION, blocks=20))
    ).activities
    assert times(moving) == (25, 75)
    # 10 of 100 are done at 25; at 80 of 100 SMs the next 50 ns do 40; the last 50 need 50
    assert times(compute) == (15, 125)


def test_compute_that_leaves_sms_free_is_not_slowed_by_communication_on_those() -> None:
    compute, _ = ran(
        launch(work(100, blocks=60)), launch(work(50, 8, Engine.COMMUNICATION, blocks=20))
    ).activities
    assert times(compute) == (15, 115)


def test_traffic_beside_compute_slows_it_further() -> None:
    compute, _ = ran(
        launch(work(100, blocks=60)), launch(work(500, 8, Engine.COMMUNICATION, blocks=20)), beside=0.5
    ).activities
    assert times(compute) == (15, 25 + 135)  # 90 left at two thirds of the rate


def test_compute_of_another_stream_waits_until_it_has_room_on_the_sms() -> None:
    first, second = ran(launch(work(100, blocks=60)), launch(work(100, stream=8, blocks=41))).activities
    assert (times(first), times(second)) == ((15, 115), (115, 215))
    assert second.bound == "room"


def test_compute_kernels_that_fill_the_gpu_together_run_side_by_side() -> None:
    first, second = ran(launch(work(100, blocks=60)), launch(work(100, stream=8, blocks=40))).activities
    assert (times(first), times(second)) == ((15, 115), (25, 125))
    assert second.bound == "launch"


def test_what_was_ready_first_has_room_first() -> None:
    _, large, small = ran(
        launch(work(100, blocks=60)),
        launch(work(100, stream=8, blocks=SMS)),
        launch(work(100, stream=9, blocks=10)),
    ).activities
    assert (times(large), times(small)) == ((115, 215), (215, 315))


def test_compute_side_by_side_shares_what_communication_leaves() -> None:
    _, first, second = ran(
        launch(work(1000, 8, Engine.COMMUNICATION, blocks=20)),
        launch(work(100, 7, blocks=50)),
        launch(work(100, 9, blocks=50)),
    ).activities
    # the first has 10 of its 100 done at 35; then each has 40 of the 50 SMs it asks for, until 148
    assert (times(first), times(second)) == ((25, 148), (35, 158))


def test_a_call_of_initialisation_takes_its_own_time_and_waits_for_nothing() -> None:
    done = ran(launch(work(1000)), Initialise("cuLibraryLoadData", 300), launch(work(10, stream=8)))
    assert [call.end_ns for call in done.calls] == [10, 310, 320]


def test_communication_waits_for_its_peers_before_it_moves() -> None:
    (moving,) = ran(launch(work(50, 8, Engine.COMMUNICATION, blocks=20, peer_ns=30))).activities
    assert times(moving) == (15, 95)


def test_the_kernels_of_one_graph_launch_follow_each_other() -> None:
    done = ran(launch(work(50), work(20), work(30)))
    assert [times(activity) for activity in done.activities] == [(15, 65), (66, 86), (87, 117)]
    assert {activity.call for activity in done.activities} == {0}


def test_a_program_that_waits_for_what_never_comes_is_refused() -> None:
    with pytest.raises(ValueError, match="never comes"):
        ran(Await(1, 0))
