"""Which low precision to try: the guides' table by GPU architecture, in both editions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from heuristics.config.about import Guidance
from heuristics.guides.table import OTHER, Row, fire, table
from heuristics.run.run import Run

RecipeName = Literal["bf16", "fp8_delayed", "fp8_current", "fp8_blockwise", "mxfp8", "nvfp4"]
"""A recipe; `fp8_delayed` and `fp8_current` are the two ways of scaling by one factor per tensor."""

ROUTER: Final = "fp32"
"""Of the router, whatever the recipe (Megatron-Bridge, skill perf-moe-optimization-workflow)."""


@dataclass(frozen=True, slots=True)
class PrecisionChoice:
    """What the table chooses for a run.

    `recipe`: what to try first; `candidates`: all of them in order; `row`: the row that fired. `asks`:
    options that could make another row fire. `other`: the other edition's choice, where it differs.
    """

    recipe: RecipeName
    candidates: tuple[RecipeName, ...]
    row: Row
    asks: tuple[str, ...]
    other: PrecisionChoice | None = None


def choose_precision(run: Run) -> PrecisionChoice:
    """Look the run up; an unknown or unlisted GPU stays with BF16."""
    choice, other = _choose(run, run.config.guidance), _choose(run, OTHER[run.config.guidance])
    return choice if choice.candidates == other.candidates else replace(choice, other=other)


def _choose(run: Run, guidance: Guidance) -> PrecisionChoice:
    fired = fire(table("precision")[guidance], run, lambda row: row.answer)
    candidates = cast(tuple[RecipeName, ...], fired.row.answer)
    return PrecisionChoice(candidates[0], candidates, fired.row, fired.asks)
