"""The ledger: its rows add up, in every step, to the integer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.simulate.recording import Recording
from tests.recordings.launches import GEMM, NORM, SENDRECV, rank_of
from traces.account.account import absent_pieces, measure_account
from traces.account.device import find_queueing
from traces.intervals import Spans, spans
from traces.measure.budget import measure_budget
from traces.measure.ledger import Borders, measure_ledger, per_step_ns
from traces.missing import Missing
from traces.sections.tables import LedgerRow
from traces.steps.found import Step, from_steps, one_window

Export = Callable[..., Path]
NO_MOE = Missing("moe", "none", "none")


def per_step(rows: tuple[LedgerRow, ...], group: str, begin: str = "") -> list[int]:
    """The rows of a group whose name begins so, added up by step."""
    mine = [row.per_step_ns for row in rows if row.group == group and row.row.startswith(begin)]
    return [sum(step) for step in zip(*mine, strict=True)]


def two_steps(export: Export) -> tuple[Recording, tuple[LedgerRow, ...]]:
    """Steps of 100 ns. GEMM 0 to 130, SendRecv 120 to 160, norm 170 to 180, nothing to 200."""
    recording = Recording()
    recording.kernel(GEMM, 0, 130, launch_ns=-50)
    recording.kernel(SENDRECV, 120, 160, launch_ns=-40, stream=20)
    recording.kernel(NORM, 170, 180, launch_ns=-30)
    rank = rank_of(export(recording))
    steps = from_steps("user", "the test's", (Step(0, 0, 100), Step(1, 100, 200)))
    absent = absent_pieces(measure_account(rank, steps.windows, find_queueing(rank)))
    budget = measure_budget(rank.activities, steps.windows)
    return recording, measure_ledger(rank.activities, steps, budget, absent, NO_MOE)


def test_a_kernel_across_a_border_counts_in_both_steps(export: Export) -> None:
    _, rows = two_steps(export)
    budget = {row.row: (row.count, row.per_step_ns) for row in rows if row.group == "budget"}
    idle = [row for row in budget if row.startswith("idle.")]
    assert {row: said for row, said in budget.items() if row not in idle} == {
        "compute.gemm": (1, (100, 30)),
        "compute.norm": (1, (0, 10)),
        "exposed_comm.sendrecv_unresolved": (1, (0, 30)),
    }
    assert idle
    assert per_step(rows, "budget", "idle.") == [0, 30]
    assert per_step(rows, "absent") == [0, 60]
    blocking = {row.row for row in rows if row.group == "absent" and row.row.startswith("blocking.")}
    assert blocking <= {"blocking.sendrecv_unresolved"}


def test_without_steps_there_is_one_entry_for_the_window(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 40, launch_ns=-10)
    recording.kernel(NORM, 50, 100, launch_ns=-5)
    rank = rank_of(export(recording))
    window = one_window("none", "all", 0, 100)
    budget = measure_budget(rank.activities, window.windows)
    rows = measure_ledger(rank.activities, window, budget, NO_MOE, NO_MOE)
    assert [(row.row, row.per_step_ns) for row in rows] == [
        ("compute.gemm", (40,)),
        ("compute.norm", (50,)),
        ("idle", (10,)),
    ]


def test_a_set_of_instants_is_split_at_borders_that_touch() -> None:
    held: Spans = spans((0, 10), (20, 30))
    assert per_step_ns(held, Borders(np.array([5, 25]), np.array([25, 26]))).tolist() == [10, 1]
