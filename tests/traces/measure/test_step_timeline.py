"""One step as it ran: nothing lost, nothing moved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.simulate.recording import Recording
from tests.recordings.launches import GEMM, NORM, SENDRECV, rank_of
from traces.account.account import absent_pieces, measure_account
from traces.account.device import find_queueing
from traces.measure.step_timeline import MOST, measure_timelines
from traces.missing import Missing
from traces.sections.tables import ReasonLane
from traces.steps.found import Step, from_steps, one_window

Export = Callable[..., Path]
BLIND = Missing("account", "clocks apart", "record again")


def test_the_step_nearest_to_the_median_is_shown_and_cut_at_its_borders(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 120, launch_ns=-50)
    recording.kernel(SENDRECV, 110, 150, launch_ns=-40, stream=20)
    recording.kernel(NORM, 400, 450, launch_ns=-30)
    rank = rank_of(export(recording))
    steps = from_steps("user", "the test's", (Step(0, 0, 100), Step(1, 100, 250), Step(2, 250, 550)))
    shown = measure_timelines(
        rank, steps, absent_pieces(measure_account(rank, steps.windows, find_queueing(rank)))
    )[0]
    assert (shown.step, shown.start_ns, shown.end_ns, shown.left_out) == (1, 100, 250, 0)
    first, second = shown.lanes
    assert (first.at_ns, first.length_ns) == ((0,), (20,))
    assert (second.stream, second.at_ns, second.length_ns) == (20, (10,), (40,))
    assert [shown.names[first.name[0]], shown.keys[second.key[0]]] == [GEMM, "comm.sendrecv_unresolved"]
    assert isinstance(shown.reasons, ReasonLane)
    assert sum(shown.reasons.length_ns) == 150 - 20


def test_without_steps_the_window_is_shown_and_without_an_account_no_reasons(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 40)
    shown = measure_timelines(rank_of(export(recording)), one_window("none", "all", 0, 100), BLIND)[0]
    assert isinstance(shown.step, Missing)
    assert (shown.start_ns, shown.end_ns, shown.reasons) == (0, 100, BLIND)


def test_what_is_too_much_to_show_is_cut_at_a_time_and_counted(export: Export) -> None:
    recording, most = Recording(), int(MOST.value)
    for place in range(most + 3):
        recording.kernel(GEMM, 10 * place, 10 * place + 8)
    shown = measure_timelines(rank_of(export(recording)), one_window("none", "all", 0, 10**6), BLIND)[0]
    assert (shown.left_out, shown.end_ns, len(shown.lanes[0].at_ns)) == (3, 10 * most, most)
