"""Host fixes: what each needs of a run, how it is spelled by version, and what it says of itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.fix import Fix
from heuristics.plan.plan import make_plan
from heuristics.run.run import Run
from reports.content.names import name_of
from tests.doubles.fixes import configured
from traces.sections.tables import WallId
from traces.settings.settings import Value

HST_1 = CATALOGUE["HST-1"]
HST_2 = CATALOGUE["HST-2"]
HST_3 = CATALOGUE["HST-3"]
HST_4 = CATALOGUE["HST-4"]
HST_5 = CATALOGUE["HST-5"]
HST_6 = CATALOGUE["HST-6"]
HST_7 = CATALOGUE["HST-7"]
HST_9 = CATALOGUE["HST-9"]
HST_10 = CATALOGUE["HST-10"]
FIXES = (HST_1, HST_2, HST_3, HST_4, HST_5, HST_6, HST_7, HST_9)


def state(fix: Fix, text: str, run: Run) -> str:
    """State of the one precondition with this text in it."""
    (found,) = [one for one in fix.preconditions(run) if text in one.text]
    return found.state


def cure(fix: Fix, text: str, run: Run) -> str:
    (found,) = [one for one in fix.preconditions(run) if text in one.text]
    return found.cure


def test_the_collector_may_be_what_makes_a_pause_of_python_long_and_no_other_fix_is() -> None:
    assert HST_2.kinds == ("gc", "long_python_pauses")
    assert [fix.id for fix in FIXES if "long_python_pauses" in fix.kinds] == ["HST-2"]
    pauses = Run(cost_by_kind_ns={"host_overhead": {"long_python_pauses": 5}}, window_ns=100)
    assert state(HST_2, "collector", pauses) == "unknown"


DROPLESS = Given(routing="dropless", packed_sequences=False)


def test_less_of_the_optimizer_goes_to_the_cpu_where_its_pause_is_seen() -> None:
    costs: dict[WallId, dict[str, int]] = {"host_overhead": {"cpu_optimizer": 9, "python": 1}}
    seen = Run(cost_by_kind_ns=costs, total_ns={"host_overhead": 10})
    assert [one.state for one in HST_9.preconditions(seen)] == ["met", "unknown"]
    assert [one.state for one in HST_9.preconditions(Run())] == ["unmet", "unknown"]
    assert HST_9.knobs(seen).megatron_lm[0] == "--optimizer-offload-fraction 0.5"
    half = configured({"optimizer.optimizer_offload_fraction": 0.5})
    assert HST_9.knobs(half).megatron_bridge[0] == "optimizer.optimizer_offload_fraction=0.25"


def test_where_nothing_of_the_optimizer_is_offloaded_nothing_of_it_is_taken_back() -> None:
    undivided: dict[WallId, dict[str, int]] = {"host_overhead": {}}
    figures = Run(cost_by_kind_ns=undivided, total_ns={"host_overhead": 10})
    assert next(one.state for one in HST_9.preconditions(figures)) == "unmet"
    offloaded = configured({"optimizer.optimizer_cpu_offload": True})
    assert next(one.state for one in HST_9.preconditions(offloaded)) == "met"


def test_garbage_that_is_collected_by_hand_is_not_guessed_from_long_pauses() -> None:
    by_hand = configured({"train.manual_gc": True})
    assert "unmet" in [one.state for one in HST_2.preconditions(by_hand)]
    assert "garbage" not in name_of("long_python_pauses")


@pytest.mark.parametrize(
    ("shown", "title"),
    [
        (Observed(moe=True), "CUDA graphs of router and preprocessing"),
        (Observed(moe=False), "CUDA graphs of attention"),
    ],
)
def test_the_title_of_graphs_names_the_modules_that_its_flags_name(shown: Observed, title: str) -> None:
    run = Run(shown, DROPLESS)
    assert HST_3.of_run(HST_3, run).title == title
    words = {"attn": "attention", "moe_router": "router", "moe_preprocess": "preprocessing"}
    flags = " ".join(HST_3.knobs(run).megatron_lm).split("--cuda-graph-modules ")[1].split(" --")[0]
    assert all(words[flag] in title for flag in flags.split())


def test_a_module_that_is_captured_already_stays_captured() -> None:
    values: dict[str, Value] = {"num_moe_experts": 128, "cuda_graph_impl": "transformer_engine"}
    run = configured({**values, "cuda_graph_modules": ("attn", "moe_preprocess")})
    assert HST_3.change(run).set["cuda_graph_modules"] == ("attn", "moe_router", "moe_preprocess")


@pytest.mark.parametrize(("recorder", "asked"), [(None, True), ("nsys", False)])
def test_collections_that_no_figure_names_may_be_in_the_time_of_python(
    recorder: str | None, asked: bool
) -> None:
    run = Run(Observed(recorder=recorder), cost_by_kind_ns={"host_overhead": {"python": 100, "launch": 100}})
    assert ("python" in HST_2.of_run(HST_2, run).kinds) is asked


def test_a_graph_of_the_whole_step_is_refused_for_its_own_reason_before_another_fix() -> None:
    values: dict[str, Value] = {
        "num_moe_experts": 128,
        "moe_router_topk": 8,
        "moe_token_dispatcher_type": "alltoall",
    }
    run = replace(
        configured(values),
        given=Given(gpu="H100", precision="bf16", core_version="0.16.1", routing="dropless"),
        cost_by_kind_ns={"host_overhead": {"launch": 300}},
        window_ns=1000,
    )
    refused = {one.fix.id: one for one in make_plan(run, ["host_overhead"], CATALOGUE).refused}
    assert refused["HST-7"].because == "needs: no expert size goes back to the host"


@pytest.mark.parametrize(
    ("pageable", "exposed_frac", "said"),
    [
        (True, 0.0, "pin_memory=True"),
        (True, 0.06, "pin_memory=True"),
        (None, 0.06, "pin_memory=True"),
        (None, 0.04, ""),
        (False, 0.04, ""),
        (False, 0.06, "a stream of their own"),
    ],
)
def test_input_is_pinned_where_it_is_pageable_and_copied_ahead_where_it_is_pinned_and_exposed(
    pageable: bool | None, exposed_frac: float, said: str
) -> None:
    form = HST_10.pytorch
    assert form is not None
    change = form.change(Run(Observed(pageable_input=pageable, exposed_input_frac=exposed_frac)))
    lines = "\n".join(change.pytorch)
    assert said in lines
    assert ("pin_memory" in lines) is ("pin_memory" in said)
