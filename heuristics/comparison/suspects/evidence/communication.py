"""Communication that is hidden less, slower, more often, or waits for another rank."""

from heuristics.comparison.suspects.causes import families
from heuristics.comparison.suspects.evidence.late_rank import late_rank_came
from heuristics.comparison.suspects.evidence.signs import MAIN, Part, grew, main_part
from heuristics.comparison.suspects.rule import Signs
from heuristics.comparison.suspects.view import View
from traces.missing import known
from traces.sections.rank import Rank
from traces.spelling import in_ms, signed_ms


def main_part_is(family: str, wanted: Part, view: View) -> Signs:
    """The main part of what a family grew by; expert all-to-all that waits is not slower."""
    rows = grew(view, *families()[family]["rows"])
    if main_part(rows) != wanted:
        return None
    if wanted == "duration" and (late_rank_came(view) or (family == "ep" and waits_more(view))):
        return None
    before, after = sum(row.base_count for row in rows), sum(row.new_count for row in rows)
    parts = [(row.count_ns or 0, row.duration_ns or 0, row.overlap_ns or 0) for row in rows]
    sums = [signed_ms(view.sign * sum(part)) for part in zip(*parts, strict=True)]
    return (
        view.arrow(f"{families()[family]['words']}, kernels a step", f"{before:.0f}", f"{after:.0f}"),
        f"by number {sums[0]}, by duration {sums[1]}, by overlap {sums[2]} a step",
    )


def _waiting_ns(rank: Rank) -> int | None:
    a2a = known(rank.a2a)
    waiting_ns = known(a2a.waiting_like_ns) if a2a else None
    return None if waiting_ns is None else waiting_ns // len(rank.lengths_ns)


def waits_more(view: View) -> Signs:
    """Most of what expert all-to-all grew by is like waiting for another rank."""
    before, after = _waiting_ns(view.before), _waiting_ns(view.after)
    grown_ns = sum(row.delta_ns for row in grew(view, *families()["ep"]["rows"]))
    if before is None or after is None or grown_ns <= 0 or after - before < MAIN.value * grown_ns:
        return None
    return (view.arrow("of expert all-to-all like waiting a step", in_ms(before), in_ms(after)),)
