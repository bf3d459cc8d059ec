"""What panels of two runs say alike: which runs, which steps, and what their rows are called."""

from __future__ import annotations

from reports.comparison.sentences import has_steps
from reports.document import Document
from reports.words import kind_words, wall_words

NOISE, SMALLER = "noise", "smaller"
_NOISE_WORDS = "rows within the noise, and rounding"


def about_both(document: Document, unit: str) -> str:
    """The line under a panel's title: both runs, their GPU, their steps, the unit."""
    base, new = document["base"], document["new"]
    gpus = [side["gpu"] or "GPU model not recorded" for side in (base, new)]
    counts = [side["steps"]["count"] for side in (base, new)]
    gpu = gpus[0] if gpus[0] == gpus[1] else " and ".join(gpus)
    steps = f"{counts[0]} and {counts[1]} steps" if has_steps(document) else "whole windows"
    return f"{base['name']} (base), {new['name']} (new) \u00b7 {gpu} \u00b7 {steps} \u00b7 {unit}"


def row_words(row: str) -> str:
    """A row as people write it: `compute: gemm`, `launch starved: data loading`."""
    if row == NOISE:
        return _NOISE_WORDS
    group, _, kind = row.removeprefix("idle.").partition(".")
    return f"{wall_words(group)}: {kind_words(kind)}" if kind else wall_words(group)
