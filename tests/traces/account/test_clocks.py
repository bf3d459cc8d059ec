"""Whether host and GPU clocks agree, and what a trace's own latencies are, at the edges of their limits."""

from __future__ import annotations

import pytest

from tests.by_hand.run import Run
from traces.account.clocks import clock_offset_ns
from traces.account.device import Latencies, find_queueing, most_ns

US = 1_000


def behind(late: float, count: int = 40, call: float = 2, pause: int = 50) -> Run:
    """Kernels of 100 us with a pause between, each launched so long before it starts, in a call of `call`."""
    run = Run()
    for turn in range(count):
        begin = 3_000 + (100 + pause) * turn
        run.work("gemm", begin, begin + 100, launch=(begin - late, begin - late + call))
    return run


def with_early(early: int, of: int, by: float) -> Run:
    """Some of so many kernels start before their launch."""
    run = Run()
    for turn in range(of):
        begin = 200 * turn
        run.work("gemm", begin, begin + 100, launch=begin + (by if turn < early else -10))
    return run


@pytest.mark.parametrize(
    ("run", "offset_us"),
    [
        (behind(late=50, call=101), 0),
        (behind(late=51, call=102), 51),
        (behind(late=500, call=450), 0),  # a first launch that loads its module
        (behind(late=500, call=449), 500),
        (behind(late=300, call=350), 0),  # its return may be 50 late
        (behind(late=300, call=351), 300),
        (behind(late=3_000, count=32), 3_000),
        (behind(late=3_000, count=31), 0),  # few launches say nothing
        (behind(late=3_000, pause=1), 0),  # a host that stays ahead is trusted whatever its clock
        (behind(late=3_000, pause=2), 3_000),  # 2 us of every 102 would be the host's: more than 1 %
        (with_early(early=1, of=100, by=51), 0),  # one of a hundred may bear another call's number
        (with_early(early=2, of=100, by=51), -51),
        (with_early(early=2, of=100, by=50), 0),  # no more than a skew
    ],
)
def test_clocks_are_apart_where_no_work_follows_its_launch_soon_or_much_comes_before_it(
    run: Run, offset_us: float
) -> None:
    assert clock_offset_ns(run.rank()) == offset_us * US


def test_a_copy_that_follows_its_launch_proves_the_clocks_but_is_no_launch_of_a_kernel() -> None:
    run = behind(late=3_000)
    run.work("h2d", 9_500, 9_510, launch=9_490)
    assert clock_offset_ns(run.rank()) == 0
    only = Run()
    only.work("gemm", 0, 10, launched=False)
    only.work("h2d", 10, 20, launch=0)
    assert clock_offset_ns(only.rank()) is None


@pytest.mark.parametrize(("early", "offset_us"), [(50, 0), (51, -51)])
def test_work_that_starts_a_skew_before_its_launch_proves_the_clocks(early: float, offset_us: float) -> None:
    run = behind(late=3_000, count=100)
    run.work("norm", 9_500, 9_510, launch=9_500 + early, stream=8)
    assert clock_offset_ns(run.rank()) == offset_us * US


def test_work_of_another_process_proves_no_clock_of_this_one() -> None:
    run = behind(late=3_000)
    run.process(1, device=0).work("gemm", 9_500, 9_510, launch=9_490)
    assert clock_offset_ns(run.rank(0)) == 3_000 * US


END = 3_000 + 150 * 39 + 100


@pytest.mark.parametrize(
    ("begin", "until", "thread", "proves"),
    [
        (6_000, END, 0, True),
        (6_000, END + 50, 0, True),
        (6_000, END + 51, 0, False),
        (6_000, END - 1, 0, False),  # returned before its work ended
        (6_000, END + 10, 1, False),  # of a thread that launches nothing
        (END, END + 20, 0, True),
        (END + 1, END + 20, 0, False),  # all was done when it began
        (5_850, END + 20, 0, False),  # the last work was launched as it began, the one before ends 150 sooner
        (5_851, END + 20, 0, True),
        (-10, END + 20, 0, False),  # nothing was launched
    ],
)
def test_a_synchronisation_proves_the_clocks_where_it_returns_soon_after_the_last_work_before_it(
    begin: float, until: float, thread: int, proves: bool
) -> None:
    run = behind(late=3_000)
    run.call("device_sync", begin, until, thread=thread)
    assert clock_offset_ns(run.rank()) == (0 if proves else 3_000 * US)


@pytest.mark.parametrize("back", [END, END + 500])
def test_a_synchronisation_with_the_work_of_one_stream_proves_the_clocks_beside_another(back: int) -> None:
    run = behind(late=3_000)
    run.work("send_recv", END, END + 500, launch=5_000, stream=20)
    run.call("sync", 6_000, back + 10)
    assert clock_offset_ns(run.rank()) == 0


def latencies(run: Run) -> Latencies:
    return find_queueing(run.rank()).latencies


def arriving(*after: float) -> Run:
    """Kernels launched onto an empty GPU, so long after their launch returned."""
    run = Run()
    for turn, late in enumerate(after):
        at = 1_000 * turn
        run.work("gemm", at + late, at + 500, launch=(at - 2, at))
    return run


@pytest.mark.parametrize(
    ("after", "least", "usual"),
    [
        ((3, 3, 3), 3, 3),
        ((3, 3, 50), 3, 3),  # what takes longer than 5 us waited for something, and is not usual
        ((3, 5, 5), 3.2, 5),
        ((4, 4, 8, 8, 8), 4, 8),  # up to 8 may count
        ((10, 10, 20), 10, 10),
        ((10, 19, 20), 10.9, 19),
        ((51, 51, 51), 0, 0),  # over 50 it followed work that was not recorded
        ((50, 50, 50), 50, 50),
    ],
)
def test_arrival_is_what_launches_onto_an_empty_gpu_take(
    after: tuple[float, ...], least: float, usual: float
) -> None:
    found = latencies(arriving(*after))
    assert (found.arrival_ns, found.usual_arrival_ns) == (least * US, usual * US)
    assert (found.gap_ns, found.usual_gap_ns) == (0, 0)


def test_what_came_while_its_producer_ran_is_a_gap_and_no_arrival() -> None:
    run = Run()
    run.work("gemm", 0, 102)  # the first begins as it ends: one of twenty may
    for turn in range(3):
        begin = 102 + 102 * turn
        run.work("gemm", begin, begin + 100, launch=begin - 40)
    found = latencies(run)
    assert (found.gap_ns, found.usual_gap_ns, found.arrival_ns) == (0.2 * US, 2 * US, 8 * US)


@pytest.mark.parametrize(("launch", "arrival"), [(100, 2.3), (99.999, 8)])
def test_a_launch_as_its_producer_ends_comes_onto_an_empty_gpu(launch: float, arrival: float) -> None:
    """The first kernel arrives 8 after its launch returned, this one 2: a twentieth of the way up is 2.3."""
    run = Run()
    run.work("gemm", 0, 100)
    run.work("gemm", 103, 200, launch=(launch, 101))
    assert latencies(run).arrival_ns == arrival * US


def test_nodes_of_a_graph_but_its_first_make_no_gap_usual() -> None:
    run = Run()
    run.work("gemm", 0, 100)
    for turn in range(2):
        at = 104 + 300 * turn
        number = run.call("graph_launch", at - 60, at - 50)
        run.work("gemm", at, at + 100, of=number, node=1)
        run.work("gemm", at + 101, at + 200, of=number, node=2)
        run.work("gemm", at + 201, at + 296, of=number, node=3)
    assert latencies(run).gap_ns == 4 * US  # 100 to 104, 400 to 404; between nodes it is 1


@pytest.mark.parametrize(("least_us", "most_us"), [(0, 5), (2, 5), (2.5, 5), (3, 6), (8, 16)])
def test_latency_is_up_to_five_microseconds_or_twice_the_traces_own(least_us: float, most_us: float) -> None:
    assert most_ns(round(least_us * US)) == most_us * US


@pytest.mark.parametrize(("late", "arrival", "stalled"), [(15, 15, 0), (16, 16, 0), (17, 16, 1)])
def test_after_its_launch_a_kernel_is_late_up_to_twice_the_usual_and_then_stalled(
    late: float, arrival: float, stalled: float
) -> None:
    """The first kernel arrives 8 after its launch returned, all others but this one as well."""
    run = Run()
    for at in range(0, 2_000, 200):
        run.work("gemm", at, at + 50)
    run.work("norm", 2_000 + late, 2_100, launch=(1_990, 2_000))
    found = run.account(window=(1_990, 2_100))
    launch = {"launch_starved.launch": 10, "launch_latency.arrival": arrival}
    assert found == launch | ({"dependency_stalled": stalled} if stalled else {})
    assert found.decided == {"recorded": 10 + arrival} | ({"none": stalled} if stalled else {})


@pytest.mark.parametrize(("late", "gap", "stalled"), [(4, 4, 0), (5, 5, 0), (6, 5, 1)])
def test_after_its_producer_a_kernel_has_a_gap_of_five_at_most_and_is_then_stalled(
    late: float, gap: float, stalled: float
) -> None:
    run = Run()
    run.work("gemm", 0, 100)
    for at in range(100, 400, 100):
        run.work("gemm", at + 1, at + 100, launch=10 + at / 10)
    run.work("norm", 400 + late, 500, launch=60)
    found = run.account(window=(350, 500))
    assert found == {"launch_latency.kernel_gap": gap} | ({"dependency_stalled": stalled} if stalled else {})


def test_where_launch_and_producer_end_at_once_the_launch_was_last() -> None:
    run = Run()
    run.work("gemm", 0, 100)
    run.work("norm", 103, 200, launch=(90, 100))
    assert run.account() == {"launch_latency.arrival": 3}
    assert latencies(run).gap_ns == 0


def test_of_two_producers_yet_to_come_the_question_goes_to_the_one_that_ends_last() -> None:
    """A norm waits for two streams; both of its producers were launched long ago and began late."""
    run = Run()
    run.work("gemm", 0, 100)
    run.work("send_recv", 50, 140, launch=12, stream=30)
    run.wait(30, by=20, recorded=14, waits=16)
    run.work("d2d", 142, 200, launch=18, stream=20)
    run.wait(20, by=7, recorded=20, waits=22)
    run.work("h2d", 110, 150, launch=24, stream=21)
    run.wait(21, by=7, recorded=26, waits=28)
    run.work("norm", 203, 300, launch=30)
    # 100-110 neither had begun, and the copy until 200 waited for the exchange; then the one that ends last
    blocking = {"sendrecv_unresolved": 10, "memcpy_h2d": 32, "memcpy_d2d": 58}
    named = {f"blocking.{kind}": time for kind, time in blocking.items()}
    assert run.account() == named | {"launch_latency.kernel_gap": 3}


def test_a_graph_of_many_kernels_is_one_launch_to_judge_clocks_by() -> None:
    """Eight replays of five kernels, each 100 us after its launch: fewer than 32 launches say nothing."""
    run = Run()
    for replay in range(8):
        at = run.at(1_000 * replay)
        launch = at.call("graph_launch", 0, 2)
        for node in range(5):
            at.work("gemm", 100 + 10 * node, 110 + 10 * node, of=launch, node=node + 1)
    assert clock_offset_ns(run.rank()) == 0
