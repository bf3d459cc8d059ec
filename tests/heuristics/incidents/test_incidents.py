"""Published troubles: each row is met by a run that has it, and not by one that has it not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

import pytest

from heuristics.incidents.incident import incidents, incidents_of
from heuristics.result.configured import Incident
from heuristics.run.run import Run
from tests.configurations.constraints import read, run_with
from traces.sections.tables import WallId
from traces.settings.settings import Framework
from traces.training_log.log import Iteration, Message, OutOfMemory, Stage, TrainingLog

PAIRS: Final = read("incident_rows.toml")
STEPS: Final = 60
WINDOW_NS: Final = 100


def run_of(said: Mapping[str, object]) -> Run:
    """A run by the names of incident_rows.toml."""
    words: dict[str, Any] = {knob: value for knob, value in said.items() if value != "unsaid"}
    lines, out_of = words.pop("lines", []), words.pop("out_of", [])
    timeout, versions = words.pop("timeout", {}), words.pop("versions", {})
    steps_ms, waits = words.pop("steps_ms", None), words.pop("waits", None)
    idle, program = words.pop("idle", None), cast(Framework | None, words.pop("program", None))
    costs: dict[WallId, tuple[str, float | None]] = {"host_overhead": ("launch", words.pop("host", None))}
    costs["communication"] = ("ep_dispatch", words.pop("exchanges", None))
    family, tight = words.pop("family", None), words.pop("memory_tight", None)
    run = run_with(words)
    by_kind = {wall: {kind: round((part or 0) * WINDOW_NS)} for wall, (kind, part) in costs.items() if part}
    log = TrainingLog(
        "run.log",
        1000,
        iterations=_steps(*steps_ms) if steps_ms else (),
        versions=versions,
        out_of_memory=tuple(OutOfMemory(900, cast(Stage, stage)) for stage in out_of),
        messages=tuple(Message(id, 910, timeout if id == "collective-timeout" else {}) for id in lines),
        loading_fracs=() if waits is None else (waits,),
    )
    given = replace(run.given, family=family, memory_tight=tight)
    settings = replace(run.settings, framework=program or run.settings.framework)
    return replace(
        run,
        given=given,
        settings=settings,
        log=log,
        cost_by_kind_ns=by_kind,
        window_ns=WINDOW_NS,
        idle_frac=idle,
    )


def _steps(first_ms: float, last_ms: float) -> tuple[Iteration, ...]:
    each = (last_ms - first_ms) / (STEPS - 1)
    return tuple(Iteration(10 + n, round((first_ms + each * n) * 1e6), n + 1) for n in range(STEPS))


def met(said: dict[str, object]) -> dict[str, Incident]:
    return {one.id: one for one in incidents_of(run_of(said)) if one.state != "possible"}


@pytest.mark.parametrize("id", incidents())
def test_a_run_that_has_it_meets_it_without_an_if_and_one_that_differs_in_one_thing_does_not(id: str) -> None:
    has, differs = PAIRS[id]["has"], PAIRS[id]["not"]
    found = met(has)  # type: ignore[arg-type]
    assert id in found
    assert found[id].only_if == ()
    assert "?" not in found[id].what + found[id].cure
    assert id not in met({**has, **differs})  # type: ignore[dict-item]


def test_every_row_has_its_pair_and_there_are_sixty() -> None:
    assert {*PAIRS} == {*incidents()}
    assert len(incidents()) >= 60


def test_nothing_is_known_of_a_run_that_nothing_is_known_of() -> None:
    assert met({}) == {}


DEEPEP: dict[str, object] = {
    "moe_token_dispatcher_type": "flex",
    "moe_flex_dispatcher_backend": "deepep",
    "lines": ["deepep-timeout"],
}


def test_without_a_version_it_speaks_with_an_if() -> None:
    found = {one.id: one.only_if for one in incidents_of(run_of(DEEPEP)) if one.state == "seen"}
    assert found["Automodel#3967"] == ("release",)
