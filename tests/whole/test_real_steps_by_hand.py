"""Steps of real recordings against a second reading of the files, by SQL and JSON, apart from the program."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import diagnoser
from reports.result.codec import Document

LENET = """SELECT k.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON k.demangledName = s.id
           WHERE s.value LIKE '%dgrad%' ORDER BY k.start"""


def steps_of(path: Path) -> Document:
    found: Document = diagnoser.analyze(path).to_dict()["ranks"][0]["steps"]
    return found


def times(path: Path, query: str) -> list[int]:
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return [row[0] for row in connection.execute(query)]
    finally:
        connection.close()


@pytest.mark.parametrize("name", ["hackathon_mnist_1_nvtx", "hackathon_mnist_2_workers"])
def test_each_step_has_the_one_data_gradient_of_the_network(recordings: Path, name: str) -> None:
    path = recordings / "real" / f"{name}.sqlite"
    starts, steps = times(path, LENET), steps_of(path)
    recorded = sorted([*steps["used"], *steps["dropped"]], key=lambda one: one["index"])[:59]
    held = [sum(one["start_ns"] <= at < one["end_ns"] for at in starts) for one in recorded]
    assert (len(starts), held) == (59, [1] * 59)


@pytest.mark.parametrize("name", [
    "real/tl_resnet_act_checkpoint.json.gz", "real/resnet50_workers0.pt.trace.json.gz",
    "real/resnet50_workers4.pt.trace.json.gz", "added/dlrm8/worker0.pt.trace.json.gz",
])  # fmt: skip
def test_a_profiler_step_lasts_until_the_work_that_it_launched_is_done(recordings: Path, name: str) -> None:
    path = recordings / name
    ends_us, steps = launched_until_us(path), steps_of(path)
    recorded = sorted([*steps["used"], *steps["dropped"]], key=lambda one: one["index"])
    lengths = [(one["end_ns"] - one["start_ns"]) / 1_000 for one in recorded]
    assert len(recorded) == len(ends_us)
    assert lengths[1:] == pytest.approx(np.diff(ends_us).tolist(), rel=0.02)


def launched_until_us(path: Path) -> list[float]:
    """For each ProfilerStep range, when the last GPU work launched in it ended."""
    with gzip.open(path) as file:
        events = [one for one in json.load(file)["traceEvents"] if one.get("ph") == "X"]
    ranges = sorted(
        (one["ts"], one["ts"] + one["dur"])
        for one in events
        if one["name"].startswith("ProfilerStep#") and not one.get("cat", "").startswith("gpu")
    )
    calls = {
        one["args"]["correlation"]: one["ts"]
        for one in events
        if one.get("cat", "").lower() in ("cuda_runtime", "runtime", "cuda_driver")
        and "correlation" in one.get("args", {})
    }
    work = [
        (calls[one["args"]["correlation"]], one["ts"] + one["dur"])
        for one in events
        if one.get("cat", "").lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
        and one.get("args", {}).get("correlation") in calls
    ]
    return [max(end for at, end in work if first <= at < last) for first, last in ranges]
