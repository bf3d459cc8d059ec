"""Parts of what is measured of a rank, each at its edges: plain values in, round numbers out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from msgspec import UNSET

from tests.by_hand.run import Run, written
from tests.recordings.launches import GATHER, Line
from tests.recordings.payloads import collective, init, with_payloads
from traces.arrays import NOWHERE
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.measure.capture import measure_capture, measure_messages
from traces.measure.data_loading import waits_of, workers_by_rhythm
from traces.measure.recompute import Recompute, _judge
from traces.measure.recompute_extent import pair_units
from traces.measure.sm import stretch_by_sms
from traces.measure.step_timeline import _others, typical_step
from traces.missing import Missing
from traces.sections.tables import LedgerRow
from traces.steps.found import Step, from_steps, one_window


@pytest.mark.parametrize(
    ("text", "may_be_cut", "again"),
    [
        ("f" * 11 + "b" * 10, True, 0),  # a pass too many lies at an edge of the window
        *(("f" * 12 + "b" * 10, True, None), ("f" * 11 + "b" * 10, False, None)),
        *(("f" * 10 + "b" * 10, False, 0), ("f" * 10 + "fb" * 10, True, 10), ("f" * 9 + "fb" * 10, True, 10)),
        ("f" * 8 + "fb" * 10, True, None),  # some layers are not repeated, and which is unknown
        ("f" * 12 + "fb" * 10, True, 10),
        ("f" * 13 + "fb" * 10, True, None),  # forward work of its own
        ("f" * 11 + "fb" * 9, True, 9),  # nine tenths of 20 are twice as many as 9
        ("b" * 2 + "f" * 4 + "fb" * 2, True, 2),
    ],
)
def test_passes_run_again_are_counted_where_counts_leave_one_explanation(
    text: str, may_be_cut: bool, again: int | None
) -> None:
    kinds = np.array([*text])
    forward, backward = kinds == "f", kinds == "b"
    nobody = np.zeros(len(kinds), dtype=np.bool_)
    found = _judge(np.arange(len(kinds)), forward, backward, nobody, may_be_cut)
    assert (found.passes.recomputed_count, found.open_ is None) == (again, again is not None)
    assert found.again.sum() == (again or 0)
    if again:  # each right before its backward pass
        before_backward = [at for at, two in enumerate(pairwise(text)) if two == ("f", "b")]
        assert np.flatnonzero(found.again).tolist() == before_backward[-again:]
        assert found.first.sum() == forward.sum() - again
    backwards = _judge(np.arange(len(kinds))[::-1], forward, backward, backward, may_be_cut)
    assert (backwards.passes.recomputed_count, backwards.passes.evidence) == (0, "threads")


@pytest.mark.parametrize(
    ("first", "again", "originals"),
    [
        ("abab", "ab", [2, 3]),  # the latest stretch of both, in their order
        ("aba", "ab", [0, 1]),
        ("abaa", "ab", [0, 1]),
        ("ba", "ab", [1, 0]),  # none stands in that order: each the latest of its own
        ("a", "aa", [0, -1]),
        ("ab", "b|a", [1, 0]),  # two units, parted by a backward kernel
        ("aab", "a|a|a", [1, 0, -1]),
    ],
)
def test_what_runs_again_is_paired_by_units_with_first_runs_each_used_once(
    first: str, again: str, originals: list[int]
) -> None:
    letters, order = np.array([*first, "|", *again]), np.arange(len(first) + 1 + len(again))
    backward, is_again = letters == "|", order > len(first)
    masks = is_again & ~backward, ~is_again & ~backward, backward
    found = pair_units(order, (letters == "b").astype(np.int64), *masks)
    assert found[1].tolist() == originals
    assert found[0].tolist() == np.flatnonzero(masks[0]).tolist()


def test_blocks_of_communication_add_up_while_it_runs_at_once_in_the_window() -> None:
    run = Run()
    run.work("gemm", 0, 10)
    run.work("all_reduce", 0, 100, blocks=10, stream=20)
    run.work("all_gather", 50, 150, blocks=20, stream=21)
    run.work("all_reduce", 150, 175, blocks=8, stream=21)  # as the one before it ends
    run.work("all_reduce", 200, 250, blocks=4, stream=21)
    for window, most, mean in (
        *(((0, 150), 30, 20.0), ((49.999, 50), 10, 10.0), ((100, 200), 20, 16.0), ((125, 250), 20, 9.0)),
    ):
        sm = run.measured(window=window).sm
        assert (sm.comm_blocks, sm.comm_blocks_mean) == (most, mean)
    run.recording.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["gridX"] = None
    unknown = run.measured(window=(0, 300)).sm
    assert isinstance(unknown.comm_blocks, Missing)
    assert (unknown.comm_blocks_mean, unknown.comm_blocks.reason[:21]) == (
        unknown.comm_blocks,
        "communication kernels",
    )
    alone = Run()
    alone.work("gemm", 0, 10)
    assert alone.measured(window=(0, 10)).sm.comm_blocks is None


@pytest.mark.parametrize(
    ("blocks", "sm_count", "longer"),
    [(66.0, 132, 1.0), (0.0, 132, 0.0), (500.0, 4, 3.0), (None, 132, None), (66.0, None, None)],
)
def test_compute_takes_longer_on_the_sms_that_are_left_and_one_always_is(
    blocks: float | None, sm_count: int | None, longer: float | None
) -> None:
    assert stretch_by_sms(blocks, sm_count) == longer


def test_a_recording_is_counted_by_what_it_holds_and_by_rank() -> None:
    run = Run()
    first, second = run.process(0), run.process(1, gpu_clock=0)
    first.work("gemm", 0, 10)
    first.work("gemm", 20, 30, launched=False)
    second.work("h2d", 0, 10)
    second.work("graph", 20, 30)
    second.range("step", 0, 10)
    second.wait(7, by=20, recorded=1, waits=3)
    for at in range(100, 106):
        run.recording.memory_use(at, size_bytes=1, address=at)
        second.flush(at, at + 1)
        second.call("sync", at, at + 1, stream=7)
    for at in range(200, 203):
        second.work("graph", at, at + 1)
        second.range("step", at, at + 1)
    second.range("step", 300, 301)
    second.work("d2h", 300, 301)
    with written(run) as (path,):
        columns = read_trace(path)
        found = measure_capture(columns, build(columns))
    assert {name: count for name, count in found.rows.items() if count} == {
        "kernels": 2, "copies and memsets": 2, "graph replays": 4, "CUDA calls": 15, "NVTX ranges": 5,
        "event records": 1, "synchronisations": 7, "profiler overhead": 6, "memory events": 6,
    }  # fmt: skip
    assert (found.correlation_frac, found.graph_launches, found.opaque_graph_launches) == (0.5, 4, 0)
    assert found.clock_offset_ns == {(1_000, 0): 0, (2_000, 1): 0}


def test_messages_are_counted_by_operation_with_their_bytes_communicators_and_peers(
    export: Callable[..., Path],
) -> None:
    line = Line()
    line.call("ncclCommInitRank", init(7, 4))
    line.exchange(0, 1)
    line.exchange(1, communicator=8, receive=False)
    line.call("ncclAllGather", collective(7, 50), GATHER)
    found = measure_messages(read_trace(with_payloads(export(line.recording), line.blob_at)))
    assert found is not None
    assert {
        one.operation: (one.call_count, one.size_bytes, one.communicator_count, one.peer_count)
        for one in found
    } == {
        "ncclCommInitRank": (1, 0, 1, UNSET),
        "ncclSend": (3, 3_000, 2, 2),
        "ncclRecv": (2, 2_000, 1, 2),
        "ncclAllGather": (1, 50, 1, UNSET),
    }
    assert measure_messages(read_trace(export(line.recording, "without.sqlite"))) is None


def test_the_typical_step_is_the_nearest_to_the_median_and_of_equals_the_first() -> None:
    steps = from_steps(
        "user",
        "",
        (Step(0, 0, 90), Step(1, 90, 200), Step(2, 200, 300, dropped="partial"), Step(3, 300, 400)),
    )
    assert typical_step(steps) == steps.used[2]
    two = from_steps("user", "", (Step(0, 0, 90), Step(1, 90, 200)))
    assert typical_step(two) == two.used[0]
    assert typical_step(one_window("none", "", 0, 10)) is None
    assert _others(steps, steps.used[2]) == [*steps.used[:2]]


def test_of_too_many_steps_those_that_are_slow_are_among_the_others() -> None:
    steps = from_steps("user", "", tuple(Step(k, k * 10, k * 10 + 10) for k in range(101)))
    slow = type(steps)(steps.source, steps.what, steps.recorded, steps.windows, slow=(1, 3))
    found = [step.index for step in _others(slow, steps.used[0])]
    assert (len(found), found[:3], found[-1]) == (32, [1, 2, 3], 100)
    assert found == sorted(found)
    assert len(_others(steps, steps.used[0])) == 32


def test_waits_are_those_of_the_ledger_where_there_are_steps() -> None:
    rows = (
        LedgerRow("idle", "budget", None, 1, 9, (9,)),
        LedgerRow("idle.launch_starved.data", "budget", None, 1, 9, (4, 5)),
    )
    steps = from_steps("user", "", (Step(0, 0, 90), Step(1, 90, 200)))
    assert waits_of(rows, steps).tolist() == [4, 5]
    assert waits_of(rows, one_window("none", "", 0, 10)).tolist() == []
    assert waits_of(rows[:1], steps).tolist() == []


@pytest.mark.parametrize(
    ("waits_ms", "workers"),
    [
        ([2.000001] * 6, 1),
        ([2.0] * 8, None),  # a pause of 2 ms is none
        ([0.0, 2.0] + [9.0] * 8, 1),
        ([9.0] * 5, None),  # less than two rounds of three
        ([10.0] * 9 + [5.0], 1),  # nine tenths wait more than half of the usual
        ([10.0] * 8 + [5.0] * 2, None),
        ([9.0, 3.0] * 3, 2),
        ([10.75, 4.75, 7.25, 1.25] * 2, 2),  # 0.746 of the variance, of which chance makes 1/7
        ([10.78, 4.78, 7.22, 1.22] * 2, None),  # 0.740
        ([9.0, 3.0] * 2 + [9.0], None),  # less than three rounds
    ],
)
def test_a_rhythm_needs_three_rounds_and_one_loader_waits_in_every_step(
    waits_ms: list[float], workers: int | None
) -> None:
    assert workers_by_rhythm((np.array(waits_ms) * 1_000_000).astype(np.int64)) == workers


def test_nothing_is_unseen_of_recompute_that_is_known_and_unknown_modules_run_none_again() -> None:
    why = Missing("", "unknown", "none")
    seen, unseen = Recompute({}, 5, {}, NOWHERE, 7), Recompute(why, why, why, NOWHERE, 7)
    assert [(one.unseen_ns, one.again) for one in (seen, unseen)] == [(0, ()), (7, ())]
