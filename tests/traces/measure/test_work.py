"""What stays of a step when its kernels change: input copies by size, and families of ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from tests.recordings.loading import KERNEL, MS, loading


def work_of(recording: Recording, path: Path) -> dict[str, Any]:
    write_export(path, recording)
    (rank,) = diagnoser.analyze(path).to_dict()["ranks"]
    return dict(rank["work"])


def test_input_copies_of_one_size_are_counted_over_the_steps(tmp_path: Path) -> None:
    """Four copies of 1 MiB, each before its kernels; the first step begins with its copy."""
    found = work_of(loading(10), tmp_path / "run.sqlite")
    assert found["input_sizes"] == [{"size_bytes": 1 << 20, "count": 4}]


def test_copies_of_sizes_that_never_come_again_are_no_typical_input(tmp_path: Path) -> None:
    found = work_of(loading(10, equal=False), tmp_path / "run.sqlite")
    assert found["input_sizes"] == []


def test_ranges_are_counted_by_family_in_a_typical_step(tmp_path: Path) -> None:
    """Four steps of ten kernels; two of them lie in an operator, one in a range that may be private."""
    recording = Recording()
    recording.gpu()
    for step in range(4):
        start = step * 20 * MS
        for place in range(10):
            at = start + place * MS
            recording.kernel(KERNEL, at, at + MS, launch_ns=at - 9_000, launch_end_ns=at - 5_000)
        for place in (2, 5):
            recording.range("aten::mm", start + place * MS, start + (place + 1) * MS)
        recording.range("my secret project", start + 3 * MS, start + 4 * MS)
        recording.range(f"iteration {step}", start - MS, start + 15 * MS)
    assert work_of(recording, tmp_path / "run.sqlite")["ranges"] == {"aten::mm": 2.0}
