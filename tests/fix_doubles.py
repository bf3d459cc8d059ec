"""Runs of which little is known, and what a fix says of them."""

from __future__ import annotations

from dataclasses import replace

from heuristics.fixes.fix import Fix, Precondition
from heuristics.run import Given, Run, Shown


def need(fix: Fix, run: Run, part: str) -> Precondition:
    (found,) = [one for one in fix.preconditions(run) if part in one.text]
    return found


def states(fix: Fix, part: str, *runs: Run) -> list[str]:
    return [need(fix, run, part).state for run in runs]


def shows(**facts: object) -> Run:
    return Run(replace(Shown(), **facts))  # type: ignore[arg-type]


def given(shown: Shown | None = None, **facts: object) -> Run:
    return Run(shown or Shown(), replace(Given(), **facts))  # type: ignore[arg-type]
