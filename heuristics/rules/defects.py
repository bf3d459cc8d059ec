"""One defect, one entry: what rules, findings and steps of the workflow say of the same thing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

SAME: Final[Mapping[str, tuple[str, ...]]] = {
    # rules that are no errors, and the findings that say more of the run
    "flex-backend-inert": ("CFG-flex-type",),
    "flex-without-backend": ("CFG-flex-backend",),
    "ep-overlap-overwritten": ("CFG-overwritten-overlap-moe-expert-parallel-comm",),
    "delayed-wgrad-overwritten": ("CFG-overwritten-delay-wgrad-compute",),
    "max-connections-overlap": ("CFG-max-connections",),
    "tp-overlap-dropped-bridge": ("CFG-tp-overlap-off",),
    "precision-router": ("router-dtype-warning",),
    # findings, and the errors of the framework itself
    "CFG-dispatcher-gpu": ("deepep-gpu", "hybridep-gpu", "deepep-b300-name"),
    # steps of the workflow
    "fit-selective-before-full": ("ep-overlap-full-recompute", "graphs-full-recompute"),
    "delayed-wgrad-graphed-te": ("graphs-wgrad-te-version",),
    "delayed-wgrad-graphed-fusion": ("graphs-wgrad-in-graph", "graphs-wgrad-lm"),
    "delayed-wgrad-graphed-bias": ("graphs-wgrad-bias",),
    "graphs-static-parts": ("graphs-moe-drop-pad",),
    "graphs-router-and-preprocess": ("graphs-preprocess-router",),
    "graphs-selective-recompute": ("graphs-full-recompute",),
    "profile-recipe-default": ("CFG-ep-overlap-left-off",),
}
"""Id -> ids that tell the same defect better. A step of the workflow and a rule of one id tell the same."""


def told_by(number: str, others: Collection[str]) -> str:
    """Which of `others` tells the defect of that id; empty where none does."""
    return next((one for one in (number, *SAME.get(number, ())) if one in others), "")
