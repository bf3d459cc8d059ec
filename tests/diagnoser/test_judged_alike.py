"""A configuration is as legal beside a trace as alone: `analyze --config` and `check-config` agree on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given as drawn
from hypothesis import settings as trials
from hypothesis import strategies as st

from bench.simulate.export import write_export
from diagnoser import analyze, check_config
from diagnoser.diagnosis import Diagnosis
from heuristics.config.observed import Observed
from heuristics.evidence.symptoms import Symptoms, observed_from
from heuristics.judging.judgement import Configured, judge_observed
from heuristics.result.configured import Rules
from tests.doubles.document import DISPATCH, exposed
from tests.megatron.random_runs import drawn_run
from tests.places import DATA
from traces.missing import known
from traces.settings.settings import Settings

NOTHING = observed_from(Symptoms(), None)
SHOWN = (
    {"dispatcher": "deepep", "moe": True, "grouped_gemm": True, "ep_overlap": True, "precision": "bf16"},
    {"dispatcher": "alltoall", "ep_active": True, "pp_active": True, "recompute_modules": ("core_attn",)},
    {"dispatcher": "none", "moe": False, "graph_frac": 0.5, "precision": "fp8", "recompute_full": True},
)
"""What a trace may show of a run, whatever its file says."""
FILES = sorted(
    path
    for kind in ("config_cases", "field_cases")
    for path in (DATA / kind).glob("*/*")
    if path.stem in ("config", "run")
)


def told(rules: Rules | None) -> tuple[set[str], set[str]]:
    """Rules that are broken, and those that the defaults break."""
    assert rules is not None
    return {one.id for one in rules.broken}, {one.id for one in rules.undecided if one.broken_by_default}


def of(diagnosis: Diagnosis) -> tuple[set[str], set[str]]:
    return told(known(diagnosis.result.rules))


@trials(max_examples=60, deadline=None)
@drawn(st.integers(0, 10**6), st.sampled_from(SHOWN), st.floats(0.0, 0.5))
def test_a_trace_adds_no_broken_rule_and_takes_none_away(
    seed: int, shown: dict[str, object], left_out: float
) -> None:
    draw = Random(seed)
    one = drawn_run(draw)
    kept = {knob: said for knob, said in one.configured.settings.by_knob.items() if draw.random() >= left_out}
    configured = Configured(Settings(kept, one.configured.settings.framework))
    seen = replace(NOTHING, observed=replace(Observed(), **shown))  # type: ignore[arg-type]
    beside, alone = (judge_observed(evidence, one.given, configured) for evidence in (seen, NOTHING))
    assert beside.from_files is not None
    assert alone.from_files is not None
    assert told(beside.from_files.rules) == told(alone.from_files.rules)


@pytest.fixture(scope="module")
def moe_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "run.sqlite"
    write_export(path, exposed(comm=DISPATCH))
    return path


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_both_commands_break_the_same_rules(path: Path, moe_trace: Path) -> None:
    about = {"gpu": "H100"}
    beside = analyze(moe_trace, config=path, about=about, ask_megatron=False)
    assert of(beside) == of(check_config(path, about=about, ask_megatron=False))
