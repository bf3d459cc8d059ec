"""No page of `check-config` says anything against itself: over every configuration that is kept here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pytest

from diagnoser.cli import run
from heuristics.fixes.catalogue import CATALOGUE
from reports.result.codec import Document
from tests.agreement.page_contradictions import no_step_is_refused_on_its_own_page, rules_of
from tests.configurations.config_cases import CASES, screen
from tests.configurations.pairs import PAIRS, config_of

Rule = Callable[[Document], Iterator[str]]
_OF_EXPERTS: Final = {
    *("COM-1", "COM-2", "COM-3", "COM-8", "COM-9", "COM-10", "COM-11", "COM-12", "COM-15"),
    *("CMP-1", "CMP-5", "MEM-5", "MEM-11", "MEM-12", "HST-6"),
}
"""Fixes that only a model with experts can take."""
_FLEX: Final = ("deepep", "hybridep", "ncclep")


def disagreements(document: Document) -> list[str]:
    """Everything in it that disagrees, with the rule that names it."""
    return [f"{rule.__name__}: {said}" for rule in RULES for said in rule(document)]


def no_two_steps_exclude_each_other(document: Document) -> Iterator[str]:
    for first, later in combinations(document["fixes"], 2):
        if later["id"] in _excludes(first["id"]) or first["id"] in _excludes(later["id"]):
            yield f"{first['id']} beside {later['id']}"


def the_planned_dispatcher_is_the_guides(document: Document) -> Iterator[str]:
    choice = _choice(document, "dispatcher")
    for step in _planned(document):
        if step["id"] != "COM-2" or choice is None or step["arms"]:
            continue
        text = " ".join((*step["knobs"]["megatron_lm"], *step["knobs"]["megatron_bridge"]))
        told = [name for name in (*_FLEX, "alltoall") if re.search(rf"\b{name}\b", text)]
        guided = choice["candidates"] or [choice["answer"]]
        yield from (f"sets {name}, the guide has {guided}" for name in told if name not in guided)


def a_backend_that_is_to_go_is_not_tuned(document: Document) -> Iterator[str]:
    steps = {one["id"]: one for one in document["fixes"]}
    if "COM-2" in steps and "COM-3" in steps:
        text = " ".join(
            (*steps["COM-2"]["knobs"]["megatron_lm"], *steps["COM-2"]["knobs"]["megatron_bridge"])
        )
        counts = "num_sms" in " ".join(steps["COM-3"]["knobs"]["megatron_bridge"])
        if "alltoall" in text and counts:
            yield "COM-2 sets alltoall, COM-3 tunes a flex backend"


def recompute_is_the_guides(document: Document) -> Iterator[str]:
    choice = _choice(document, "recompute")
    step = next((one for one in document["fixes"] if one["id"] == "MEM-2"), None)
    if choice is None or step is None:
        return
    text = " ".join(step["knobs"]["megatron_lm"])
    named = re.search(r"--recompute-modules ([\w ]+)", text)
    if named and set(named[1].split()) - set(choice["answer"].split()):
        yield f"MEM-2 sets {named[1]}, the guide has {choice['answer']}"


def a_dense_model_gets_nothing_for_experts(document: Document) -> Iterator[str]:
    """Neither steps nor a dispatcher, where the configuration has layers and no experts."""
    settings = {
        one["knob"]: one["value"] for one in (document.get("configuration") or {}).get("settings", ())
    }
    if not settings.get("num_layers") or settings.get("num_moe_experts", 1) not in (None, 0):
        return
    if any(kind.startswith("ep_") for wall in document["walls"] for kind in wall["cost_by_kind_ns"] or ()):
        return  # symptoms of another model
    yield from (one["id"] for one in _planned(document) if one["id"] in _OF_EXPERTS)
    if _choice(document, "dispatcher") is not None:
        yield "a dispatcher is chosen"


def what_is_refused_as_set_is_not_advised(document: Document) -> Iterator[str]:
    is_set = {one["id"] for one in document["refused"] if "already" in one["because"]}
    for step in document.get("workflow") or ():
        if step["state"] == "violated" and step["fix"] in is_set and not step["guide_only"]:
            yield f"{step['id']} advises {step['fix']}, which is set"


def what_does_not_fit_is_not_planned_to_grow(document: Document) -> Iterator[str]:
    short = any(one["id"] == "CFG-memory-estimate" for one in document.get("defects") or ())
    for step in _planned(document):
        room = step["room"] or {}
        if room.get("fits") is False or (short and (room.get("delta_bytes") or 0) > 0):
            yield f"{step['id']} adds {room.get('delta_bytes')}"


def legal_is_not_said_beside_an_error(document: Document) -> Iterator[str]:
    configuration = document.get("configuration")
    heavy = [one["id"] for one in document.get("defects") or () if one["kind"] in ("rejected", "fails")]
    if configuration and configuration["legal"] and heavy:
        yield f"legal beside {heavy}"


RULES: Final[tuple[Rule, ...]] = (no_step_is_refused_on_its_own_page, *rules_of(__name__, but=disagreements))


def _planned(document: Document) -> list[dict[str, Any]]:
    return [*document["fixes"], *document["levers"]]


def _choice(document: Document, about: str) -> dict[str, Any] | None:
    return next((one for one in document["choices"] or () if one["about"] == about), None)


def _excludes(id: str) -> tuple[str, ...]:
    return CATALOGUE[id].excludes if id in CATALOGUE else ()


SYMPTOMS: Final[Mapping[str, dict[str, Any]]] = {
    "communication": {"budget_frac": {"compute": 0.5, "exposed_comm": 0.45, "idle": 0.05},
     "exposed_comm_by_kind_frac": {"ep_a2a": 0.25, "pp_p2p": 0.1, "tp": 0.1}},
    "host": {"budget_frac": {"compute": 0.6, "exposed_comm": 0.1, "idle": 0.3},
     "absent_frac": {"launch_starved": 0.27}},
    "memory": {"budget_frac": {"compute": 0.9, "exposed_comm": 0.05, "idle": 0.05},
     "memory": {"does_not_fit": True}},
}  # fmt: skip


def document(
    path: Path, symptoms: Path, capsys: pytest.CaptureFixture[str], gpu: str
) -> dict[str, Any] | None:
    """None for what is no configuration of ours."""
    about = ("--gpu-model", gpu, "--core-version", "0.16.1", "--world-size", "64")
    run(["check-config", str(path), *about, "--symptoms", str(symptoms), "--no-megatron", "-f", "json"])
    text = capsys.readouterr().out
    return json.loads(text) if text else None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_case_of_a_reader_says_anything_against_itself(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text = screen(case, capsys, "-f", "json")
    assert disagreements(json.loads(text)) == []


@pytest.mark.parametrize("wall", SYMPTOMS)
def test_no_side_of_a_pair_says_anything_against_itself(
    wall: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    symptoms = _written(tmp_path, wall)
    for pair in PAIRS[::4]:
        found = document(config_of(pair, "new"), symptoms, capsys, "H100")
        assert found is not None
        assert disagreements(found) == [], pair.name


def _written(folder: Path, wall: str) -> Path:
    path = folder / "symptoms.json"
    path.write_text(json.dumps(SYMPTOMS[wall]), encoding="utf-8")
    return path
