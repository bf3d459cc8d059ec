"""No document contradicts itself: over demos and every recording there is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record
from bench.simulate.run import run
from bench.simulate.scenarios import SCENARIOS
from reports.result.codec import Document
from tests.agreement.contradictions import RULES, contradictions
from traces.errors import DamagedTrace, NothingToDiagnose

FOLDERS = (
    *(".", "added", "added/dlrm8", "added-4", "second-simulator", "real", "bare", "by-hand", "injected"),
)
READ = (".sqlite", ".json.gz")


def simulated(folder: Path, knobs: Knobs, view: View) -> Document:
    path = folder / "run.sqlite"
    write_export(path, record(run(knobs), view), view.schema)
    return diagnoser.analyze(path).to_dict()


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_demo_contradicts_itself(tmp_path: Path, name: str) -> None:
    assert contradictions(simulated(tmp_path, SCENARIOS[name], View())) == []


def test_no_recording_contradicts_itself(recordings: Path) -> None:
    found = {}
    for folder in FOLDERS:
        for path in sorted((recordings / folder).iterdir()):
            if path.name.endswith(READ):
                try:
                    said = contradictions(diagnoser.analyze(path).to_dict())
                except (NothingToDiagnose, DamagedTrace):
                    continue
                found[f"{folder}/{path.name}"] = said
    assert len(found) > 100
    assert {name: said for name, said in found.items() if said} == {}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """A run whose wall is memory, with fixes of known gains."""
    return simulated(tmp_path_factory.mktemp("sound"), SCENARIOS["memory"], View())


def change(document: Document, where: str, value: Any) -> None:
    """Put a value at a path of keys and places."""
    *path, last = [int(key) if key.isdigit() else key for key in where.split(".")]
    at: Any = document
    for key in path:
        at = at[key]
    at[last] = value


MYSTERY = {"name": "mystery", "busy_ns": 1, "count": 1, "mean_ns": 1, "grid": None, "per_step_ns": None}
PLANTED: dict[str, tuple[tuple[str, Any], ...]] = {
    "the_verdict_is_a_finding": (("verdict.wall", "compute"),),
    "a_finding_costs_a_tenth_or_memory_does_not_fit": (("walls.0.cost_frac", 0.001),),
    "what_is_clear_costs_less_than_a_tenth": (("walls.3.at_most_frac", 0.2),),
    "costs_lie_in_their_bounds": (("walls.0.cost_by_kind_ns", {"recompute": 10**18}),),
    "what_could_not_be_judged_says_why": (("walls.3.outcome", "unmeasurable"),),
    "the_next_in_cost_costs_no_more_than_the_verdict": (("verdict.runner_up", "memory"),),
    "what_comes_next_is_another_wall": (("verdict.next_wall", "memory"), ("verdict.next_wall_frac", 0.2)),
    "what_bounds_a_run_is_not_clear": (("verdict.bound", "host_overhead"),),
    "fixes_are_for_findings_that_cost_something": (("fixes.0.wall", "compute"),),
    "no_gain_is_above_what_it_can_be": (("fixes.0.gain_frac", [0.0, 1.1]),),
    "no_fix_of_little_comes_before_a_better_one": (("fixes.0.gain_frac", [0.02, 0.03]),
     ("fixes.1.gain_frac", [0.04, 0.05])),
    "no_fix_of_next_to_nothing_comes_before_one_that_may_gain_more": (("fixes.0.gain_frac", [0.0, 0.006]),
     ("fixes.1.gain_frac", [None, 0.25])),
    "time_adds_up": (("ranks.0.budget_ns.idle", 0),),
    "an_unknown_kernel_of_over_a_twentieth_is_a_finding": (
        ("ranks.0.unknown_kernels", [{**MYSTERY, "frac": 0.67, "finding": False}]),
    ),
    "a_saving_without_a_replay_has_no_lower_end": (("fixes.0.gain_replayed", False),),
    "nothing_is_called_no_bottleneck_beside_a_tenth_without_compute": (("verdict.wall", None),
     ("walls.0.outcome", "clear"),
     *((f"ranks.0.budget_ns.{bucket}", 0) for bucket in ("exposed_comm", "exposed_copy", "idle")),
     ("ranks.0.budget_frac.idle", 0.2)),
    "what_could_not_be_judged_is_not_shown_as_nothing": (("walls.3.outcome", "unmeasurable"),
     ("walls.3.cost_ns", None), ("walls.3.cost_frac", None), ("walls.3.at_most_frac", 0.0)),
    "no_wall_below_a_hundredth_is_named_as_the_closest": (
        ("verdict.because", ["no wall; the closest is host overhead, 0.3 %"]),
    ),
    "advice_is_for_the_framework_that_was_seen": (("framework", "pytorch"),),
    "loading_and_collection_are_advised_on_a_sign_of_them": (
        (
            "ranks.0.data_loading",
            {
                "waiting_steps": 0, "workers": 2, "input_copies": 0, "input_copies_exposed_ns": 0,
                "input_copies_pageable": None,
            },
        ),
    ),
    "no_step_is_what_the_run_shows_already": (
        ("fixes.0.knobs.megatron_bridge", ["model.recompute_granularity=selective"]),
        (
            "configuration",
            {
                "framework": "megatron_bridge",
                "legal": True,
                "versions": dict.fromkeys(("core", "bridge", "torch", "te"), "1.0"),
                "problems": [],
                "checked": [],
                "settings": [
                    {
                        "knob": "recompute_granularity", "value": "selective", "said": "run.yaml:1",
                        "withheld": False,
                    }
                ],
            },
        ),
    ),
    "no_step_is_refused_on_its_own_page": (("refused.0.id", "MEM-1"), ("fixes.0.id", "MEM-1")),
    "a_step_is_for_its_own_wall": (("fixes.0.id", "COM-4"),),
    "the_first_step_is_of_the_kind_in_the_headline": (("verdict.kind", "host_resident"),
     ("fixes.0.id", "MEM-1")),
    "what_no_rule_knows_is_not_called_no_bottleneck": (("verdict.wall", None), ("walls.0.outcome", "clear"),
     *((f"ranks.0.budget_ns.{bucket}", 0) for bucket in ("exposed_comm", "exposed_copy", "idle")),
     *((f"ranks.0.budget_frac.{bucket}", 0.0) for bucket in ("exposed_comm", "exposed_copy", "idle")),
     ("ranks.0.unknown_kernels", [{**MYSTERY, "frac": 0.2, "finding": True}])),
    "a_page_has_one_length_of_a_step": (("ranks.0.steps.mean_ns", 77),),
    "the_account_and_the_wall_name_one_cause": (("walls.2.cost_by_kind_ns", {"gc": 10**15}),),
    "a_tie_is_of_costs_that_are_near": (("verdict.tied_with", ["compute"]),),
    "no_headline_is_of_less_than_a_hundredth": (("walls.0.cost_frac", 0.0005),),
    "the_first_step_is_for_the_wall_of_the_headline": (("fixes.0.wall", "compute"),
     ("fixes.0.first_because", "")),
    "nothing_is_advised_that_runs_already": (("fixes.0.id", "HST-3"),
     ("ranks.0.detected.graph_share_frac", 0.9)),
    "nothing_is_advised_that_the_run_cannot_have": (("fixes.0.id", "MEM-1"),
     ("ranks.0.memory.foreign_frees_frac", 1.0)),
    "no_line_has_a_value_to_fill_in": (("fixes.0.knobs.megatron_lm", ["--pipeline-model-parallel-size N"]),),
}  # fmt: skip
"""What makes each rule speak."""


def test_every_rule_has_a_contradiction_planted() -> None:
    assert {rule.__name__ for rule in RULES} == {*PLANTED}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_a_planted_contradiction_is_found(sound: Document, rule: Callable[..., Any]) -> None:
    assert contradictions(sound) == []
    document = json.loads(json.dumps(sound))
    for where, value in PLANTED[rule.__name__]:
        change(document, where, value)
    assert any(said.startswith(f"{rule.__name__}: ") for said in contradictions(document))
