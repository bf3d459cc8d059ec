"""Parallel sizes that the trace refutes: it has traffic that only ranks of such a size send."""

from __future__ import annotations

import pytest

from heuristics.findings.contradictions import find_contradictions
from heuristics.run.run import Run
from tests.doubles.workflow import Config, run_with
from traces.settings.knobs import CP, EP, ETP, PP, TP
from traces.settings.settings import Value

ONE: Config = dict.fromkeys((TP, CP, PP, EP, ETP), 1)


def traffic(run: Run) -> list[str]:
    return [one.id for one in find_contradictions(run) if one.id.startswith("CFG-traffic-")]


@pytest.mark.parametrize(
    ("knob", "seen", "id"),
    [
        (EP, "ep_active", "CFG-traffic-ep"),
        (TP, "tp_active", "CFG-traffic-tp"),
        (CP, "cp_active", "CFG-traffic-cp"),
        (PP, "pp_active", "CFG-traffic-pp"),
    ],
)
def test_traffic_of_a_size_that_is_configured_as_one_is_a_finding_that_names_it(
    knob: str, seen: str, id: str
) -> None:
    run = run_with(ONE, shown={seen: True})
    assert traffic(run) == [id]
    assert run.config.refuted == (knob,)
    assert traffic(run_with({**ONE, knob: 8}, shown={seen: True})) == []
    assert traffic(run_with(ONE)) == []


@pytest.mark.parametrize(
    ("knobs", "shown"),
    [
        ({ETP: 8}, {"ep_active": True, "dispatcher": "deepep"}),
        ({ETP: 8}, {"tp_active": True}),
        ({ETP: None, TP: 8}, {"ep_active": True, "dispatcher": "allgather"}),
        ({CP: 4, "cp_comm_type": "a2a"}, {"ep_active": True, "dispatcher": "alltoall"}),
        ({CP: 4}, {"pp_active": True}),
        ({PP: 4}, {"cp_active": True}),
    ],
)
def test_what_another_dimension_may_send_refutes_nothing(
    knobs: dict[str, Value], shown: dict[str, object]
) -> None:
    assert traffic(run_with({**ONE, **knobs}, shown=shown)) == []


def test_a_size_that_nobody_configured_is_not_refuted() -> None:
    assert traffic(run_with({"num_moe_experts": 8}, shown={"ep_active": True})) == []


def test_an_option_is_refuted_as_a_file_is() -> None:
    run = run_with({"num_moe_experts": 8}, given={"ep": 1}, shown={"ep_active": True})
    (found,) = [one for one in find_contradictions(run) if one.id == "CFG-traffic-ep"]
    assert "--ep" in found.evidence


def test_gradients_of_several_ranks_refute_a_world_of_one() -> None:
    knobs = {**ONE, "world_size": 1}
    assert traffic(run_with(knobs, shown={"dp_active": True})) == ["CFG-traffic-dp"]
    assert traffic(run_with({**knobs, "world_size": 8}, shown={"dp_active": True})) == []


def test_sends_of_unknown_purpose_refute_sizes_that_are_all_one() -> None:
    shown = {"sendrecv_unresolved": True}
    (found,) = [one for one in find_contradictions(run_with(ONE, shown=shown)) if "traffic" in one.id]
    assert (
        found.text == "PP 1, CP 1 and EP 1 are configured, and the trace has send and receive between ranks"
    )
    assert traffic(run_with({**ONE, PP: 2}, shown=shown)) == []
    assert traffic(run_with({**ONE, "optimizer.optimizer": "dist_muon"}, shown=shown)) == []
