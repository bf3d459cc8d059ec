"""Kernels by name and grid: what two recordings are compared by, kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.simulate.recording import Recording
from tests.recordings.launches import GEMM, NORM, SENDRECV, rank_of
from traces.intervals import spans
from traces.measure.kernel_table import NAME_LENGTH, ROWS, measure_kernels
from traces.sections.tables import KernelsLeftOut

Export = Callable[..., Path]


def test_kernels_are_counted_by_name_and_grid_the_most_work_first(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100, grid=(8, 1, 1))
    recording.kernel(GEMM, 100, 220, grid=(8, 1, 1))
    recording.kernel(GEMM, 220, 230, grid=(4, 2, 1))
    recording.kernel(SENDRECV, 230, 280, grid=(24, 1, 1), stream=20)
    table = measure_kernels(rank_of(export(recording)), spans((0, 300)))
    found = [(row.name, row.grid, row.count, row.work_ns, row.std_ns) for row in table.rows]
    assert found == [
        (GEMM, (8, 1, 1), 2, 220, 10),
        (SENDRECV, (24, 1, 1), 1, 50, 0),
        (GEMM, (4, 2, 1), 1, 10, 0),
    ]
    assert [row.key for row in table.rows] == ["compute.gemm", "comm.sendrecv_unresolved", "compute.gemm"]


def test_only_time_in_the_windows_is_work(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100)
    recording.kernel(NORM, 100, 200)
    recording.kernel(NORM, 300, 400)
    rank = rank_of(export(recording))
    table = measure_kernels(rank, spans((50, 150)))
    assert [(row.name, row.count, row.work_ns) for row in table.rows] == [(GEMM, 1, 50), (NORM, 1, 50)]
    assert measure_kernels(rank, spans((210, 290))).rows == ()


def test_what_is_beyond_the_list_is_counted(export: Export) -> None:
    recording, most = Recording(), int(ROWS.value)
    for place in range(most + 5):
        recording.kernel(f"kernel_{place:04d}", 10 * place, 10 * place + (9 if place < most else 2))
    table = measure_kernels(rank_of(export(recording)), spans((0, 10 * most + 50)))
    assert len(table.rows) == most
    assert table.left_out == KernelsLeftOut(5, 5, 10)


def test_long_names_that_begin_alike_stay_two(export: Export) -> None:
    recording = Recording()
    begin = "x" * (int(NAME_LENGTH.value) + 10)
    recording.kernel(f"{begin}a", 0, 10)
    recording.kernel(f"{begin}b", 10, 20)
    one, other = measure_kernels(rank_of(export(recording)), spans((0, 20))).rows
    assert one.name != other.name
    assert one.name[: int(NAME_LENGTH.value)] == other.name[: int(NAME_LENGTH.value)]
    assert len(one.name) == len(other.name) == int(NAME_LENGTH.value) + 12
