"""Which low precision to try: the guides' table by GPU architecture, in both profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from heuristics.config.precision import BITS, bits_of
from heuristics.guides.table import Fact, When, fire
from heuristics.run.run import Run

RecipeName = Literal["bf16", "fp8_delayed", "fp8_current", "fp8_blockwise", "mxfp8", "nvfp4"]
"""A recipe; `fp8_delayed` and `fp8_current` are the two ways of scaling by one factor per tensor."""

ROUTER: Final = "fp32"
"""Of the router, whatever the recipe (Megatron-Bridge, skill perf-moe-optimization-workflow)."""

_OPTION: Final = {"architecture": "--gpu-model", "stage": "--stage", "fp8_runs": "--precision"}


@dataclass(frozen=True, slots=True)
class PrecisionRule:
    """A row: where it holds, and what each guidance profile has for it, what to try first in front."""

    name: str
    when: When
    seed: tuple[RecipeName, ...]
    main: tuple[RecipeName, ...]


RULES: Final = (
    PrecisionRule(
        "Blackwell, speed first, once a BF16 or FP8 run is stable",
        {"architecture": ("blackwell",), "fp8_runs": (True,), "stage": ("tuned",)},
        ("nvfp4",),
        ("nvfp4",),
    ),
    PrecisionRule(
        "Hopper, bring-up",
        {"architecture": ("hopper",), "stage": ("bring_up",)},
        ("fp8_blockwise",),
        ("bf16",),
    ),
    PrecisionRule(
        "Blackwell, bring-up",
        {"architecture": ("blackwell",), "stage": ("bring_up",)},
        ("mxfp8",),
        ("bf16",),
    ),
    PrecisionRule(
        "Hopper",
        {"architecture": ("hopper",)},
        ("fp8_blockwise",),
        ("fp8_blockwise", "fp8_current", "fp8_delayed"),
    ),
    PrecisionRule("Blackwell", {"architecture": ("blackwell",)}, ("mxfp8",), ("mxfp8", "fp8_current")),
    PrecisionRule("a GPU that no row names", {}, ("bf16",), ("bf16",)),
)
"""Rows of the precision table of Megatron-Bridge's skill perf-moe-optimization-workflow. Until 0.6 it named
one recipe to start with for Hopper and for Blackwell; since 2026-08 it names candidates, after a BF16 run
is stable. Their order is Megatron-Core's (moe/README.md: blockwise is production-proven on Hopper, per
tensor conservative, MXFP8 native on Blackwell)."""


@dataclass(frozen=True, slots=True)
class PrecisionChoice:
    """What the table says of a run.

    `recipe`: what to try first in the run's guidance profile; `rule`: the row that fired. `seed`, `main`:
    candidates in each profile, in order. `asks`: options that could make another row fire.
    """

    recipe: RecipeName
    rule: str
    seed: tuple[RecipeName, ...]
    main: tuple[RecipeName, ...]
    asks: tuple[str, ...]

    @property
    def profiles_differ(self) -> bool:
        """Whether the two guidance profiles say different things."""
        return self.seed != self.main


def choose_precision(run: Run) -> PrecisionChoice:
    """Look the run up; an unknown or unlisted GPU stays with BF16."""
    bits = bits_of(run.precision)
    facts: dict[str, Fact] = {
        "architecture": _architecture(run),
        "stage": run.config.stage,
        "fp8_runs": None if bits is None else bits <= BITS["mxfp8"],
    }
    fired = fire(RULES, facts, lambda rule: (rule.seed, rule.main))
    rule = fired.rule
    candidates = rule.seed if run.config.guidance == "seed" else rule.main
    asks = tuple(_OPTION[fact] for fact in fired.open_facts)
    return PrecisionChoice(candidates[0], rule.name, rule.seed, rule.main, asks)


def _architecture(run: Run) -> str | None:
    """hopper or blackwell by compute capability (9.0; 10.0 and 10.3), other, or None where unknown."""
    capability = run.config.capability
    if capability is None:
        return None
    if capability == (9, 0):
        return "hopper"
    return "blackwell" if capability[0] == 10 else "other"
