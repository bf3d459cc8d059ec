"""Whether a recording has steps enough that a comparison with a later one can decide; else what to
record.
"""

from collections.abc import Iterator, Sequence
from math import ceil

from heuristics.comparison.between_runs import is_logged
from heuristics.comparison.difference.subject import Subject
from heuristics.result.result import Result
from traces.frozen import frozen
from traces.limits import HALF_A_WALL
from traces.missing import known
from traces.recording.options import SPARE, Question, asked
from traces.statistics.interval import interval_of


@frozen
class Enough:
    """What the steps of a recording are enough for.

    `shows_frac`: about the smallest change that they could show against as many alike, None where
    none. `decides`: it is small enough. `record`: the question that records enough, None where
    these are enough or logs alone would be. `by_log`: they are iterations of the log.
    """

    count: int
    shows_frac: float | None
    record: Question | None = None
    by_log: bool = False
    decides: bool = False


def enough_steps(result: Result) -> Enough:
    """By the rank that would be compared in full, or by the training log where that has the
    size.
    """
    side = Subject(result, result.ranks[0])
    if is_logged(side):
        return Enough(len(side.logged_ns), _shows_frac(side.logged_ns), by_log=True, decides=True)
    lengths = side.rank.lengths_ns if side.rank.steps.found else ()
    shows = _shows_frac(lengths)
    questions = _questions(len(result.traces) > 1)
    if shows is None:
        return Enough(len(lengths), None, next(questions))
    decides = max([HALF_A_WALL.value, *_lower_ends(result)])
    if shows <= decides:
        return Enough(len(lengths), shows, decides=True)
    needed = ceil(len(lengths) * (shows / decides) ** 2)
    record = next((what for what in questions if asked(what).steps - SPARE >= needed), None)
    return Enough(len(lengths), shows, record)


def _lower_ends(result: Result) -> Iterator[float]:
    """What the fixes of the plan gain at least: that much is to be decided, where it is more."""
    for fix in (*result.fixes, *result.levers):
        low, _ = known(fix.gain_frac) or (None, None)
        if (least := known(low)) is not None:
            yield least


def _questions(has_ranks: bool) -> Iterator[Question]:
    """Recordings that can be compared, the one of fewest steps first."""
    yield Question.RANKS if has_ranks else Question.WALLS
    yield Question.REGRESSION


def _shows_frac(lengths_ns: Sequence[int]) -> float | None:
    """About the smallest change that so many steps, varying so much on both sides, could show."""
    interval = interval_of(lengths_ns, lengths_ns)
    if interval and sum(lengths_ns):
        return interval.shows_ns * len(lengths_ns) / sum(lengths_ns)
    return None
