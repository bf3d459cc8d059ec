"""The ledger: its rows add up, in every step, to the integer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.simulate.knobs import draw_knobs
from bench.simulate.recorded import draw_view
from bench.simulate.recording import Recording
from bench.simulate.run import run
from tests.recordings.launches import GEMM, NORM, SENDRECV, rank_of
from tests.recordings.moe_truth import Found, measured
from traces.account.account import absent_pieces, measure_account
from traces.account.device import find_queueing
from traces.intervals import Spans, spans
from traces.measure.budget import measure_budget
from traces.measure.ledger import Borders, measure_ledger, per_step_ns
from traces.missing import Missing
from traces.sections.tables import LedgerRow
from traces.steps.found import Step, Steps, from_steps, one_window

Export = Callable[..., Path]
NO_MOE = Missing("moe", "none", "none")


def per_step(rows: tuple[LedgerRow, ...], group: str, begin: str = "") -> list[int]:
    """The rows of a group whose name begins so, added up by step."""
    mine = [row.per_step_ns for row in rows if row.group == group and row.row.startswith(begin)]
    return [sum(step) for step in zip(*mine, strict=True)]


def lengths(steps: Steps) -> list[int]:
    return steps.lengths_ns() or [steps.windows.total_ns]


def check(found: Found) -> None:
    """Rows of each step against its length, and all steps against what was measured over all at once."""
    rows, whole = found.ledger, lengths(found.steps)
    assert per_step(rows, "budget") == whole
    total = {row.row: sum(row.per_step_ns) for row in rows}
    compute = {f"compute.{key}": ns for key, ns in found.budget.compute_by_class_ns.items()}
    comm = {f"exposed_comm.{key}": ns for key, ns in found.budget.exposed_comm_by_kind_ns.items()}
    assert (compute | comm).items() <= total.items()
    if isinstance(found.account, Missing):
        assert [row for row in rows if row.group == "absent"] == []
        return
    idle = {row: ns for row, ns in total.items() if row.startswith("idle.")}
    assert sum(idle.values()) == found.budget.idle_ns
    assert all(ns <= total[row.removeprefix("idle.")] for row, ns in idle.items())
    absent = [step - busy for step, busy in zip(whole, per_step(rows, "budget", "compute."), strict=True)]
    assert per_step(rows, "absent") == absent
    starved = {f"launch_starved.{key}": ns for key, ns in found.account.launch_starved_ns.items()}
    blocking = {f"blocking.{key}": ns for key, ns in found.account.blocking_ns.items()}
    assert (starved | blocking).items() <= total.items()
    assert total.get("trailing", 0) == found.account.trailing_ns
    assert total.get("graph_opaque", 0) == found.account.graph_opaque_ns


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_rows_add_up_to_the_integer_in_every_step_of_any_run(seed: int) -> None:
    with TemporaryDirectory() as folder:
        knobs = draw_knobs(seed, step_count=3, microbatch_count=1, layer_count=2)
        check(measured(run(knobs), draw_view(seed), Path(folder)))


Times = list[tuple[int, int]]


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
