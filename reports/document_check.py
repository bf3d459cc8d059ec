"""A configuration judged without a trace as a document: the contract's keys, without traces and ranks."""

from __future__ import annotations

from typing import Any, Final

from heuristics import Judgement
from reports.document import SCHEMA_VERSION, Document
from reports.document_config import config_gaps, config_sections
from reports.document_verdict import judged_sections, verdict_gaps
from traces.missing import Missing

_UNSAID: Final = "unknown"
"""The largest bucket where symptoms do not say the budget."""
_CURE: Final = "give symptoms (--symptoms), or analyze a trace"


def build_check_document(
    version: str, name: str, judgement: Judgement, judged: bool, redact: bool = True
) -> Document:
    """The document of `check-config`. `name`: of the configuration file; `judged`: symptoms were given.

    A log that ran out of memory tells a wall without them.
    """
    judged = judged or any(wall.outcome != "unmeasurable" for wall in judgement.walls)
    if judged:
        gaps = [*judgement.missing, *verdict_gaps(judgement), *config_gaps(judgement, redact)]
    else:
        why = "no symptoms were given"
        gaps = [Missing("verdict", why, _CURE), Missing("walls", why, _CURE), *config_gaps(judgement, redact)]
    sections = judged_sections(judgement)
    if judgement.largest.bucket == _UNSAID:
        sections["verdict"] = _without_budget(sections["verdict"])
        for key in ("largest_bucket", "largest_bucket_frac"):
            gaps.append(Missing(f"verdict.{key}", "nothing says the budget of a step", _CURE))
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "moe-diag", "version": version, "guidance": judgement.guidance},
        "about": name,
        "judged": judged,
        "warnings": [],
        "missing": [{"path": gap.path, "reason": gap.reason, "cure": gap.cure} for gap in gaps],
        "redacted": redact,
        "traces": [],
        "ranks": [],
        **sections,
        **config_sections(judgement, redact),
    }


def _without_budget(verdict: dict[str, Any]) -> dict[str, Any]:
    return {**verdict, "largest_bucket": None, "largest_bucket_frac": None}
