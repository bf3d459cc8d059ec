"""Published hangs and regressions stand beside the fix that would meet them (seed item 13, second half)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from heuristics.config.observed import Observed
from heuristics.incidents.incident import known_issues
from heuristics.run.run import Run
from tests.doubles.runs import run_of
from traces.settings.settings import Value

GRAPHS: Mapping[str, Value] = {"cuda_graph_impl": "transformer_engine"}
DEEPEP: Mapping[str, Value] = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
A2A = Observed(dispatcher="alltoall")
HANG = "Megatron-Bridge#3517"


def ids(fix: str, sets: Mapping[str, Value], run: Run) -> list[str]:
    return [one.id for one in known_issues(fix, sets, run)]


def test_graphs_with_alltoall_in_26_02_on_gb300_hang() -> None:
    run = run_of(A2A, gpu="GB300", container="nvcr.io/nvidia/nemo:26.02")
    (one,) = known_issues("HST-3", GRAPHS, run)
    assert (one.id, one.only_if) == (HANG, ())


@pytest.mark.parametrize("given", [
    {"gpu": "H100", "container": "26.02"}, {"gpu": "GB300", "container": "26.04"},
    {"gpu": "GB300", "core_version": "0.17.0"}, {"gpu": "GB300", "container": "25.11"},
])  # fmt: skip
def test_another_gpu_or_release_does_not_meet_it(given: dict[str, str]) -> None:
    assert HANG not in ids("HST-3", GRAPHS, run_of(A2A, None, **given))


def test_what_is_not_known_of_the_run_is_named() -> None:
    found = {one.id: one.only_if for one in known_issues("HST-3", GRAPHS, run_of())}
    assert found[HANG] == ("release", "gpu", "dispatcher_in_use")
    known_gpu = {one.id: one.only_if for one in known_issues("HST-3", GRAPHS, run_of(A2A, gpu="GB200"))}
    assert known_gpu[HANG] == ("release",)


def test_a_dispatcher_that_the_fix_sets_decides_not_the_one_that_runs() -> None:
    run = run_of(A2A, gpu="H100", container="26.02")
    assert ids("COM-2", DEEPEP, run) == ["Automodel#3967", "no-deepep-26.02"]
    assert ids("COM-2", {**DEEPEP, "moe_flex_dispatcher_backend": "hybridep"}, run) == []
