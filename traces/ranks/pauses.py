"""Pauses of ranks, now here and now there: each is short, and all the ranks of a group wait for each.

No step need have one rank that stands out, so that they are added up: what a rank did before a collective
beside what like ranks do there, in its group's step. No clock but each rank's own enters.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from traces.columns import BoolArray, FloatArray, IntArray
from traces.groups import group_of
from traces.limits import Limit
from traces.ranks import parts
from traces.ranks.chains import NO_ROW, Chains, usual
from traces.ranks.late import ODD, Suspicion
from traces.ranks.match import Matched
from traces.ranks.side_by_side import Grid
from traces.ranks.summary import UNKNOWN
from traces.sections.cause import Cause

PAUSE: Final = Limit(
    100_000,
    "ns",
    "ours: a preempted thread or a busy GPU stops for some tenths of a millisecond; gaps of Python end below",
)
FAR: Final = Limit(5.0, "scaled median deviations of all stretches", "ours: as for steps")
ONE: Final = Limit(0.5, "of all pauses", "ours: a rank that has more of them than all others is late itself")
SEVERAL: Final = Limit(
    6,
    "pauses",
    "ours: a healthy run of eight ranks with pauses of 1 to 2 ms now and then has up to five in four steps",
)
_LIKE: Final = 3
"""Stretches of a kind, from which on their middle is the usual one."""
_SCALED: Final = 1.4826
_OWN: Final = (Cause.SLOW_DEVICE, Cause.SLOW_HOST, Cause.DATA_LOADER)
"""Causes by which the late rank's own work takes longer, so that it seems to pause."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """`pause_ns` is of each participation, shape (p,): what its rank paused before it; 0 mostly.

    `delay_ns`, shape (n,): the longest pause before each instance, for which all its ranks waited.
    """

    pause_ns: IntArray
    delay_ns: IntArray

    def without(self, places: tuple[int, ...], matched: Matched) -> "Pauses":
        """Those of all other ranks."""
        return _of(np.where(np.isin(matched.place, places), 0, self.pause_ns), matched)

    def cost_ns(self, matched: Matched, counted: BoolArray, count: int) -> float:
        """What all `count` ranks were held up in the counted instances, on average."""
        delay_ns = np.where(counted, self.delay_ns, 0)
        return float((delay_ns * np.diff(matched.first)).sum()) / max(1, count)

    def shares(self, matched: Matched, counted: BoolArray, count: int) -> FloatArray:
        """Which part of all pauses each rank has, shape (ranks,); zeros where there are none."""
        rows = parts.spread(counted, matched.first)
        own_ns = parts.sums(np.where(rows, self.pause_ns, 0), matched.place, count).astype(np.float64)
        return own_ns / max(own_ns.sum(), 1.0)


def _of(pause_ns: IntArray, matched: Matched) -> Pauses:
    return Pauses(pause_ns, parts.most(pause_ns, matched.first))


def pauses_of(matched: Matched, chains: Chains, role: IntArray) -> Pauses:
    """Find the pauses of all ranks, by roles of `roles_of`. More work of experts is more tokens: left out."""
    has = chains.after != NO_ROW
    if not has.any():
        nothing = np.zeros(len(matched.place), dtype=np.int64)
        return Pauses(nothing, np.zeros(len(matched), dtype=np.int64))
    alone = has & (chains.after == chains.behind)
    own_ns = chains.own_ns - np.where(alone, np.maximum(matched.grouped_ns, 0), 0)
    between = group_of(role, np.where(has, role[chains.after], UNKNOWN)).astype(np.int64)
    middle_ns, known = usual(own_ns, between, has)
    told = has & known & (np.bincount(between[has], minlength=int(between.max()) + 1)[between] >= _LIKE)
    beyond_ns = np.where(told, own_ns - middle_ns, 0)
    scatter = _SCALED * float(np.median(np.abs(beyond_ns[told]))) if told.any() else 0.0
    far = beyond_ns >= max(PAUSE.value, FAR.value * scatter)
    return _of(np.where(far, beyond_ns, 0), matched)


def by_sum(than: Suspicion, pauses: Pauses, matched: Matched, counted: BoolArray, grid: Grid) -> Suspicion:
    """Pauses as the cause, where all together cost enough, no rank has most, and nothing costs more.

    `than` is what was found step by step; the ranks that it names pause for that reason.
    """
    count, steps = grid.length_ns.shape
    known_ns = grid.length_ns[~np.isnan(grid.length_ns)]
    if steps < 2 or not len(known_ns) or not len(matched) or than.cause is Cause.ROUTING_IMBALANCE:
        return than  # where experts' work is uneven, what it holds up looks like pauses
    others = pauses.without(than.places if than.cause in _OWN else (), matched)
    cost_ns = others.cost_ns(matched, counted, count) / steps
    one = float(others.shares(matched, counted, count).max(initial=0.0))
    few = int((counted & (others.delay_ns > 0)).sum()) < SEVERAL.value
    if cost_ns < ODD.value * float(np.median(known_ns)) or one > ONE.value or few:
        return than
    if than.cause is Cause.ROTATING_JITTER:
        return replace(than, cost_ns=max(than.cost_ns, cost_ns))
    return Suspicion(Cause.ROTATING_JITTER, (), cost_ns) if cost_ns > than.cost_ns else than
