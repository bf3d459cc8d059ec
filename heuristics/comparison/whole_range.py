"""All that was recorded of both sides: steps, warm-up, hiccups and what stands outside, to the
nanosecond.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from heuristics.comparison.difference.rows import sides_ns
from heuristics.comparison.size import Judged
from heuristics.result.compared import ComparisonVerdict
from heuristics.result.compared_runs import Whole, WholePart, WholeRow
from heuristics.words import lacking, say
from traces.frozen import frozen
from traces.limits import LITTLE, MOST, WALL
from traces.missing import OrMissing, known
from traces.sections.rank import Rank
from traces.spelling import duration, signed

NO_STEPS: Final = lacking("comparison.no-steps")

_SAID: Final = 3


@frozen
class RangePart:
    """A part of one side; `count` of its steps, None where it has none."""

    ns: int
    count: int | None = None


def whole_range(base: Rank, new: Rank) -> OrMissing[Whole]:
    """Both sides part by part; unknown where a side has no steps, or is a result that does not hold
    it.
    """
    before, after = _parts(base), _parts(new)
    if before is None or after is None:
        return NO_STEPS
    rows = tuple(_rows(before, after))
    base_ns, new_ns = sides_ns(rows)
    return Whole(base_ns, new_ns, new_ns - base_ns, rows)


def judge_whole(judged: Judged, whole: OrMissing[Whole], *, ended: bool) -> Judged:
    """The verdict judges steps: where all that was recorded contradicts it, or differs by a tenth
    beside them, that is said with it.

    Only of as many steps on both sides, as else more of them would be more time, which is said of
    whole programs, `ended`.
    """
    known_whole = known(whole)
    if known_whole and (why := _contradicting(judged, known_whole, ended)):
        return replace(judged, because=(why, *judged.because))
    return judged


def _contradicting(judged: Judged, whole: Whole, ended: bool) -> str:
    rows = {row.part: row for row in whole.rows}
    steps, hiccups = rows["steps"], rows["hiccups"]
    base, new = duration(whole.base_ns), duration(whole.new_ns)
    if steps.base_count != steps.new_count:
        if not ended:
            return ""
        return say(
            "comparison.programs-repeat",
            base=base,
            new=new,
            base_count=f"{steps.base_count:,}",
            new_count=f"{steps.new_count:,}",
        )
    limit_ns = LITTLE.value * min(steps.base_ns, steps.new_ns)
    if judged.verdict == "no_change" and abs(hiccups.delta_ns) > limit_ns:
        delta = signed(duration(hiccups.delta_ns))
        return say(
            "comparison.hiccups-differ", delta=delta, base=hiccups.base_count, new=hiccups.new_count
        )
    if not (how := _how(judged.verdict, whole, steps.delta_ns)):
        return ""
    moved = [row for row in whole.rows if row.delta_ns * whole.delta_ns > 0]
    moved.sort(key=lambda row: -abs(row.delta_ns))
    return say(
        f"comparison.recording-{how}",
        base=base,
        new=new,
        delta=signed(duration(whole.delta_ns)),
        parts=", ".join(map(_spoken, moved[:_SAID])),
    )


def _how(verdict: ComparisonVerdict, whole: Whole, steps_ns: int) -> str:
    """How all that was recorded goes beyond a verdict on steps: the other way, or by a tenth which
    lies beside them for the most part. Empty: it does not.
    """
    if verdict in ("regression", "improvement") and steps_ns * whole.delta_ns < 0:
        return "slower" if whole.delta_ns > 0 else "faster"
    delta_ns, least_ns = whole.delta_ns, WALL.value * min(whole.base_ns, whole.new_ns)
    is_beside = abs(delta_ns) >= least_ns and steps_ns * delta_ns <= MOST.value * delta_ns**2
    if verdict == "not_comparable" or not is_beside:
        return ""
    return "undecided" if verdict == "undecided" else "beside"


def _spoken(row: WholeRow) -> str:
    part = row.part.replace("_", "-")
    return say(f"comparison.whole-{part}", delta=signed(duration(row.delta_ns)))


def _rows(
    before: dict[WholePart, RangePart], after: dict[WholePart, RangePart]
) -> Iterator[WholeRow]:
    for part, mine in before.items():
        theirs = after[part]
        yield WholeRow(part, mine.ns, theirs.ns, theirs.ns - mine.ns, mine.count, theirs.count)


def _parts(rank: Rank) -> dict[WholePart, RangePart] | None:
    """A hiccup and a warm-up are a usual step, the median of the used ones, and what they take
    beyond.

    `before` of the result holds warm-up, as it is no used step.
    """
    steps, usual_ns = rank.steps, known(rank.steps.median_ns)
    if steps.outside_ns is None or usual_ns is None:
        return None
    slow = [step.length_ns for step in steps.dropped if step.index in steps.slow]
    warm = [step.length_ns for step in steps.dropped if step.index in steps.warm_up]
    count = len(slow) + len(warm)
    return {
        "steps": RangePart(sum(rank.lengths_ns) + usual_ns * count, len(rank.lengths_ns) + count),
        "warm_up": RangePart(sum(warm) - usual_ns * len(warm), len(warm)),
        "hiccups": RangePart(sum(slow) - usual_ns * len(slow), len(slow)),
        "before": RangePart(max(0, steps.outside_ns.before_ns - sum(warm))),
        "between": RangePart(steps.outside_ns.between_ns),
        "after": RangePart(steps.outside_ns.after_ns),
    }
