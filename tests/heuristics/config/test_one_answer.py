"""One answer to "what is this setting", whichever part of the program is asked, for random runs."""

from __future__ import annotations

from random import Random

from hypothesis import given as drawn
from hypothesis import settings as trials
from hypothesis import strategies as st

from heuristics.config.about import Given
from heuristics.config.facts import FACTS
from heuristics.run.run import Run
from tests.megatron.random_runs import random_run, seeds
from traces.missing import Missing
from traces.settings.settings import Settings
from traces.sizes.layout import layout_of as sizes_layout
from traces.sizes.model import model_size

CUTS = ("tp", "cp", "pp", "ep")
KEPT = st.one_of(st.just(1.0), st.floats(0.2, 1.0))
"""Whole configurations, and such of which a part of the knobs is unknown."""


def run_of(seed: int, kept: float) -> Run:
    """A run of files alone: a whole legal configuration, of which `kept` of the knobs are known."""
    draw = Random(seed)
    run = random_run(draw).run
    known = {knob: one for knob, one in run.settings.by_knob.items() if draw.random() <= kept}
    given = Given(core_version=run.given.core_version, bridge_version=run.given.bridge_version)
    return Run(given=given, settings=Settings(known, run.settings.framework))


@trials(max_examples=150)
@drawn(seeds(), KEPT)
def test_parallel_sizes_are_one(seed: int, kept: float) -> None:
    run = run_of(seed, kept)
    config = run.config
    for name in (*CUTS, "etp", "dp", "edp"):
        assert FACTS[name].of(config) == getattr(config, name), name
    model = model_size(config.settings)
    sized = Missing("", "", "") if isinstance(model, Missing) else sizes_layout(config.settings, model)
    if isinstance(sized, Missing):
        return
    for name in CUTS:
        if (known := getattr(config, name)) is not None:
            assert getattr(sized, name) == known, name
    assert sized.world == config.world
    if config.microbatches is not None:
        assert sized.microbatch_count == config.microbatches
