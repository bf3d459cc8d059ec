"""What stands where a plan would, when none can be made."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

import diagnoser
from heuristics.result.judged import Refused, Verdict
from heuristics.result.result import Result
from reports.content.analysis.plan import plan
from reports.content.check_workflow import _missing_inputs
from tests.configurations.check import written
from tests.doubles.result import double

OFFLOADED = """\
model:
  num_layers: 8
  cpu_offloading: true
  cpu_offloading_num_layers: 1
"""
FIGURES = {
    "budget_frac": {"compute": 0.7, "exposed_comm": 0.0, "exposed_copy": 0.25, "idle": 0.05},
    "memory": {"recompute_frac": 0.0, "offload_exposed_frac": 0.25, "allocator_frac": 0.0},
}


def test_a_known_wall_is_planned_for_before_anything_is_recorded(tmp_path: Path) -> None:
    result = diagnoser.check_config(
        written(tmp_path, "bridge.yaml", OFFLOADED),
        symptoms=written(tmp_path, "figures.json", json.dumps(FIGURES)),
        ask_megatron=False,
    ).result
    assert plan(result).steps[0].id == "MEM-6"
    without = str(plan(msgspec.structs.replace(result, fixes=())))
    assert "No change fits" in without
    assert "Find the code that allocates" in without
    assert "Record again, to judge" in without
    assert "Record what is missing" not in without


def test_an_option_that_does_not_exist_here_is_not_named_as_the_reason() -> None:
    wall = double(Verdict, wall="memory")
    segments = double(Refused, id="MEM-1", because="needs: another GPU", kind="absent")
    cache = double(Refused, id="MEM-18", because="needs: frees beside the cache", kind="needs")
    both = double(Result, verdict=wall, refused=(segments, cache))
    assert "2 known changes were refused; MEM-18: needs: frees beside the cache." in str(plan(both))
    alone = str(plan(double(Result, verdict=wall, refused=(segments,))))
    assert "No change fits: 1 known change was refused." in alone
    assert "MEM-1" not in alone


def test_rules_that_wait_for_nothing_name_no_missing_input() -> None:
    assert _missing_inputs(()) == ()
