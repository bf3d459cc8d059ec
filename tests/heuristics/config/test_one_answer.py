"""One answer to "what is this setting", whichever part of the program is asked, for random runs."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given as drawn
from hypothesis import settings as trials
from hypothesis import strategies as st

from heuristics.config.about import Given
from heuristics.config.facts import FACTS
from heuristics.config.view import Trust
from heuristics.guides.facts import is_low_precision
from heuristics.rules.megatron.request import Request, request_of
from heuristics.run.run import Run
from tests.megatron.random_runs import random_run, seeds
from traces.missing import Missing
from traces.settings.precision import bits_of
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
def test_precision_is_one(seed: int, kept: float) -> None:
    run = run_of(seed, kept)
    precision = run.config.precision
    assert run.view(Trust.CHECKED).precision == run.view(Trust.FILES).precision == run.precision == precision
    if precision is None:
        return
    low = (bits_of(precision) or 32) <= 8
    assert run.config.low_precision() is run.view(Trust.CHECKED).low_precision() is low
    assert FACTS["low_precision"].of(run.view(Trust.CHECKED)) is low
    assert is_low_precision(run) is low


@trials(max_examples=150)
@drawn(seeds(), KEPT)
def test_versions_are_one(seed: int, kept: float) -> None:
    run = run_of(seed, kept)
    core = run.config.core
    assert run.view(Trust.CHECKED).core == run.view(Trust.FILES).core == core
    if core is None:  # of no release of Megatron-Bridge that we know
        return
    assert str(FACTS["core"].of(run.view(Trust.CHECKED))) == ".".join(map(str, core))
    request = request_of(run)
    if isinstance(request, Request):
        assert request.core_version == ".".join(map(str, core))


@trials(max_examples=150)
@drawn(seeds(), KEPT)
def test_graphs_and_recompute_are_one(seed: int, kept: float) -> None:
    run = run_of(seed, kept)
    config = run.config
    assert run.view(Trust.FILES).graph_impl == config.graph_impl
    assert config.full_iteration in (None, config.graph_impl == "full_iteration", True)
    assert run.view(Trust.FILES).full_recompute is config.full_recompute
    assert run.active.recompute_full is config.full_recompute
    if config.recompute_modules() is not None and not config.full_recompute:
        assert (
            run.active.recompute_modules
            == config.recompute_modules()
            == run.view(Trust.CHECKED).recompute_modules()
        )


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


@trials(max_examples=60)
@drawn(seeds())
def test_an_option_is_the_answer_everywhere(seed: int) -> None:
    run = replace(run_of(seed, 1.0), given=Given(ep=3, tp=5, precision="fp16", core_version="0.17.0"))
    assert (run.config.ep, run.view(Trust.CHECKED).ep) == (3, 3)
    assert (run.config.tp, run.view(Trust.CHECKED).tp) == (5, 5)
    assert run.config.precision == run.view(Trust.CHECKED).precision == run.precision == "fp16"
    assert run.config.core == run.view(Trust.CHECKED).core == (0, 17, 0)
