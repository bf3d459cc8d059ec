"""The page of a comparison: words of `reports.comparison`, pictures of the `comparison_*` beside it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reports.comparison.sentences import (
    before_suspects,
    difference_sentence,
    has_steps,
    headline,
    layer_sentence,
    next_sentences,
    no_suspect,
    noise_sentence,
    pair_sentence,
    per,
    sharing_sentence,
    side_sentence,
    suspect_sentence,
    verdict_sentences,
)
from reports.document import Document
from reports.html.comparison_interval import interval_line
from reports.html.comparison_steps import both_steps
from reports.html.comparison_tables import (
    changes,
    gaps,
    intervals,
    kernels,
    layers,
    sums,
)
from reports.html.comparison_timelines import both_timelines
from reports.html.comparison_waterfall import ROWS, place_of, waterfall
from reports.html.environment import assemble
from reports.redaction import redaction_sentence

_SUSPECTS: Final = 3
_LAYERS: Final = 3
_CHANGED: Final = 6
_KERNELS: Final = 12
_GRAVE: Final = ("no", "with_differences", "yes")
_NAMES: Final = {
    "regression": "Regression",
    "improvement": "Improvement",
    "no_change": "No change",
    "undecided": "Undecided",
    "not_comparable": "Not comparable",
}


def render_comparison_html(document: Document, everything: bool = False) -> str:
    """The whole page. It holds everything; `everything` also unfolds it and gives every row its own bar."""
    content: Mapping[str, object] = {
        "everything": everything,
        "verdict": document["verdict"],
        "verdict_name": _NAMES[document["verdict"]],
        "forbidden": document["verdict"] == "not_comparable",
        **_top(document),
        **_why(document),
        **_where(document, everything),
        "steps": both_steps(document),
        "timelines": both_timelines(document),
        "kernels": kernels(document),
        "kernels_shown": _KERNELS,
        "changes": changes(document),
        "changed_count": _CHANGED,
        "limits": _limits(document),
        "gaps": gaps(document),
        **_foot(document),
    }
    scripts = ("page.js", "timeline.js")
    return assemble("comparison.html.j2", content, scripts=scripts, styles=("page.css", "comparison.css"))


def _top(document: Document) -> dict[str, Any]:
    return {
        "sides": [(side, document[side]["name"], side_sentence(document[side])) for side in ("base", "new")],
        "warnings": document["warnings"],
        "headline": headline(document),
        "line": interval_line(document),
        "verdict_sentences": list(verdict_sentences(document)),
        "next": list(next_sentences(document, len(document["suspects"]))) or ["Nothing more is needed."],
    }


def _why(document: Document) -> dict[str, Any]:
    suspects = document["suspects"]
    return {
        "before_suspects": before_suspects(document),
        "no_suspect": "" if suspects else no_suspect(document),
        "sharing": sharing_sentence(suspects[:_SUSPECTS]),
        "suspects": [
            {
                **one,
                "said": suspect_sentence(document, one),
                "places": [(row, place_of(document, row)) for row in one["rows"]],
            }
            for one in suspects
        ],
        "suspects_shown": _SUSPECTS,
    }


def _where(document: Document, everything: bool) -> dict[str, Any]:
    rows = document["attribution"]
    named = [row for row in rows if row["row"] != "noise"]
    moved = document["layers"] and document["verdict"] != "no_change"
    return {
        "per": per(document),
        "what": "step" if has_steps(document) else "window",
        "waterfall": waterfall(document, everything),
        "smaller": [] if everything else sums(named[ROWS:], document),
        "intervals": intervals(rows),
        "noise": [(noise_sentence(row), row["parts"]) for row in rows if row["parts"]],
        "pairs": pair_sentence(document["pairs"]) if len(document["pairs"]) > 1 else "",
        "layer_sentence": layer_sentence(document["layers"][:_LAYERS]) if moved else "",
        "layers": layers(document),
        "modules": sums(document["modules"], document),
        "reasons": sums(document["reasons"], document),
    }


def _limits(document: Document) -> list[tuple[str, str]]:
    """What limits or forbids the comparison, the gravest first."""
    ordered = sorted(document["comparable"]["differences"], key=lambda one: _GRAVE.index(one["state"]))
    return [(one["state"], difference_sentence(one)) for one in ordered]


def _foot(document: Document) -> dict[str, Any]:
    """The command that gives the same again, and what wrote this."""
    tool = document["tool"]
    guidance = f", guidance {tool['guidance']}" if tool["guidance"] else ""
    return {
        "command": f"moe-diag compare {' '.join(_arguments(document))} -f html -o comparison.html",
        "written_by": f"{tool['name']} {tool['version']}{guidance}, document {document['schema_version']}.",
        "redaction": redaction_sentence(document),
    }


def _arguments(document: Document) -> Iterator[str]:
    sides = ("base", "new")
    yield from (shlex.quote(document[side]["name"]) for side in sides)
    if document["pairs"][0]["by"] == "chosen":
        yield from (f"--{side}-gpu {document[side]['device']}" for side in sides)
    if document["gate"]:
        yield f"--gate {document['gate']['limit_frac'] * 100:g}%"
