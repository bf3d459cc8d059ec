"""Nodes of CUDA graphs, work that ran under a late launch, and when there is no account at all."""

from __future__ import annotations

import pytest

from tests.by_hand.run import Run
from traces.account.account import absent_pieces, measure_account
from traces.account.device import find_queueing
from traces.account.pieces import REASON, AbsentPieces
from traces.intervals import spans


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
    for turn in range(20):
        begin = 100 * turn
        number = run.call("graph_launch", begin - 10, begin - 8)
        if turn not in range(5, 5 + empty):
            run.work("gemm", begin, begin + 50, of=number, node=1)
    if refused:
        with pytest.raises(LookupError, match="10 % of the CUDA graph launches show no work"):
            run.account()
    else:
        assert sum(run.account().values()) == 1_950 - 19 * 50


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
