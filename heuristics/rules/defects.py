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
    "shared-overlap-flex-bridge": ("CFG-shared-overlap-flex",),
    "max-connections-overlap": ("CFG-max-connections",),
    "tp-overlap-dropped-bridge": ("CFG-tp-overlap-off",),
    "hybridep-multi-node": ("CFG-hybridep-topology",),
    # findings, and the errors of the framework itself
    "CFG-fake-group-flex": ("fake-group-flex",),
    "CFG-dispatcher-gpu": ("deepep-gpu", "hybridep-gpu"),
    "CFG-hybridep-topology": ("hybridep-domain",),
    # steps of the workflow
    "fit-selective-before-full": ("ep-overlap-full-recompute", "graphs-full-recompute"),
    "scale-ep-before-tp": ("one-of-everything",),
    "folding-attention-mesh": ("world-attention-mesh",),
    "folding-expert-mesh": ("world-expert-mesh",),
    "folding-experts-divide": ("experts-for-ep",),
    "flex-type": ("CFG-flex-type", "flex-backend-inert"),
    "flex-gpu": ("deepep-gpu", "hybridep-gpu", "CFG-dispatcher-gpu"),
    "flex-shared-experts": (
        *("shared-overlap-dispatcher", "CFG-shared-overlap-flex"),
        "shared-overlap-flex-bridge",
    ),
    "flex-router-fp32": ("flex-router-dtype",),
    "hybridep-topology": ("hybridep-domain", "CFG-hybridep-topology"),
    "shared-overlap-alone": ("ep-overlap-shared-experts",),
    "graphs-packed": ("graphs-packed-sequences",),
    "graphs-static-parts": ("graphs-moe-drop-pad",),
    "graphs-router-and-preprocess": ("graphs-preprocess-router",),
    "precision-router": ("router-dtype-warning",),
    "profile-recipe-default": ("CFG-ep-overlap-left-off",),
}
"""Id -> ids that tell the same defect better. A step of the workflow and a rule of one id tell the same."""


def told_by(number: str, others: Collection[str]) -> str:
    """Which of `others` tells the defect of that id; empty where none does."""
    return next((one for one in (number, *SAME.get(number, ())) if one in others), "")
