"""Runs that have an incident or not, by the table of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from heuristics.incidents.facts import Case
from tests.constraint_doubles import read, run_with
from traces.sections.tables import WallId
from traces.settings.settings import Framework
from traces.training_log.log import Iteration, Message, OutOfMemory, Stage, TrainingLog

PAIRS: Final = read("incident_rows.toml")
STEPS: Final = 60
WINDOW_NS: Final = 100


def case_with(said: Mapping[str, object]) -> Case:
    """A run by the names of incident_rows.toml."""
    words: dict[str, Any] = {knob: value for knob, value in said.items() if value != "unsaid"}
    lines, out_of = words.pop("lines", []), words.pop("out_of", [])
    timeout, versions = words.pop("timeout", {}), words.pop("versions", {})
    steps_ms, waits = words.pop("steps_ms", None), words.pop("waits", None)
    idle, program = words.pop("idle", None), cast(Framework | None, words.pop("program", None))
    costs: dict[WallId, tuple[str, float | None]] = {"host_overhead": ("launch", words.pop("host", None))}
    costs["communication"] = ("ep_dispatch", words.pop("exchanges", None))
    family = words.pop("family", None)
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
    given = replace(run.given, family=family)
    settings = replace(run.settings, framework=program or run.settings.framework)
    run = replace(
        run,
        given=given,
        settings=settings,
        log=log,
        cost_by_kind_ns=by_kind,
        window_ns=WINDOW_NS,
    )
    return Case(run, idle)


def _steps(first_ms: float, last_ms: float) -> tuple[Iteration, ...]:
    each = (last_ms - first_ms) / (STEPS - 1)
    return tuple(Iteration(10 + n, round((first_ms + each * n) * 1e6), n + 1) for n in range(STEPS))
