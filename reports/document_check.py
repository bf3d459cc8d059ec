"""A configuration judged without a trace as a document: the contract's keys, without traces and ranks."""

from __future__ import annotations

from heuristics import Judgement
from reports.document import SCHEMA_VERSION, Document
from reports.document_config import config_gaps, config_sections
from reports.document_verdict import judged_sections, verdict_gaps
from traces.missing import Missing


def build_check_document(version: str, name: str, judgement: Judgement, judged: bool) -> Document:
    """The document of `check-config`. `name`: of the configuration file; `judged`: symptoms were given."""
    cure = "give symptoms (--symptoms), or analyze a trace"
    gaps = [*judgement.missing, *verdict_gaps(judgement), *config_gaps(judgement)]
    if not judged:
        gaps = [
            Missing("verdict", "no symptoms were given", cure),
            Missing("walls", "no symptoms were given", cure),
            *config_gaps(judgement),
        ]
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "moe-diag", "version": version, "guidance": judgement.guidance},
        "about": name,
        "judged": judged,
        "warnings": [],
        "missing": [{"path": gap.path, "reason": gap.reason, "cure": gap.cure} for gap in gaps],
        "redacted": True,
        "traces": [],
        "ranks": [],
        **judged_sections(judgement),
        **config_sections(judgement),
    }
