"""Published troubles: each row is met by a run that has it, and not by one that has it not."""

from __future__ import annotations

import pytest

from heuristics.findings.contradictions import TABLE
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.incidents.incident import STATES, incidents, incidents_of
from heuristics.result.configured import Incident
from heuristics.rules.failures import corrections, failures
from heuristics.rules.rules import known_lines
from heuristics.run.run import Run
from tests.incident_doubles import PAIRS, case_with

NOT_A_LINE = "out-of-memory"


def met(said: dict[str, object]) -> dict[str, Incident]:
    return {one.id: one for one in incidents_of(case_with(said)) if one.state != "possible"}


@pytest.mark.parametrize("id", incidents())
def test_a_run_that_has_it_meets_it_without_an_if(id: str) -> None:
    found = met(PAIRS[id]["has"])  # type: ignore[arg-type]
    assert id in found
    assert found[id].only_if == ()
    assert "?" not in found[id].what + found[id].cure


@pytest.mark.parametrize("id", incidents())
def test_a_run_that_differs_in_one_thing_does_not(id: str) -> None:
    has, differs = PAIRS[id]["has"], PAIRS[id]["not"]
    assert id not in met({**has, **differs})  # type: ignore[dict-item]


def test_every_row_has_its_pair_and_there_are_sixty() -> None:
    assert {*PAIRS} == {*incidents()}
    assert len(incidents()) >= 60


@pytest.mark.parametrize("row", incidents().values(), ids=lambda row: row.id)
def test_a_row_names_what_exists_and_its_thread(row) -> None:  # type: ignore[no-untyped-def]
    assert row.source
    assert row.fix in {"", *CATALOGUE, *corrections()}
    assert {*row.fixes} <= {*CATALOGUE}
    assert {*row.lines} - {NOT_A_LINE} <= {*known_lines().by_id}
    assert {*row.explains} <= {*failures(), *TABLE}
    assert {*row.unless} <= {*incidents()}


def test_nothing_is_known_of_a_run_that_nothing_is_known_of() -> None:
    assert met({}) == {}


DEEPEP: dict[str, object] = {
    "moe_token_dispatcher_type": "flex",
    "moe_flex_dispatcher_backend": "deepep",
    "lines": ["deepep-timeout"],
}


def test_a_version_in_the_log_stands_before_releases_that_are_not_known() -> None:
    first, *others = incidents_of(case_with({**DEEPEP, "gpu": "H100", "versions": {"nvshmem": "3.6.5"}}))
    assert (first.id, first.state, first.only_if) == ("Automodel#3967", "seen", ())
    assert {one.state for one in others if "release" in one.only_if} == {"possible"}


def test_without_a_version_it_speaks_with_an_if() -> None:
    found = {one.id: one.only_if for one in incidents_of(case_with(DEEPEP)) if one.state == "seen"}
    assert found["Automodel#3967"] == ("release",)


def test_a_line_that_several_causes_print_witnesses_none_alone() -> None:
    found = incidents_of(case_with({"lines": ["collective-timeout"]}))
    assert {one.state for one in found} <= {"possible"}


def test_states_stand_in_their_order() -> None:
    found = [one.state for one in incidents_of(case_with({**DEEPEP, "gpu": "H100", "container": "25.11"}))]
    assert found == sorted(found, key=STATES.index)


def test_a_run_without_a_log_has_no_lines() -> None:
    from heuristics.incidents.facts import Case

    assert Case(Run()).lines == frozenset()
