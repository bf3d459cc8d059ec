"""A configuration costs no step of the plan: what is published of such a run stands below it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from diagnoser import analyze
from diagnoser.demo import unpack
from diagnoser.diagnosis import Diagnosis
from tests.places import DATA
from traces.patterns import compiled

UNEVEN = DATA / "field_cases" / "10-dsv3-h100-aux-loss-coefficient-zero" / "run.sh"


@pytest.fixture(scope="module")
def diagnosis(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    folder = tmp_path_factory.mktemp("uneven")
    unpack(folder / "memory.sqlite", "memory")
    return analyze(folder / "memory.sqlite", config=UNEVEN, ask_megatron=False)


def steps(diagnosis: Diagnosis) -> list[str]:
    return compiled(r"(?m)^  \d  .*").findall(diagnosis.text())


def test_a_published_trouble_takes_no_step_of_the_plan(diagnosis: Diagnosis) -> None:
    met = [one for one in diagnosis.result.incidents or () if one.state == "met"]
    assert met
    assert steps(diagnosis) == steps(Diagnosis(replace(diagnosis.result, incidents=())))


def test_it_is_named_below_the_plan_with_its_cure(diagnosis: Diagnosis) -> None:
    text = diagnosis.text()
    known = text.index("Known  ")
    assert text.index("DO THIS") < known
    (first, *_) = [one for one in diagnosis.result.incidents or () if one.state == "met"]
    assert text[known:].split()[1] == f"{first.id}:"
    assert "Cure:" in text[known:]
