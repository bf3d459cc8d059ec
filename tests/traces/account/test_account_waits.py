"""Calls that wait for GPU work, nodes of graphs, and work under a late launch, at each limit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.by_hand.run import Run
from tests.recordings.replay import begun
from traces.account.account import absent_pieces, measure_account
from traces.account.calls import host_calls
from traces.account.device import find_queueing
from traces.account.pieces import REASON, AbsentPieces
from traces.account.waits import find_polls, token_count_reads
from traces.intervals import spans

US = 1_000


def blocked(run: Run, place: int = 0, **how: Any) -> dict[str, float]:
    """The work that held calls up, by kind."""
    found = run.account(place, **how)
    return {kind.partition(".")[2]: time for kind, time in found.items() if kind.startswith("blocking")}


@pytest.mark.parametrize(
    ("launch", "end", "called", "process", "held"),
    [
        (20, 160, 30, 0, 60),
        (29, 160, 30, 0, 60),
        (30, 160, 30, 0, 0),  # launched as the call began
        (40, 160, 30, 0, 0),  # launched after the call began: it cannot have waited for that
        (20, 170, 30, 0, 70),  # ends as the call returns
        (20, 171, 30, 0, 0),  # still runs when the call has returned
        (20, 130, 130, 0, 0),  # had ended when the call began
        (20, 160, 30, 1, 0),  # of another process on the GPU
    ],
)
def test_a_call_waits_only_for_what_its_process_launched_before_it_and_ends_within_it(
    launch: float, end: float, called: float, process: int, held: float
) -> None:
    run = begun()
    about: dict[str, Any] = {"stream": 20, "thread": 1 - process}
    run.process(process, device=0).work("send_recv", 100, end, launch=(launch, launch + 1), **about)
    run.call("device_sync", called, 170)
    run.work("gemm", 190, 250, launch=(180, 185))
    assert blocked(run) == ({"sendrecv_unresolved": held} if held else {})
    assert run.account().masked == 0


@pytest.mark.parametrize("calls", ["malloc", "free"])
def test_of_calls_for_memory_only_one_that_gives_it_back_at_once_waits(calls: str) -> None:
    run = begun()
    run.work("send_recv", 100, 160, launch=20, stream=20)
    run.call(calls, 30, 170)
    run.work("gemm", 190, 250, launch=(180, 185))
    waits = {"sendrecv_unresolved": 60} if calls == "free" else {}
    assert blocked(run) == waits
    assert run.account()["launch_starved.allocator"] == 70 - sum(waits.values())


def test_a_copy_call_waits_for_no_copy_of_another_call() -> None:
    run = begun()
    run.work("h2d", 110, 120, launch=(105, 106), stream=20)
    run.work("d2h", 135, 140, launch=(115, 145), stream=21)
    run.work("gemm", 200, 260, launch=(190, 195))
    # the first ends within the second's call, which began later: both copies are awaited there
    assert blocked(run) == {"memcpy_h2d": 5, "memcpy_d2h": 5}


@pytest.mark.parametrize(("back", "held"), [(125, {}), (125.001, {"memcpy_d2h": 10})])
def test_a_copy_call_of_over_twenty_microseconds_waits_for_its_own_copy(
    back: float, held: dict[str, float]
) -> None:
    run = begun()
    run.work("d2h", 110, 120, launch=(105, back))
    run.work("gemm", 200, 260, launch=(190, 195))
    assert blocked(run) == held


@pytest.mark.parametrize(("launches", "held"), [(919, 90), (918, 0)])
def test_a_launch_waits_for_room_where_nearly_as_many_are_in_flight_as_the_queue_holds(
    launches: int, held: float
) -> None:
    run = begun()
    for number in range(launches):
        run.work("gemm", 1_000 + number, 1_001 + number, launch=(number // 20, number // 20 + 1))
    end = 1_000 + launches
    run.work("send_recv", end, end + 90, launch=(70, 71), stream=20)
    # as it begins, the first kernel ends
    run.work("gemm", end + 100, end + 200, launch=(100, end + 95))
    assert blocked(run, window=(end, end + 200)) == ({"sendrecv_unresolved": held} if held else {})


@pytest.mark.parametrize(
    ("size", "way", "read"),
    [
        (64 * 1024, "d2h", True),
        (64 * 1024 + 1, "d2h", False),
        (0, "d2h", True),
        (-1, "d2h", False),  # unknown
        (256, "h2d", False),
        (256, "d2d", False),
    ],
)
def test_token_counts_are_read_by_copies_to_the_host_of_64_kib_at_most(
    size: int, way: str, read: bool
) -> None:
    run = begun()
    run.work(way, 100, 104, launch=20, size_bytes=size)
    run.work("gemm", 110, 120, launch=30)
    assert token_count_reads(run.rank()).tolist() == [False, read, False]


def reading(routing: str = "permute", call: str = "sync", **copy: Any) -> Run:
    """A small copy 100-104 and a synchronisation 30-120; then routed tokens are computed."""
    run = begun()
    run.work("d2h", 100, 104, **{"launch": 20, "size_bytes": 256} | copy)
    run.call(call, 30, 120)
    run.work(routing, 150, 200, launch=(145, 148))
    return run


def later_copy(run: Run, start: float = 105, end: float = 110) -> Run:
    run.work("h2d", start, end, launch=25, size_bytes=1 << 20)
    return run


@pytest.mark.parametrize(
    ("run", "cause", "in_call"),
    [
        (reading(), "token_count_sync", 16),
        (reading("router"), "token_count_sync", 16),
        (reading("gemm"), "sync", 16),  # nothing is routed
        (reading(size_bytes=64 * 1024 + 1), "sync", 16),
        (reading(launch=35, thread=1), "sync", 20),  # launched after the call began
        (later_copy(reading()), "sync", 11),  # of its stream a larger copy was the last
        (later_copy(reading(stream=20)), "token_count_sync", 11),  # of another stream it was the last
        (later_copy(reading(), 103, 104), "token_count_sync", 16),  # of equals the read says more
        (reading(call="free"), "", 0),  # who frees waits for all work, and reads nothing
    ],
)
def test_a_synchronisation_reads_token_counts_where_such_a_copy_was_the_last_of_its_stream(
    run: Run, cause: str, in_call: float
) -> None:
    """What of 100-120 no awaited copy took; then it is cold until the launch at 145."""
    syncs = {name: time for name, time in run.account().items() if "sync" in name}
    assert syncs == ({f"launch_starved.{cause}": in_call + 25} if cause else {})


@pytest.mark.parametrize(
    ("gathers_on", "waits_at", "stream", "held"),
    [
        *((24, at, 7, held) for at, held in ((22, 60), (20, 60), (18, 0), (30, 0), (40, 0))),
        (24, 22, 9, 60),
        *((7, None, None, 60), (24, None, None, 0)),  # unknown: those on which not only communication runs
    ],
)
def test_who_synchronises_with_one_stream_may_wait_for_another_where_some_stream_was_told_to(
    gathers_on: int, waits_at: float | None, stream: int | None, held: float
) -> None:
    """Told between the launch of the gather, at 20, and the call at 30."""
    run = begun()
    run.work("all_gather", 100, 160, launch=20, stream=gathers_on)
    if waits_at is not None:
        run.call("stream_wait", waits_at, waits_at + 1)
    run.call("sync", 30, 170, stream=stream)
    run.work("gemm", 190, 250, launch=(180, 185))
    assert blocked(run) == ({"other_comm": held} if held else {})
    assert run.account().masked == 60 - held


def test_of_several_that_run_apart_the_call_outlasted_the_last() -> None:
    run = begun()
    run.work("all_gather", 100, 130, launch=20, stream=24)
    run.work("all_gather", 105, 160, launch=22, stream=25)
    run.call("sync", 30, 170)
    run.work("gemm", 190, 250, launch=(180, 185))
    assert (blocked(run), run.account().masked) == ({}, 55)


FAR = (0, 400, 0, 400, 0)


def polling(after: tuple[float, ...] = (5, 5, 5), name: str = "layout", later: tuple[int, ...] = FAR) -> Run:
    """In each layer a control kernel ends at 150, or so much later, and a launch comes so long after that."""
    run = begun()
    for layer, late in enumerate(after):
        at = 2_000 * (layer + 1)
        end = at + 150 + later[layer]
        run.work("gemm", at, at + 90)
        run.work(name, at + 100, end, launch=at + 60, stream=20)
        run.work("gemm", end + late + 20, at + 1_900, launch=(end + late, end + late + 5))
    return run


def polls_of(run: Run) -> list[tuple[float, float, bool]]:
    """How long each call came after the kernel, how soon at least, and whether that is late."""
    rank = run.rank()
    found = find_polls(rank, host_calls(rank, (-(1 << 40), 1 << 40)))
    return [(poll.after_ns / US, poll.soonest_ns / US, poll.is_late) for poll in found]


@pytest.mark.parametrize(
    ("run", "count"),
    [
        (polling(), 3),
        (polling((0, 0, 0)), 3),  # as each ended
        (polling((5, 5)), 0),  # two may be chance
        (polling((5, 5, 5, 100)), 4),
        (polling((5, 5, 5, 300)), 0),  # three of four
        (polling((5,) * 9 + (300,), later=FAR * 2), 10),
        (polling((199,) * 3), 3),
        (polling((200,) * 3), 0),  # no host that polls comes as late
        (polling(later=(0, 0, 0)), 3),
        (polling((5, 5, 5, 5, 15), later=(0, 0, 0, 10, 0)), 5),  # pauses vary by 20, what comes after by 10
        (polling((5, 5, 5, 5, 15), later=(0, 0, 0, 9, 0)), 0),
        (polling(name="gemm"), 0),
        (polling(name="send_recv"), 0),
    ],
)
def test_a_host_that_comes_as_soon_after_most_control_kernels_has_polled_for_them(
    run: Run, count: int
) -> None:
    assert len(polls_of(run)) == count


def test_a_poll_is_a_wait_for_its_kernel_from_the_call_before_on() -> None:
    """A kernel until 2,090, the control kernel 2,100-2,150, a launch 2,155-2,160 and its kernel at 2,175."""
    held = {"blocking.ep_control": 50, "launch_latency.arrival": 15}
    host = {"launch_starved.token_count_sync": 10 + 5, "launch_starved.launch": 5}
    assert polling().account(window=(2_000, 2_200)) == held | host


@pytest.mark.parametrize(("late", "is_late"), [(199, False), (200, True)])
def test_a_poll_is_late_where_the_host_was_busy_for_a_fifth_of_a_millisecond(
    late: float, is_late: bool
) -> None:
    found = polls_of(polling((5, late, 5), name="token_counts"))
    assert found == [(5, 5, False), (late, 5, is_late), (5, 5, False)]


@pytest.mark.parametrize("later", [True, False])
def test_a_kernel_that_ended_within_a_call_was_not_polled_for(later: bool) -> None:
    run = polling((5, 5, 5))
    run.work("gemm", 9_000, 9_090)
    run.work("layout", 9_100, 9_150, launch=9_060, stream=20)
    run.call("malloc", 9_140, 9_150)
    run.work("gemm", 9_200, 9_300, launch=9_160 if later else 9_130)
    assert len(polls_of(run)) == 0  # three of four: the last ended as the call returned


@pytest.mark.parametrize(("called", "count"), [(0, 3), (2_120, 0), (2_062, 0), (2_150, 3)])
def test_a_kernel_that_is_polled_by_name_was_not_where_the_host_called_meanwhile(
    called: float, count: int
) -> None:
    """After one of three layers the host comes 205 us later, so that its pauses tell nothing."""
    run = polling((5, 210, 5), name="token_counts")
    if called:  # from the return of its launch until it ends
        run.call("malloc", called, called + 2)
    assert len(polls_of(run)) == count


def test_polls_of_another_process_are_no_polls_of_this_one() -> None:
    run = begun()
    for layer in range(3):
        at = 1_000 * (layer + 1)
        run.process(1, device=0).work("layout", at + 100, at + 150, launch=at + 60, stream=20)
        run.work("gemm", at + 180, at + 900, launch=(at + 155, at + 160))
    assert polls_of(run) == []


def replayed(*nodes: tuple[str, float, float], launch: float = 150) -> Run:
    """A kernel until 100, then the nodes of one graph launched at 150 to 160, each on a stream of its own."""
    run = Run()
    run.work("gemm", 0, 100)
    number = run.call("graph_launch", launch, launch + 10)
    for node, (name, start, end) in enumerate(nodes):
        run.work(name, start, end, of=number, node=node, stream=7 if name == "gemm" else 20 + node)
    return run


@pytest.mark.parametrize(
    ("nodes", "opaque", "ran"),
    [
        ((("gemm", 165, 200), ("gemm", 230, 300)), 30, {}),
        ((("gemm", 165, 200), ("d2d", 210, 220), ("gemm", 230, 300)), 20, {"memcpy_d2d": 10}),
        # of two that ran at once the one that ends last
        (
            (("gemm", 165, 200), ("d2d", 200, 225), ("send_recv", 210, 220), ("gemm", 230, 300)),
            5,
            {"memcpy_d2d": 25},
        ),
        # the copy came first of all: what lies before it is judged by the launch
        ((("d2d", 165, 170), ("gemm", 180, 200), ("gemm", 230, 300)), 10 + 30, {"memcpy_d2d": 5}),
    ],
)
def test_between_nodes_of_a_replay_nothing_is_known_but_what_other_nodes_did(
    nodes: tuple[tuple[str, float, float], ...], opaque: float, ran: dict[str, float]
) -> None:
    host = {"launch_starved.python": 50, "launch_starved.launch": 10, "launch_latency.arrival": 5}
    named = {f"blocking.{kind}": time for kind, time in ran.items()}
    found = replayed(*nodes).account()
    assert found == host | named | {"graph_opaque": opaque}
    assert found.decided == {"recorded": 65 + sum(ran.values()), "none": opaque}


def test_the_second_of_two_replays_begins_with_its_own_launch() -> None:
    run = replayed(("gemm", 165, 200), ("gemm", 230, 300))
    second = run.call("graph_launch", 340, 350)
    run.work("gemm", 355, 400, of=second, node=0)
    run.work("gemm", 410, 450, of=second, node=1)
    host = {"launch_starved.python": 50 + 40, "launch_starved.launch": 20, "launch_latency.arrival": 10}
    assert run.account() == host | {"graph_opaque": 30 + 10}


def test_a_wait_before_a_replay_is_of_its_first_node_whatever_its_kind() -> None:
    """The first node copies; the kernel that ends the gap is the second."""
    run = replayed(("d2d", 165, 170), ("gemm", 170, 200))
    host = {"launch_starved.python": 50, "launch_starved.launch": 10, "launch_latency.arrival": 5}
    assert run.account() == host | {"blocking.memcpy_d2d": 5}


@pytest.mark.parametrize(("empty", "refused"), [(1, False), (2, True)])
def test_graphs_of_which_over_a_twentieth_shows_no_work_leave_no_account(empty: int, refused: bool) -> None:
    run = Run()
    run.work("norm", -1_000, -950)
    for turn in range(20):
        begin = 100 * turn
        number = run.call("graph_launch", begin - 10, begin - 8)
        if turn not in range(5, 5 + empty):
            run.work("gemm", begin, begin + 50, of=number, node=1)
    if refused:
        with pytest.raises(LookupError, match=r"10 % .* show no work.* but for 940 us before"):
            run.account()
    else:
        assert sum(run.account().values()) == 950 + 1_950 - 19 * 50


def late(*under: tuple[str, float, float], launch: float = 150) -> Run:
    """A kernel until 100, a launch at 150 to 160, and before it work of its stream, launched long ago."""
    run = Run()
    run.work("gemm", 0, 100)
    for place, (name, start, end) in enumerate(under):
        run.work(name, start, end, launch=10 + 2 * place)
    run.work("gemm", 205, 300, launch=(launch, launch + 10))
    return run


@pytest.mark.parametrize(
    ("run", "window", "masked"),
    [
        (late(), None, 0),
        (late(("send_recv", 100, 120)), None, 20),
        (late(("send_recv", 110, 155)), None, 45),
        (late(("send_recv", 110, 203)), None, 50),  # until the launch had returned
        (late(("send_recv", 90, 203)), None, 60),  # beside compute nothing is late
        (late(("send_recv", 161, 203)), None, 0),
        (late(("send_recv", 100, 120)), (110, 300), 10),  # as far as the window goes
        (late(("send_recv", 100, 120)), (0, 115), 15),
        (late(("send_recv", 100, 120)), (130, 300), 0),
    ],
)
def test_what_the_host_is_late_while_a_producer_runs_is_masked(
    run: Run, window: tuple[float, float] | None, masked: float
) -> None:
    assert run.account(window=window).masked == masked


def test_the_first_work_of_all_masks_what_is_late_behind_it() -> None:
    run = Run()
    run.work("send_recv", 0, 120, launch=-10)
    run.work("gemm", 205, 300, launch=(150, 160))
    assert run.account(window=(0, 300)).masked == 120


def test_the_pieces_hold_every_reason_with_the_work_and_the_kernel_behind_it() -> None:
    rank = late(("send_recv", 110, 170)).rank()
    found = absent_pieces(measure_account(rank, spans((0, 320_000)), find_queueing(rank)))
    assert isinstance(found, AbsentPieces)
    columns = (found.start_ns // 1_000, found.end_ns // 1_000, found.reason, found.work, found.kernel)
    rows = sorted(zip(*(column.tolist() for column in columns), strict=True))
    # work and kernel by their places: 1 is the exchange, 2 the late kernel, 0 the first
    assert [row for row in rows if row[0] >= 150] == [
        (150, 160, REASON["launch_starved.launch"], -1, 2),
        (160, 170, REASON["blocking.sendrecv_unresolved"], 1, 2),
        (170, 192, REASON["launch_latency.kernel_gap"], -1, 2),  # twice this trace's own, of 10 to 35
        (192, 205, REASON["dependency_stalled"], -1, 2),
        (300, 320, REASON["trailing"], -1, -1),
    ]
    assert {row[2:] for row in rows if row[0] < 150} == {(REASON["launch_starved.python"], -1, 2)}


def test_of_two_copies_that_end_as_one_a_blocking_copy_waits_for_its_own() -> None:
    run = Run()
    run.work("gemm", 0, 100)
    run.work("h2d", 105, 150, launch=95, pageable=False)
    run.work("d2h", 110, 150, launch=(100, 155), stream=30, pageable=True)
    run.work("gemm", 160, 200, launch=155)
    assert blocked(run) == {"memcpy_h2d": 5, "memcpy_d2h": 40}


@pytest.mark.parametrize(
    ("work", "held_us"),
    [("d2h", 90), ("memset", 90), ("all_reduce", 0)],  # of another stream: communication alone runs apart
)
def test_who_waits_for_one_stream_may_be_held_by_a_copy_of_another_but_by_no_communication(
    work: str, held_us: int
) -> None:
    run = Run()
    run.work("gemm", 0, 100, launch=-10)
    run.work(work, 90, 190, launch=50, stream=30)
    run.call("sync", 95, 191, stream=7)
    run.work("gemm", 200, 300, launch=195)
    told = run.account()
    assert sum(told[key] for key in told if key.startswith("blocking.")) == held_us
    assert told.masked == 90 - held_us  # what the call outlasted, though it did not wait for it


@pytest.mark.parametrize(
    ("call", "launch", "stream", "unrecorded"),
    [
        ((30, 1_000), 5, 9, 960),  # both wait for what was launched before the recording
        ((30, 500), 5, 9, 470),  # the rest is unexplained
        ((30, 1_000), 5, 7, 0),  # work of its stream ran: what it waits for came in between
        (None, 5, 9, 0),
        ((30, 980), 985, 9, 0),  # it was not there to wait
    ],
)
def test_a_streams_first_work_waits_with_its_host_for_what_was_not_recorded(
    call: tuple[float, float] | None, launch: float, stream: int, unrecorded: float
) -> None:
    run = Run()
    run.work("norm", 0, 20, launch=-10, stream=7)
    if call is not None:
        run.call("sync", *call)
    run.work("gemm", 990, 1_090, launch=launch, stream=stream)
    assert run.account().get("blocking.unrecorded", 0) == unrecorded


@pytest.mark.parametrize(("stream", "held"), [(20, 140), (7, 0)])
def test_a_call_that_names_the_stream_of_an_exchange_is_held_by_it(stream: int, held: int) -> None:
    """It is on stream 20, from 60 to 200, and so is the call; compute follows later."""
    run = Run()
    run.work("gemm", 0, 50)
    run.work("send_recv", 60, 200, launch=20, stream=20)
    run.call("sync", 55, 200, stream=stream)
    run.work("gemm", 230, 300, launch=220)
    assert run.account().get("blocking.sendrecv_unresolved", 0) == held
