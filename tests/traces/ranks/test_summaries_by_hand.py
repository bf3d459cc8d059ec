"""What a rank's summary takes of another thread, stream, process or graph beside its own: by hand, in us."""

from __future__ import annotations

import pytest

from tests.by_hand.run import Run
from tests.recordings.ranks import US, measured
from traces.names.kernels import COMM_KINDS
from traces.ranks.summary import UNKNOWN, GroupSource, Operation, RankSummary


def summary_of(run: Run, place: int = 0) -> RankSummary:
    return measured(run.rank(place))


def test_the_pace_of_a_host_is_that_of_each_thread_and_a_graphs_nodes_have_one_launch() -> None:
    """Two threads launch every 40 us each, 20 us apart; then one launches a graph of 40 nodes."""
    run = Run()
    for start, thread in ((0, 0), (1_000, 0), (2_000, 0)):
        step = run.step(start, start + 1_000)
        for number in range(20):
            step.work("gemm", 20 * number + 10, 20 * number + 20, thread=thread + number % 2)
        graph = step.call("graph_launch", 500, 502)
        for node in range(40):
            step.work("gemm", 520 + 10 * node, 530 + 10 * node, of=graph, node=node)
    assert summary_of(run).steps.pace_ns.tolist() == [40 * US] * 3


@pytest.mark.parametrize(
    ("launches", "threads", "pace_ns"),
    [(13, 1, 20 * US), (12, 1, UNKNOWN), (14, 2, 40 * US), (13, 2, UNKNOWN)],
)
def test_twelve_launches_that_follow_another_of_their_thread_tell_the_pace(
    launches: int, threads: int, pace_ns: int
) -> None:
    run = Run()
    for step in run.steps(3, every=400):
        for number in range(launches):
            step.work("gemm", 20 * number + 10, 20 * number + 20, thread=number % threads)
    assert summary_of(run).steps.pace_ns.tolist() == [pace_ns] * 3


def test_kernels_tell_of_a_gpu_by_name_and_shape_where_three_ran_alone_in_the_steps() -> None:
    run = Run()
    for step in run.steps(3, every=400):
        step.work("gemm", 0, 20)
        step.work("gemm", 50, 80, blocks=64)  # another shape
        step.work("gemm", 100, 120)
        step.work("attention", 130, 140)
        step.work("gemm", 150, 190)  # beside communication of another stream
        step.work("all_reduce", 160, 200, stream=20)
        step.work("h2d", 210, 220)
    run.work("attention", 1_300, 1_390)  # after the last step
    found = summary_of(run).kernels
    rows = zip(found.median_ns.tolist(), found.count.tolist(), found.total_ns.tolist(), strict=True)
    assert sorted(rows) == [(10 * US, 3, 30 * US), (20 * US, 6, 120 * US), (30 * US, 3, 90 * US)]
    two = Run()
    for step in two.steps(2, every=400):
        step.work("gemm", 0, 20)
    assert len(summary_of(two).kernels) == 0


def test_each_process_of_a_recording_is_a_rank_of_its_own_work_on_one_clock() -> None:
    run = Run()
    for process, us in ((0, 50), (1, 80)):
        for step in run.process(process, rank=process).steps(3, every=100):
            step.work("gemm", 0, us)
            step.work("all_reduce", us, 95, stream=20)
    first, second = (summary_of(run, place) for place in range(2))
    assert [one.steps.compute_ns.tolist() for one in (first, second)] == [[50 * US] * 3, [80 * US] * 3]
    assert [one.instances.exposed_ns.tolist() for one in (first, second)] == [[45 * US] * 3, [15 * US] * 3]
    assert [one.identity.rank for one in (first, second)] == [0, 1]
    assert [one.identity.device for one in (first, second)] == [0, 1]
    assert first.identity.clock == second.identity.clock
    assert first.identity.recording != second.identity.recording
    assert first.identity.process != second.identity.process


def test_what_is_beneath_compute_is_not_exposed_and_what_was_before_is_since_the_last_of_its_group() -> None:
    """The reduction runs from 60 to 100, and until 70 beside compute; a gather of its own group before it."""
    run = Run()
    for step in run.steps(3, every=200):
        step.work("grouped_gemm", 0, 30)
        step.work("all_gather", 30, 40, stream=24)
        step.work("gemm", 40, 70)
        step.work("all_reduce", 60, 100, stream=20)
    found = summary_of(run)
    rows = found.instances
    assert rows.operation.tolist() == [Operation.ALL_GATHER, Operation.ALL_REDUCE] * 3
    assert rows.exposed_ns.tolist() == [10 * US, 30 * US] * 3
    assert rows.compute_ns.tolist() == [UNKNOWN, UNKNOWN, *[60 * US, 50 * US] * 2]
    assert rows.grouped_ns.tolist() == [UNKNOWN, UNKNOWN, *[30 * US, 30 * US] * 2]
    assert rows.step.tolist() == [0, 0, 1, 1, 2, 2]
    assert [COMM_KINDS[kind] for kind in rows.kind.tolist()] == ["other_comm", "all_reduce"] * 3
    assert {one.source for one in found.groups} == {GroupSource.ORDER}
    assert found.steps.exposed_comm_ns.tolist() == [40 * US] * 3
    assert (found.fingerprint.has_experts, found.fingerprint.has_loss) == (True, False)


@pytest.mark.parametrize(("thread", "loads_us"), [(0, 60), (1, 0)])
def test_a_loader_counts_before_the_first_work_where_its_own_thread_launches_that(
    thread: int, loads_us: int
) -> None:
    run = Run()
    for start in (0, 300, 600):
        run.range("data", start, start + 60, thread=thread)
        step = run.step(start + 70, start + 290)
        step.work("gemm", 0, 100)
    assert summary_of(run).steps.loader_ns.tolist()[0] == loads_us * US
