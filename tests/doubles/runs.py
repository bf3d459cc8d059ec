"""Runs for the choosers, said in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from heuristics.config.about import Given, Guidance
from heuristics.config.observed import Observed
from heuristics.guides.table import GuideRow, facts_of
from heuristics.run.run import Run

BOTH: tuple[Guidance, Guidance] = ("seed", "main-2026-08")


def run_of(shown: Observed | None = None, costs: dict[str, int] | None = None, **what: object) -> Run:
    """A tuned run under the older guide unless said otherwise; its windows are 100 ns."""
    return run_by(what, shown, costs)


def run_by(
    what: Mapping[str, object], shown: Observed | None = None, costs: dict[str, int] | None = None
) -> Run:
    given = replace(Given(stage="tuned", guidance="seed"), **what)  # type: ignore[arg-type]
    return Run(shown or Observed(), given, {} if costs is None else {"communication": costs}, 100)


def run_that(row: GuideRow, facts: Mapping[str, object]) -> Run:
    """A run of which conditions are told some facts, and those that make a row of a table hold."""
    run = Run()
    held = {name: values[0] for name, values in facts_of(row.when)} if row.when else {}
    for one in (run, run.config):
        one.told.update({**facts, **held})
    return run
