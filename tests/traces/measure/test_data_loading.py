"""The rhythm of waits tells how many workers load; input copies count where nothing hides them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import diagnoser
from bench.simulate.export import write_export
from tests.recordings.loading import MS, loading
from traces.measure.data_loading import loads_apart, workers_by_rhythm


def workers(waits_ms: list[float]) -> int | None:
    return workers_by_rhythm((np.array(waits_ms) * MS).astype(np.int64))


@pytest.mark.parametrize("count", range(2, 9))
def test_of_k_workers_every_kth_step_waits(count: int) -> None:
    round_ms = [100.0, *[1.0] * (count - 1)]
    assert workers(round_ms * 4) == count
    assert workers([0.0, 0.0, *round_ms * 4]) == count  # steps before the loaders fell behind


def test_a_round_that_begins_elsewhere_and_shares_its_wait_is_the_same_round() -> None:
    assert workers([50.0, 100.0, 1.0, 1.0] * 5) == 4


def test_without_a_rhythm_no_number_is_told() -> None:
    assert workers([]) is None
    assert workers([0.0] * 20) is None
    assert workers([90.0, 5.0, 60.0, 70.0, 2.0, 80.0, 3.0, 4.0, 95.0, 6.0, 85.0, 5.0]) is None


def test_input_copies_that_nothing_hides_are_all_of_those_that_run_alone(tmp_path: Path) -> None:
    """Four input copies of 1 ms, each before its kernels; the window begins with the first of them."""
    path = tmp_path / "run.sqlite"
    write_export(path, loading(10))
    (rank,) = diagnoser.analyze(path).to_dict()["ranks"]
    found = rank["data_loading"]
    assert found["input_copies"] == 4
    assert found["input_copies_exposed_ns"] == 4 * MS
    assert found["waiting_steps"] == 3


@pytest.mark.parametrize(("pageable", "count"), [(True, 4), (False, 0)])
def test_input_copies_say_whether_they_read_pageable_memory(
    tmp_path: Path, pageable: bool, count: int
) -> None:
    path = tmp_path / "run.sqlite"
    write_export(path, loading(10, pageable=pageable))
    (rank,) = diagnoser.analyze(path).to_dict()["ranks"]
    assert rank["data_loading"]["input_copies_pageable"] == count


def test_where_the_memory_of_copies_was_not_recorded_it_is_unknown(tmp_path: Path) -> None:
    recording, path = loading(10), tmp_path / "run.sqlite"
    for row in recording.rows["CUPTI_ACTIVITY_KIND_MEMCPY"]:
        row["srcKind"] = None
    write_export(path, recording)
    document = diagnoser.analyze(path).to_dict()
    assert document["ranks"][0]["data_loading"]["input_copies_pageable"] is None
    assert "ranks[0].data_loading.input_copies_pageable" in {one["path"] for one in document["missing"]}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("step 1", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), False),
        (("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",), True),
        (("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"), None),
        (("load batch",), None),
    ],
)
def test_the_iterator_of_pytorch_says_whether_worker_processes_load(
    texts: tuple[str, ...], expected: bool | None
) -> None:
    assert loads_apart(texts) is expected
