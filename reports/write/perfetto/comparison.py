"""A comparison as a trace for ui.perfetto.dev: a step of either run, both begun at zero, and what
differs.
"""

from itertools import count
from typing import Final

from heuristics.result.compared import Compared, Side
from reports.content.comparison.difference import delta, headline, longest_drawn_ns, sides, unit
from reports.content.names import gpu_of, name_of, optional, who
from reports.content.page import Detail
from reports.redaction import redaction_words
from reports.result.codec import lowered
from reports.write.perfetto.tracks import (
    Process,
    Slice,
    Track,
    render_events,
    span,
    step_tracks,
    verdict,
)

_ROWS: Final = 10


def write_comparison_perfetto(compared: Compared, detail: Detail) -> str:
    """A JSON object of the Trace Event Format: one process for the verdict, one a side.

    The verdict, the suspects and the rows of the attribution lie over the whole of the longer step:
    they are notes, not times. Ten rows are noted, every one with `FULL`.
    """
    whole_ns = longest_drawn_ns(compared)
    rows = compared.attribution if detail is Detail.FULL else compared.attribution[:_ROWS]
    notes = [verdict(headline(compared), 0, whole_ns, compared.verdict)]
    for place, suspect in enumerate(compared.suspects, start=1):
        name = f"{place}. {suspect.title}"
        notes.append(Track(f"cause {place}", [Slice(0, whole_ns, name, "cause", lowered(suspect))]))
    for row in rows:
        name = f"{name_of(row.row)} {delta(row.delta_ns)} {unit(compared)}"
        wall = row.wall or "no wall"
        notes.append(Track(row.row, [Slice(0, whole_ns, name, wall, lowered(row))]))
    processes = [Process("moe-diag: new against base", notes)]
    arrows = count(1)
    for name, side in sides(compared).items():
        steps = step_tracks((side.timeline,), arrows, -side.timeline.start_ns)
        processes.append(Process(f"{name} {side.name}", [_step(name, side), *steps]))
    about = {
        **lowered(compared.tool),
        "schema_version": compared.schema_version,
        "redaction": redaction_words(compared.redacted),
        "rows_left_out": len(compared.attribution) - len(rows),
    }
    return render_events(processes, about)


def _step(name: str, side: Side) -> Track:
    timeline = side.timeline
    where = {
        "run": f"{gpu_of(side)}, {who(side)}",
        **span(timeline.start_ns, timeline.end_ns),
        "activities_left_out": timeline.left_out,
        "mean_ns_by_row": {row.row: row.mean_ns for row in side.budget_rows},
    }
    label = f"{optional('step {}', timeline.step) or 'window'} of {name}"
    return Track("step", [Slice(0, timeline.end_ns - timeline.start_ns, label, "step", where)])
