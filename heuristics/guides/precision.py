"""Which low precision to try: the guides' table by GPU architecture, in both editions."""

from typing import Final, Literal, cast

from heuristics.config.about import Guidance
from heuristics.guides.table import Chosen, fire
from heuristics.run.run import Run
from traces.frozen import frozen

RecipeName = Literal[
    "fp16", "bf16", "fp8_delayed", "fp8_current", "fp8_blockwise", "mxfp8", "nvfp4"
]
"""A recipe; `fp8_delayed` and `fp8_current` are the two ways of scaling by one factor per
tensor."""

ROUTER: Final = "fp32"
"""Of the router, whatever the recipe (Megatron-Bridge, skill perf-moe-optimization-workflow)."""


@frozen
class PrecisionChoice(Chosen):
    """What to try, in this order."""

    candidates: tuple[RecipeName, ...]

    @property
    def recipe(self) -> RecipeName:
        """What to try first."""
        return self.candidates[0]


def choose_precision(run: Run, edition: Guidance | None = None) -> PrecisionChoice:
    """Look the run up; an unknown or unlisted GPU stays with BF16."""
    fired = fire("precision", run, edition, lambda row: row.answer)
    candidates = cast(tuple[RecipeName, ...], fired.row.answer)
    return PrecisionChoice(row=fired.row, candidates=candidates, asks=fired.asks)
