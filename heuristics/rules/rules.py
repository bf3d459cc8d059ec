"""All rules, by subject."""

from __future__ import annotations

from typing import Final

from heuristics.rules import (
    delayed_wgrad,
    dispatcher,
    environment,
    ep_overlap,
    flex,
    fsdp,
    graphs,
    layout,
    mtp_context,
    offload,
    optimizer_ddp,
    pipeline,
    precision,
    recompute,
    router,
)
from heuristics.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    *layout.RULES,
    *pipeline.RULES,
    *router.RULES,
    *dispatcher.RULES,
    *flex.RULES,
    *ep_overlap.RULES,
    *delayed_wgrad.RULES,
    *graphs.RULES,
    *recompute.RULES,
    *offload.RULES,
    *precision.RULES,
    *optimizer_ddp.RULES,
    *fsdp.RULES,
    *mtp_context.RULES,
    *environment.RULES,
)

RULE: Final = {rule.id: rule for rule in RULES}
"""By id."""
