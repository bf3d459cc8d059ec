"""A run that ran out of memory, or has hardly any left, meets the memory wall, whatever its step costs."""

from __future__ import annotations

import json

import pytest

from heuristics.config.about import Given
from heuristics.evidence.evidence import with_fit
from heuristics.evidence.symptoms import Symptoms, observed_from, read_symptoms
from traces.missing import known
from traces.training_log.log import LoggedMemory, OutOfMemory, TrainingLog


def read(**given: object) -> Symptoms:
    return read_symptoms(json.dumps(given), "symptoms.json")


OUT = TrainingLog("run.log", 9, out_of_memory=(OutOfMemory(7, "optimizer_state"),))


def test_a_log_that_ran_out_of_memory_puts_memory_first() -> None:
    seen = with_fit(observed_from(read(exposed_comm_by_kind_frac={"tp": 0.4})), Given(), OUT)
    assert (seen.verdict.wall, seen.verdict.runner_up) == ("memory", "communication")
    assert seen.verdict.does_not_fit
    assert len(seen.verdict.because) == 2
    alone = with_fit(observed_from(read(memory={"recompute_frac": 0.0})), Given(), OUT).verdict
    assert (alone.wall, alone.runner_up, len(alone.because)) == ("memory", None, 1)
    assert known(seen.walls[0].cost_frac) is None
    assert seen.verdict.because[0] == "the log reports that memory ran out in optimizer state"


def test_symptoms_may_say_themselves_that_memory_ran_out() -> None:
    said = read(log={"out_of_memory": "unknown"})
    seen = with_fit(observed_from(said), Given())
    assert seen.verdict.because[0] == "the log reports that memory ran out"


def test_tight_memory_is_a_wall_only_where_no_other_stands() -> None:
    tight = Given(memory_tight=True)
    alone = with_fit(observed_from(read(exposed_comm_by_kind_frac={"tp": 0.04})), tight)
    beside = with_fit(observed_from(read(exposed_comm_by_kind_frac={"tp": 0.4})), tight)
    assert (alone.verdict.wall, beside.verdict.wall) == ("memory", "communication")
    assert "memory was given as tight (--memory-tight)" in beside.verdict.because


@pytest.mark.parametrize(("peak", "expected"), [(72, "memory"), (71, None)])
def test_a_peak_near_the_capacity_is_tight(peak: int, expected: str | None) -> None:
    log = TrainingLog("run.log", 9, memory=(LoggedMemory(3, peak_allocated_bytes=peak),))
    said = read(exposed_comm_by_kind_frac={"tp": 0.04}, memory={"capacity_bytes": 80})
    assert with_fit(observed_from(said), Given(), log).verdict.wall == expected
    assert with_fit(observed_from(said), Given(memory_tight=False), log).verdict.wall is None


def test_a_run_of_which_nobody_says_anything_stays_as_it_was() -> None:
    seen = observed_from(read(exposed_comm_by_kind_frac={"tp": 0.4}))
    assert with_fit(seen, Given()) is seen
