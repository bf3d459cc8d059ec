"""Pauses of ranks, now here and now there: each is short, and all the ranks of a group wait for each.

No step need have one rank that stands out, so that they are added up: what a rank did before a collective
beside what like ranks do there, in its group's step. No clock but each rank's own enters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray
from traces.groups import group_of
from traces.limits import Limit
from traces.ranks import parts
from traces.ranks.borders import Borders
from traces.ranks.chains import NEVER, Chains, replayed, usual
from traces.ranks.clocks import Aligned
from traces.ranks.ends import NO_ROW
from traces.ranks.late import LONG, MANY, NOTHING, ODD, Suspicion
from traces.ranks.match import Matched
from traces.ranks.side_by_side import Grid
from traces.ranks.summary import UNKNOWN, RankSummary
from traces.sections.cause import Cause

PAUSE: Final = Limit(
    100_000,
    "ns",
    "ours: a preempted thread or a busy GPU stops for some tenths of a millisecond; gaps of Python end below",
)
FAR: Final = Limit(5.0, "scaled median deviations of all stretches", "ours: as for steps")
ONE: Final = Limit(0.8, "of all pauses", "ours: a rank that has nearly all of them is late itself")
OFTEN: Final = Limit(
    0.3,
    "pauses in a step of a rank",
    "ours: hosts of 436 healthy runs of a third simulator have up to 0.28 that cost much, but for one, those "
    "with a habit from 0.35 on",
)
SELDOM: Final = Limit(
    0.2, "pauses in a step of a rank", "ours: hosts with a habit of long pauses have 0.22 to 0.3"
)
"""From so many on they are a habit where they cost `HABIT`."""
HABIT: Final = Limit(
    0.07,
    "fraction of the step",
    "ours: of 1,051 healthy runs one whose hosts pause by turns in all four steps loses 0.066",
)
TENTH: Final = Limit(
    0.1,
    "fraction of the step",
    "ours: pauses of 1 to 2 ms now and then, as healthy hosts have, cost up to 0.1 of a step of 20 ms",
)
"""What pauses that come seldom must cost."""
IN_TURN: Final = Limit(
    0.9, "of all pauses", "ours: beside a stop of 15 ms some stretches of others are 0.1 ms longer, by chance"
)
"""How much of what is paused in each step one rank has, where they pause in turn."""
_LIKE: Final = 5
"""Stretches of a kind, from which on their middle is the usual one."""
_SCALED: Final = 1.4826
_OWN: Final = (Cause.SLOW_DEVICE, Cause.SLOW_HOST, Cause.DATA_LOADER)
"""Causes by which the late rank's own work takes longer, so that it seems to pause."""


def pauses_of(matched: Matched, chains: Chains, role: IntArray, step: IntArray) -> IntArray:
    """What each participation's rank paused before it, shape (p,), mostly 0; by roles of `roles_of`.

    `step`, shape (n,), of each instance: what all like ranks do longer in one is no pause, and what a rank
    does equally long in all is none. More work of experts is more tokens: left out.
    """
    has = chains.after != NO_ROW
    if not has.any():
        return np.zeros(len(matched.place), dtype=np.int64)
    alone = has & (chains.after == chains.behind)
    own_ns = chains.own_ns - np.where(alone, np.maximum(matched.grouped_ns, 0), 0)
    between = group_of(role, np.where(has, role[chains.after], UNKNOWN)).astype(np.int64)
    middle_ns, known = usual(own_ns, between, has)
    told = has & known & (np.bincount(between[has], minlength=int(between.max()) + 1)[between] >= _LIKE)
    least_ns, _, _ = _between(own_ns[has], group_of(between, step[matched.instance]).astype(np.int64), has)
    mine_ns, most_ns, count = _between(own_ns[has], group_of(between, matched.place).astype(np.int64), has)
    steady = (count >= MANY.value) & (most_ns - mine_ns < PAUSE.value)
    always_ns = np.where(steady, np.maximum(least_ns, mine_ns), least_ns)
    beyond_ns = np.where(told, own_ns - np.maximum(middle_ns, always_ns), 0)
    scatter = _SCALED * float(np.median(np.abs(beyond_ns[told]))) if told.any() else 0.0
    far = beyond_ns >= max(PAUSE.value, FAR.value * scatter)
    return np.where(far, beyond_ns, 0)


def _between(own_ns: IntArray, part: IntArray, has: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Of each row the least and the most of its part, and how many it has: of rows that have one before."""
    size = int(part.max()) + 1
    least_ns, most_ns = np.full(size, np.iinfo(np.int64).max), np.zeros(size, dtype=np.int64)
    np.minimum.at(least_ns, part[has], own_ns)
    np.maximum.at(most_ns, part[has], own_ns)
    return least_ns[part], most_ns[part], np.bincount(part[has], minlength=size)[part]


@dataclass(frozen=True, slots=True)
class Held:
    """What pauses hold up: the instances of a run, the `step` of each, shape (n,), and how these follow."""

    summaries: Sequence[RankSummary]
    grid: Grid
    matched: Matched
    aligned: Aligned
    chains: Chains
    step: IntArray

    def cost_ns(self, pause_ns: IntArray) -> int:
        """How much shorter a mean step is without these pauses, shape (p,), replayed; 0 if that fails."""
        after_ns = replayed(self.chains, self.chains.own_ns - pause_ns, self.chains.moving_ns)
        if (after_ns == NEVER).any():
            return 0
        borders = Borders(self.summaries, self.grid, self.aligned, self.chains, common=False)
        return borders.step_ns(self.aligned.end_ns) - borders.step_ns(after_ns)


def by_sum(than: Suspicion, pauses: IntArray, held: Held) -> Suspicion:
    """Pauses as the cause, where all together cost enough, no rank has most, and nothing costs more.

    `than` is what was found step by step; the ranks that it names pause for that reason. Where it is no more
    than pauses that any host has now and then, it is nothing.
    """
    lengths_ns = held.grid.length_ns
    (count, steps), known_ns = lengths_ns.shape, lengths_ns[~np.isnan(lengths_ns)]
    if steps < 2 or not len(known_ns) or not len(held.matched) or than.cause is Cause.ROUTING_IMBALANCE:
        return than  # where experts' work is uneven, what it holds up looks like pauses
    theirs = than.places if than.cause in _OWN else ()
    inside = parts.spread(held.step != UNKNOWN, held.matched.first)
    counts = inside & ~np.isin(held.matched.place, theirs)
    pause_ns = np.where(counts, pauses, 0)
    by_rank = parts.sums(pause_ns, held.matched.place, count)
    each = np.count_nonzero(pause_ns) / len(known_ns)
    rotating = than.cause is Cause.ROTATING_JITTER
    if each < SELDOM.value and not (rotating and by_rank.sum() >= steps * than.cost_ns / 2):
        return than
    cost_ns, step_ns = float(held.cost_ns(pause_ns)), float(np.median(known_ns))
    if each < SELDOM.value or (each < OFTEN.value and cost_ns < HABIT.value * step_ns):
        if not rotating:
            return than
        of_step = parts.spread(held.step, held.matched.first)[inside]
        table = parts.sums(pause_ns[inside], of_step * count + held.matched.place[inside], steps * count)
        of_one_ns = table.reshape(steps, count).max(axis=1).sum()
        in_turn = of_one_ns >= IN_TURN.value * table.sum()  # one rank a step is a rhythm, no chance
        by_chance = not in_turn and pause_ns.max(initial=0) < LONG.value
        return NOTHING if by_chance and cost_ns < TENTH.value * step_ns else than
    if cost_ns < ODD.value * step_ns or by_rank.max() > ONE.value * by_rank.sum():
        return than
    if rotating:
        return replace(than, cost_ns=max(than.cost_ns, cost_ns))
    return Suspicion(Cause.ROTATING_JITTER, (), cost_ns) if cost_ns > than.cost_ns else than
