"""A configuration is as legal beside a trace as alone."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given as drawn
from hypothesis import settings as trials
from hypothesis import strategies as st

from heuristics.config.observed import Observed
from heuristics.evidence.symptoms import Symptoms, observed_from
from heuristics.judging.judgement import FilesRead, judge_observed
from heuristics.result.configured import Rules
from tests.megatron.random_runs import drawn_run
from traces.settings.settings import Settings

NOTHING = observed_from(Symptoms(), None)
SHOWN = (
    {"dispatcher": "deepep", "moe": True, "grouped_gemm": True, "ep_overlap": True, "precision": "bf16"},
    {"dispatcher": "alltoall", "ep_active": True, "pp_active": True, "recompute_modules": ("core_attn",)},
    {"dispatcher": "none", "moe": False, "graph_frac": 0.5, "precision": "fp8", "recompute_full": True},
)
"""What a trace may show of a run, whatever its file says."""


def told(rules: Rules | None) -> tuple[set[str], set[str]]:
    """Rules that are broken, and those that the defaults break."""
    assert rules is not None
    return {one.id for one in rules.broken}, {one.id for one in rules.undecided if one.broken_by_default}


@trials(max_examples=60, deadline=None)
@drawn(st.integers(0, 10**6), st.sampled_from(SHOWN), st.floats(0.0, 0.5))
def test_a_trace_adds_no_broken_rule_and_takes_none_away(
    seed: int, shown: dict[str, object], left_out: float
) -> None:
    draw = Random(seed)
    one = drawn_run(draw)
    kept = {knob: said for knob, said in one.configured.settings.by_knob.items() if draw.random() >= left_out}
    configured = FilesRead(Settings(kept, one.configured.settings.framework))
    seen = replace(NOTHING, observed=replace(Observed(), **shown))  # type: ignore[arg-type]
    beside, alone = (judge_observed(evidence, one.given, configured) for evidence in (seen, NOTHING))
    assert beside.from_files is not None
    assert alone.from_files is not None
    assert told(beside.from_files.rules) == told(alone.from_files.rules)
