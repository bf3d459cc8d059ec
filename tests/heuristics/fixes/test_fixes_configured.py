"""What the configuration answers: readers of it, the run it makes, and the older cards that ask it."""

from __future__ import annotations

import pytest

from heuristics.fixes.catalogue import CATALOGUE
from tests.doubles.fixes import configured
from traces.settings.settings import Value


def test_the_first_knob_with_a_value_is_taken() -> None:
    run = configured({"comm_overlap.overlap_grad_reduce": None, "ddp.overlap_grad_reduce": True})
    assert run.config.overlap("overlap_grad_reduce") is True
    assert run.config.first("comm_overlap.overlap_grad_reduce", "ddp.overlap_grad_reduce") is True


def test_bridges_own_section_outweighs_the_field() -> None:
    run = configured({"comm_overlap.delay_wgrad_compute": False, "delay_wgrad_compute": True})
    assert run.config.delayed_wgrad is False


@pytest.mark.parametrize(
    ("values", "fact"),
    [
        ({"num_moe_experts": 8}, ("moe", True)),
        ({"num_moe_experts": None}, ("moe", False)),
        ({"moe_token_dispatcher_type": "alltoall"}, ("dispatcher", "alltoall")),
        ({"moe_flex_dispatcher_backend": "hybridep"}, ("dispatcher", "unknown")),
        (
            {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"},
            ("dispatcher", "hybridep"),
        ),
        ({"moe_token_dispatcher_type": "flex", "moe_enable_deepep": True}, ("dispatcher", "deepep")),
        ({"recompute_granularity": None}, ("recompute_modules", ())),
        (
            {"recompute_granularity": "selective", "recompute_modules": None},
            ("recompute_modules", ("core_attn",)),
        ),
        ({"recompute_granularity": "full"}, ("recompute_full", True)),
        ({"cuda_graph_impl": "none"}, ("graph_frac", 0.0)),
        ({"overlap_moe_expert_parallel_comm": True}, ("ep_overlap", True)),
    ],
)
def test_what_no_trace_shows_is_what_the_configuration_asks_for(
    values: dict[str, Value], fact: tuple[str, object]
) -> None:
    assert getattr(configured(values).active, fact[0]) == fact[1]


# ---- sizes that divide ----


# ---- cards and choosers that ask the configuration ----


@pytest.mark.parametrize(("core", "pp", "states"), [("0.16.1", 1, ["unmet"]), ("0.17.0", 2, [])])
def test_an_mtp_layer_wanted_stages_beside_the_overlap_for_two_releases(
    core: str, pp: int, states: list[str]
) -> None:
    run, newest = (configured({"mtp_num_layers": 1}, pp=pp, core_version=one) for one in (core, None))
    needs = CATALOGUE["COM-1"].preconditions(run)
    assert [one.state for one in needs if "with an MTP layer" in one.text] == states
    assert not [one for one in CATALOGUE["COM-1"].preconditions(newest) if "with an MTP" in one.text]
