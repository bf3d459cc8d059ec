"""Changes that act on the same time: one of them is a step, the others are named beside it."""

from collections.abc import Mapping, Sequence
from typing import Final

from heuristics.result.judged import Fix
from reports.content.blocks import Code, Words, words
from reports.content.names import name_of
from traces.missing import known
from traces.spelling import percent

_NAMED: Final = 2
"""How many of the others are named."""


def led(fixes: Sequence[Fix]) -> Mapping[str, tuple[Fix, ...]]:
    """Fix id -> the fixes that stand beside it; those that lead, in their order.

    A fix stands beside an earlier one that acts on all that it acts on, unless a replay tells its own saving:
    nothing then says which of them is better, and one is tried first.
    """
    leading: dict[str, tuple[Fix, ...]] = {}
    acted = {fix.id: {*fix.acts_on} for fix in fixes}
    walls = {fix.id: fix.wall for fix in fixes}
    for fix in fixes:
        mine = acted[fix.id]
        before = (id for id in leading if walls[id] == fix.wall and mine <= acted[id])
        found = next(before, None) if mine and not fix.gain_replayed else None
        if found is None:
            leading[fix.id] = ()
        else:
            leading[found] = (*leading[found], fix)
    return leading


def others(beside: Sequence[Fix]) -> Words:
    """The changes beside a step, in one line."""
    named = [part for fix in beside[:_NAMED] for part in (", ", fix.title, " [", Code(fix.id), "]")][1:]
    more = f" and {len(beside) - _NAMED} more" if len(beside) > _NAMED else ""
    return words("Else, on the same time: ", *named, f"{more}.") if beside else ()


def evidence(fix: Fix) -> str:
    """What of the run a change acts on, where only that is known of it."""
    if fix.gain_replayed or known(fix.gain_frac) is None or not fix.acts_on:
        return ""
    costly = sorted(fix.acts_on.items(), key=lambda one: -one[1])[:_NAMED]
    return f"Evidence: {', '.join(f'{name_of(kind)} {percent(share)}' for kind, share in costly)}."
