"""A rank that makes the others wait on one side only: slower communication is then no matter of a link."""

from msgspec import UNSET

from heuristics.comparison.like_ranks import rank_in_run
from heuristics.comparison.suspects.evidence.signs import MAIN, grew
from heuristics.comparison.suspects.rule import Signs
from heuristics.comparison.suspects.view import View
from heuristics.result.result import Result
from traces.missing import known
from traces.ranks.cause import Cause
from traces.sections.run import Late
from traces.spelling import in_ms, spoken


def late_rank_came(view: View) -> Signs:
    """Nobody was late before; now a rank is, and most of what communication grew by is waiting."""
    before, after = (_late(one) for one in (view.facts.base, view.facts.new))
    if before is None or after is None or before.cause is not Cause.NONE or after.cause is Cause.NONE:
        return None
    was, is_ = rank_in_run(view.facts.base, view.before), rank_in_run(view.facts.new, view.after)
    grown_ns = sum(row.delta_ns for row in grew(view, "exposed_comm.*"))
    if was is None or is_ is None or grown_ns <= 0 or is_.waited_ns - was.waited_ns < MAIN.value * grown_ns:
        return None
    waits = in_ms(was.waited_ns), in_ms(is_.waited_ns)
    return _named(view.facts.new, after), view.arrow("waiting of this rank in collectives a step", *waits)


def _late(result: Result) -> Late | None:
    return None if result.run is UNSET else known(result.run.late)


def _named(result: Result, late: Late) -> str:
    cause = spoken(late.cause)
    if late.index is None:
        return f"late rank: no single one, {cause}"
    rank = result.ranks[late.index]
    number = known(rank.rank)
    return f"late rank: {f'GPU {rank.device}' if number is None else f'rank {number}'}, {cause}"
