"""The document of one run as a page of one file, for a ticket: Verdict, Why, Next on top."""

from __future__ import annotations

import shlex
from typing import Any

from reports.html.capture_quality import capture_quality, versions
from reports.html.configuration import configuration
from reports.html.environment import assemble
from reports.html.findings import findings
from reports.html.other_ranks import all_ranks
from reports.html.plan import plan_of
from reports.html.rank_sections import communication, kernels, lost_time, moe, sms
from reports.html.section import Section
from reports.html.step_bar import step_picture
from reports.html.timeline import timeline_of
from reports.html.verdict import titles, verdict_of

_SCRIPTS = ("page.js", "timeline.js")


def render_html(document: dict[str, Any], everything: bool = False) -> str:
    """The page; it asks for nothing, and without JavaScript only the timeline is missing.

    `everything`: the guides' choices in full, and references, as elsewhere; fixes and refusals are all there.
    """
    rank = document["ranks"][0]
    plan = plan_of(document, everything)
    sections = [
        lost_time(rank),
        communication(document, rank),
        moe(rank),
        sms(rank),
        kernels(rank),
        all_ranks(document["ranks"]),
    ]
    after = [plan.refused, configuration(document, everything), capture_quality(document)]
    content = {
        "title": _title(document),
        "titles": titles(document),
        "warnings": document["warnings"],
        "verdict": verdict_of(document),
        "plan": plan,
        "picture": step_picture(rank),
        "timeline": timeline_of(rank["timeline"]) if rank.get("timeline") else None,
        "findings": findings(document) if rank.get("timeline") else [],
        "sections": _filled(sections),
        "after": _filled(after),
        "command": document.get("command"),
        "compare": _compare(document),
        "versions": versions(document),
    }
    return assemble("analysis.html.j2", content, _SCRIPTS)


def _filled(sections: list[Section]) -> list[Section]:
    return [one for one in sections if not one.empty]


def _title(document: dict[str, Any]) -> str:
    names = [trace["name"] for trace in document["traces"]]
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else str(names[0])


def _compare(document: dict[str, Any]) -> str:
    """The command that tells whether a change helped; of one trace only, as it compares two."""
    traces = document["traces"]
    return f"moe-diag compare {shlex.quote(traces[0]['name'])} AFTER" if len(traces) == 1 else ""
