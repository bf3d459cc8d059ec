"""Rows still written in Python, as rules; this module goes with the last of them."""

from __future__ import annotations

from typing import Final

from packaging.version import Version

from heuristics.rules import (
    delayed_wgrad,
    dispatcher,
    environment,
    ep_overlap,
    flex,
    fsdp,
    layout,
    legacy,
    mtp_context,
    offload,
    optimizer_ddp,
    pipeline,
    precision,
    recompute,
    router,
)
from heuristics.rules.condition import Condition, Term, named
from heuristics.rules.rule import Rule
from traces.settings.knobs import knobs

CODED: Final = {
    "layout": layout.RULES,
    "pipeline": pipeline.RULES,
    "router": router.RULES,
    "dispatcher": dispatcher.RULES,
    "flex": flex.RULES,
    "ep_overlap": ep_overlap.RULES,
    "delayed_wgrad": delayed_wgrad.RULES,
    "recompute": recompute.RULES,
    "offload": offload.RULES,
    "precision": precision.RULES,
    "optimizer_ddp": optimizer_ddp.RULES,
    "fsdp": fsdp.RULES,
    "mtp_context": mtp_context.RULES,
    "environment": environment.RULES,
}
"""By subject."""


def coded(subject: str) -> list[Rule]:
    """The rules of a subject from its Python rows."""
    return [_rule(row) for row in CODED[subject]]


def _rule(row: legacy.Rule) -> Rule:
    parts = tuple(named(knob) for knob in row.knobs if knob in knobs() or knob.startswith("env."))
    return Rule(
        id=row.id,
        text=row.text,
        by=row.says,
        cure=row.cure,
        source=row.source,
        forbids=Condition("", Term(row.broken, parts), row.knobs),
        level=row.level,
        since=Version(row.since) if row.since else None,
        until=Version(row.until) if row.until else None,
        message=row.core_message,
        fix=row.fix,
    )
