"""Changes that act on the same time: one of them is a step, the others are named beside it."""

from collections.abc import Mapping, Sequence
from typing import Final

from heuristics.result.judged import Fix
from reports.content.blocks import Code, Words, words
from reports.content.names import around, beyond, joined, name_of
from reports.rows import those
from traces.spelling import percent

_NAMED: Final = 2
"""How many of the others are named."""


def led(fixes: Sequence[Fix]) -> Mapping[str, tuple[Fix, ...]]:
    """Fix id -> the fixes that stand beside it; those that lead, in their order.

    A fix stands beside an earlier one that acts on all that it acts on, unless a replay tells its
    own saving: nothing then says which of them is better, and one is tried first.
    """
    leading = dict[str, tuple[Fix, ...]]()
    leaders = list[Fix]()
    for fix in fixes:
        leader = None if fix.gain_replayed else _leader(fix, leaders)
        if not leader:
            leading[fix.id] = ()
            leaders.append(fix)
        else:
            leading[leader.id] += (fix,)
    return leading


def _leader(fix: Fix, leaders: Sequence[Fix]) -> Fix | None:
    for leader in those(leaders, wall=fix.wall):
        if fix.acts_on and {*fix.acts_on} <= {*leader.acts_on}:
            return leader
    return None


def others(beside: Sequence[Fix]) -> Words:
    """The changes beside a step, in one line."""
    named = joined(words(fix.title, " [", Code(fix.id), "]") for fix in beside[:_NAMED])
    return around("Else, on the same time: ", named, f"{beyond(len(beside), _NAMED)}.")


def evidence(fix: Fix) -> str:
    """What of the run a change acts on, where only that is known of it."""
    if fix.gain_replayed or not fix.gain_frac or not fix.acts_on:
        return ""
    costly = sorted(fix.acts_on.items(), key=lambda kind_and_share: -kind_and_share[1])[:_NAMED]
    named = (f"{name_of(kind)} {percent(share)}" for kind, share in costly)
    return f"Evidence: {', '.join(named)}."
