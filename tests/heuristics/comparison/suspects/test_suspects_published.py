"""Published regressions told again with the simulator: the post-mortem names each cause first."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record
from bench.simulate.run import run
from heuristics.comparison.comparison import compare
from heuristics.result.compared import Compared
from heuristics.result.result import Result
from tests.doubles.comparison import read_back
from tests.recordings.anchors import GRAPHED, GRAPHED_BOUND, UNGRAPHED

SHORT = {"layer_count": 2, "microbatch_count": 2}
"""A quarter of the anchors' step: kernels and host are theirs, and each run is told in a second."""


def short(knobs: Knobs, **other: object) -> Knobs:
    return replace(knobs, **{**SHORT, **other})  # type: ignore[arg-type]


@cache
def told(knobs: Knobs, nccl: str = "2.30.1") -> Result:
    """A run, simulated and diagnosed, with a log that says its NCCL."""
    with TemporaryDirectory() as folder:
        path, log = Path(folder) / "run.sqlite", Path(folder) / "train.log"
        write_export(path, record(run(knobs), View()), View().schema)
        log.write_text(f"NCCL version {nccl}+cuda13.0\n", encoding="utf-8")
        about = {**GRAPHED.about, "cpu_bound_to_numa": False}
        return read_back(diagnoser.analyze(path, about=about, log=log, ask_megatron=False))


def first(found: Compared) -> tuple[str, str]:
    return found.suspects[0].id, found.suspects[0].confidence


GRAPHED_RUN, UNGRAPHED_RUN, BOUND_RUN = (
    short(anchor.knobs) for anchor in (GRAPHED, UNGRAPHED, GRAPHED_BOUND)
)
OTHERS = {
    "dispatcher_exchanged": (UNGRAPHED_RUN, replace(UNGRAPHED_RUN, dispatcher="alltoall")),
    "lower_precision": (replace(UNGRAPHED_RUN, fp8=False), UNGRAPHED_RUN),
    "recompute_more": (UNGRAPHED_RUN, replace(UNGRAPHED_RUN, recompute="moe")),
}


def test_graphs_lost_on_gb200_are_named_first() -> None:
    """Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization: 663.27 with graphs, 610.71 without."""
    found = compare(told(GRAPHED_RUN), told(UNGRAPHED_RUN))
    assert found.step_delta_ns > 0
    assert first(found) == ("graphs_stopped", "medium")
    assert found.suspects[0].explains_ns > 0.9 * found.step_delta_ns


def test_nccl_that_restores_affinity_without_a_binding_is_named_first() -> None:
    """Megatron-Bridge v0.5.1 release notes; by how much, as binding won on GB200: 691.49 to 762.12."""
    found = compare(told(BOUND_RUN, "2.29.3"), told(GRAPHED_RUN))
    assert first(found) == ("nccl_host_cpu", "high")
    assert found.suspects[0].explains_ns > 0.9 * found.step_delta_ns > 0
    changes = {one.what: one.can_explain for one in found.changed}
    assert set(changes["version.nccl"]) >= set(found.suspects[0].rows)


@pytest.mark.parametrize("cause", OTHERS)
def test_a_single_cause_of_the_trace_alone_is_named_first(cause: str) -> None:
    base, new = OTHERS[cause]
    assert first(compare(told(base), told(new)))[0] == cause
