"""Which low precision to try: the guides' table by GPU architecture, in both editions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from heuristics.guides.table import OTHER, Fact, Row, fire, table
from heuristics.run.given import Guidance
from heuristics.run.run import Run
from traces.settings.precision import BITS, bits_of

RecipeName = Literal["bf16", "fp8_delayed", "fp8_current", "fp8_blockwise", "mxfp8", "nvfp4"]
"""A recipe; `fp8_delayed` and `fp8_current` are the two ways of scaling by one factor per tensor."""

ROUTER: Final = "fp32"
"""Of the router, whatever the recipe (Megatron-Bridge, skill perf-moe-optimization-workflow)."""

_OPTION: Final = {"architecture": "--gpu-model", "stage": "--stage", "fp8_runs": "--precision"}


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
    bits = bits_of(run.precision)
    facts: dict[str, Fact] = {
        "architecture": _architecture(run),
        "stage": run.config.stage,
        "fp8_runs": None if bits is None else bits <= BITS["mxfp8"],
    }
    fired = fire(table("precision")[guidance], facts, lambda row: row.answer)
    candidates = cast(tuple[RecipeName, ...], fired.rule.answer)
    asks = tuple(_OPTION[fact] for fact in fired.open_facts)
    return PrecisionChoice(candidates[0], candidates, fired.rule, asks)


def _architecture(run: Run) -> str | None:
    """hopper or blackwell by compute capability (9.0; 10.0 and 10.3), other, or None where unknown."""
    capability = run.config.capability
    if capability is None:
        return None
    if capability == (9, 0):
        return "hopper"
    return "blackwell" if capability[0] == 10 else "other"
