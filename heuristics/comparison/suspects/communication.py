"""Communication that is hidden less, slower, more often, by another dispatcher, or waits for another rank."""

from typing import Final

from msgspec import UNSET

from heuristics.comparison.suspects.causes import families
from heuristics.comparison.suspects.direction import is_off
from heuristics.comparison.suspects.rule import Signs
from heuristics.comparison.suspects.view import MAIN, Part, View, grew, main_part
from heuristics.result.result import Result, rank_in_run
from traces.missing import known
from traces.sections.cause import Cause
from traces.sections.rank import Rank
from traces.sections.run import Late
from traces.spelling import in_ms, signed_ms, spoken


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


FUSED: Final = ("deepep", "hybridep", "ncclep")
"""Dispatchers of `flex`, as the trace is read for them."""


def _pair(view: View) -> tuple[str, str] | None:
    before, after = (rank.detected.dispatcher for rank in (view.before, view.after))
    return None if before == after or "unknown" in (before, after) else (before, after)


def asked_for(view: View) -> str | None:
    """The fused dispatcher that the side after is configured for; None where none, or unknown."""
    _, kind = view.known("moe_token_dispatcher_type")
    _, deepep = view.known("moe_enable_deepep")
    _, backend = view.known("moe_flex_dispatcher_backend")
    if kind != "flex":
        return None
    if not is_off(backend):
        return str(backend)
    return "deepep" if deepep else None


def dispatcher_skipped(view: View) -> Signs:
    """The fused dispatcher that is asked for ran before; another one runs after."""
    pair, wanted = _pair(view), asked_for(view)
    if pair is None or wanted not in FUSED or pair[0] != wanted:
        return None
    return (
        view.arrow("dispatcher in the trace", *pair),
        f"the configuration asks for {wanted} where the trace shows {pair[1]}",
        *_findings(view),
    )


def _findings(view: View) -> tuple[str, ...]:
    ids = [one.id for one in view.facts.new.config_findings]
    return tuple(f"finding of that side's configuration: {one}" for one in ids if "dispatcher" in one)


def dispatcher_exchanged(view: View) -> Signs:
    """Another dispatcher runs, and not because one was skipped."""
    if dispatcher_skipped(view) is not None or dispatcher_skipped(view.other()) is not None:
        return None
    pair = _pair(view)
    if pair is not None:
        return (view.arrow("dispatcher in the trace", *pair),)
    names = [rank.detected.dispatcher for rank in (view.before, view.after)]
    return () if "unknown" in names else None


def deepep_before(view: View) -> Signs:
    """DeepEP ran before and does not after."""
    pair = _pair(view)
    return (view.arrow("dispatcher in the trace", *pair),) if pair and pair[0] == "deepep" else None


def main_part_is(family: str, wanted: Part, view: View) -> Signs:
    """The main part of what a family grew by; expert all-to-all that waits is not slower."""
    rows = grew(view, *families()[family]["rows"])
    if main_part(rows) != wanted:
        return None
    if wanted == "duration" and (late_rank_came(view) or (family == "ep" and waits_more(view))):
        return None
    before, after = sum(row.base_count for row in rows), sum(row.new_count for row in rows)
    parts = [[known(one) or 0 for one in (row.count_ns, row.duration_ns, row.overlap_ns)] for row in rows]
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
