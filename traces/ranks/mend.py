"""The run without what makes it late: replayed over all ranks, so that everyone who waited moves too.

Of a transfer that becomes shorter only what was exposed is won: beneath the rest the rank worked.

What is taken away is the late rank's own excess: its work before a collective becomes what like ranks
usually do there. It is a ceiling of what a repair can win, since only collectives hold the ranks together in
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import BoolArray, FloatArray, IntArray
from traces.groups import group_of
from traces.limits import Limit
from traces.missing import Missing
from traces.ranks import parts
from traces.ranks.alike import Alike
from traces.ranks.cause import Cause
from traces.ranks.chains import NO_ROW, Chains, chains_of, replayed, rows_before
from traces.ranks.charge import step_of
from traces.ranks.clocks import Aligned
from traces.ranks.excess import Excess
from traces.ranks.grid import Grid
from traces.ranks.late import Suspicion
from traces.ranks.links import EXCHANGES
from traces.ranks.match import Matched
from traces.ranks.routing import Routing
from traces.ranks.summary import UNKNOWN, RankSummary
from traces.ranks.usual import roles_of, usual

BALANCED: Final = Limit(
    1.06, "largest over mean expert work", "ours: what a balancing loss leaves among eight ranks"
)


@dataclass(frozen=True, slots=True)
class Without:
    """The mean step of the run as recorded and without the cause, both replayed."""

    step_ns: int
    without_ns: int

    @property
    def saved_frac(self) -> float:
        """What the repair saves, of the step."""
        return 1 - self.without_ns / self.step_ns if self.step_ns else 0.0


def replay_without(
    summaries: Sequence[RankSummary],
    matched: Matched,
    aligned: Aligned,
    grid: Grid,
    alike: Sequence[Alike],
    suspicion: Suspicion,
    routing: Routing,
    excess: Excess,
) -> Without | Missing:
    """Replay the run without the cause. `Missing` where there is no cause, or nothing to replay."""
    if suspicion.cause is Cause.NONE:
        reason = "no rank makes the others late, so there is nothing to take away"
        return Missing("run.without", reason, "none is needed")
    if not len(matched) or not grid.step_count:
        reason = "the ranks share no step with matched collectives, which is what is replayed"
        return Missing("run.without", reason, "record whole steps of all ranks at the same time")
    chains = chains_of(matched, aligned)
    ends = _Borders(summaries, matched, aligned, grid, chains)
    edit = _Edit(matched, chains, ends.begin_ns, grid, alike, suspicion, routing, excess)
    as_is = replayed(chains, chains.own_ns, chains.moving_ns)
    if (as_is != aligned.end_ns).any():
        reason = "the recorded order of collectives contradicts itself, so the run cannot be replayed"
        return Missing("run.without", reason, "record NCCL's ranges, or the process groups beside kernels")
    own_ns, moving_ns = edit.edited()
    hidden_ns = np.maximum(0, chains.moving_ns - moving_ns - matched.exposed_ns)
    own_ns = own_ns + np.where(chains.after == NO_ROW, 0, hidden_ns[chains.after])
    after = replayed(chains, own_ns, moving_ns)
    return Without(ends.step_ns(as_is), ends.step_ns(after + hidden_ns))


def _excess_by(suspicion: Suspicion, excess: Excess, grid: Grid) -> FloatArray:
    """What the cause makes a rank take longer in each step, shape (ranks, steps).

    Kernels of the ranks that wait are slower beside communication that waits too: a slow device is told by
    its factor.
    """
    match suspicion.cause:
        case Cause.SLOW_DEVICE:
            return grid.compute_ns * (1 - 1 / suspicion.factor)
        case Cause.SLOW_HOST:
            return excess.by_host_ns
        case Cause.DATA_LOADER:
            return excess.loader_ns
        case _:
            return np.maximum(excess.by_device_ns, 0) + np.maximum(excess.by_host_ns, 0)


_UNKNOWN_NS: Final = np.iinfo(np.int64).max


class _Borders:
    """The first and last border of each rank's steps, as work after a collective of the rank."""

    def __init__(
        self, summaries: Sequence[RankSummary], matched: Matched, aligned: Aligned, grid: Grid, chains: Chains
    ) -> None:
        fits = aligned.clocks.by_fingerprint()
        placed = np.array([one.identity.clock in fits for one in summaries], dtype=np.bool_)
        every_step = (~np.isnan(grid.length_ns)).all(axis=1)
        whole = np.flatnonzero(every_step & placed)
        self._count = grid.step_count
        place = np.tile(whole, 2)
        times: list[int] = []
        for border in ("start_ns", "end_ns"):
            for one in (summaries[place] for place in whole.tolist()):
                steps = getattr(one.steps, border)
                own_ns = int(steps[0] if border == "start_ns" else steps[-1])
                times.append(fits[one.identity.clock].time_of(own_ns))
        time_ns = np.array(times, dtype=np.int64)
        self._after = rows_before(matched, aligned.end_ns, place, time_ns)
        self._own_ns = time_ns - np.where(self._after == NO_ROW, 0, aligned.end_ns[self._after])
        self.begin_ns: IntArray = np.full(len(summaries), _UNKNOWN_NS)
        """When the first step of each rank began, on the one clock; later than all where it is not known."""
        self.begin_ns[whole] = time_ns[: len(whole)]

    def step_ns(self, end_ns: IntArray) -> int:
        """The mean step of the median rank, where collectives end so."""
        at = np.where(self._after == NO_ROW, 0, end_ns[self._after]) + self._own_ns
        half = len(at) // 2
        return int(np.median(at[half:] - at[:half])) // self._count if half else 0


_MOST_SCALED: Final = 2.5
"""How many times as much as what stretches show is taken from them at most, where a step's excess is more."""


class _Edit:
    """What of the chains goes with the cause."""

    def __init__(
        self,
        matched: Matched,
        chains: Chains,
        begin_ns: IntArray,
        grid: Grid,
        alike: Sequence[Alike],
        suspicion: Suspicion,
        routing: Routing,
        excess: Excess,
    ) -> None:
        head = chains.after == NO_ROW
        since_ns = np.where(head & (begin_ns[matched.place] < chains.own_ns), begin_ns[matched.place], 0)
        self._worked_ns = np.where(head & (since_ns == 0), 0, chains.own_ns - since_ns)
        self._own_ns = grid.length_ns - grid.exposed_comm_ns
        self._excess_ns = _excess_by(suspicion, excess, grid)
        self._of_experts = routing.of_experts
        self._matched, self._chains, self._suspicion = matched, chains, suspicion
        self._role = roles_of(matched, alike, len(grid.later))
        self._layers = np.zeros(len(grid.later))
        for group in alike:
            self._layers[list(group.places)] = group.layers
        self._step = step = step_of(matched, grid)[matched.instance]
        late = np.array([*suspicion.by_step, UNKNOWN], dtype=np.int64)
        by_step = late[np.where((step >= 0) & (step < len(late)), step, len(late) - 1)]
        self._mine: BoolArray = matched.place == (by_step if suspicion.by_step else suspicion.place)

    def edited(self) -> tuple[IntArray, IntArray]:
        """Own work and transfers without the cause."""
        own_ns, moving_ns = self._chains.own_ns, self._chains.moving_ns
        match self._suspicion.cause:
            case Cause.SLOW_LINK:
                return own_ns, self._as_fast(moving_ns)
            case Cause.ROUTING_IMBALANCE:
                return self._balanced()
            case Cause.PIPELINE_IMBALANCE:
                return self._even_stages()
            case _:
                return self._with_usual_work(), moving_ns

    def _as_fast(self, moving_ns: IntArray) -> IntArray:
        """Transfers with the late rank as long as others of their kind, or shorter by its factor.

        Of a ring all is slower by the factor, of an exchange the others' by what of their data passes it.
        """
        matched, mine = self._matched, self._mine
        touched = self._touched()
        middle, known = usual(moving_ns, self._role, ~touched)
        size = np.diff(matched.first)[matched.instance]
        exchanged = (np.isin(matched.operation, EXCHANGES) & (np.diff(matched.first) > 2))[matched.instance]
        slow = self._suspicion.factor
        part = np.where(exchanged & ~mine, 1 + (slow - 1) / np.maximum(size - 1, 1), slow)
        scaled = np.rint(moving_ns / part).astype(np.int64)
        return np.where(touched, np.where(known, middle, scaled), moving_ns)

    def _even_stages(self) -> tuple[IntArray, IntArray]:
        """Every stage with the mean of the layers: its work, and the communication in its layers."""
        layers = np.ones(len(self._layers))
        told = self._layers > 0
        layers[told] = self._layers[told].mean() / self._layers[told]
        matched, chains = self._matched, self._chains
        by = layers[matched.place]
        messages = parts.spread(parts.most(by, matched.first) - parts.least(by, matched.first), matched.first)
        own_ns = np.where(chains.after == NO_ROW, chains.own_ns, np.rint(chains.own_ns * by).astype(np.int64))
        moved_ns = np.rint(chains.moving_ns * by).astype(np.int64)
        return own_ns, np.where(messages > 0, chains.moving_ns, moved_ns)

    def _touched(self) -> BoolArray:
        """Participations of instances in which the late rank takes part."""
        has = parts.most(self._mine.astype(np.int64), self._matched.first)
        return parts.spread(has, self._matched.first).astype(np.bool_)

    def _with_usual_work(self) -> IntArray:
        """The late rank's work with what like ranks usually do there, in all as much less as its excess is.

        While the others wait, their hosts and other work of theirs go on, so that what they do afterwards is
        less than without the late rank; and what lies beside other communication is in no stretch.
        """
        chains, worked_ns = self._chains, self._worked_ns
        mine = self._mine & (worked_ns != 0)
        middle, known = usual(worked_ns, self._role, ~self._mine & (worked_ns != 0))
        less_ns = np.where(mine & known, np.maximum(worked_ns - middle, 0), 0)
        told = np.flatnonzero((less_ns > 0) & (self._step >= 0))
        cell = self._matched.place[told] * self._excess_ns.shape[1] + self._step[told]
        by_stretch = group_of(cell, chains.after[told]).astype(np.int64)
        longest = np.zeros(int(by_stretch.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(longest, by_stretch, less_ns[told])
        of_stretch = np.zeros(len(longest), dtype=np.int64)
        of_stretch[by_stretch] = cell
        in_step = parts.sums(longest, of_stretch, self._excess_ns.size) * self._at_once()
        wanted = np.maximum(np.nan_to_num(self._excess_ns).reshape(-1), 0)
        scale = np.divide(wanted, in_step, out=np.ones(len(in_step)), where=in_step > 0)
        less_ns[told] = np.rint(less_ns[told] * np.minimum(scale, _MOST_SCALED)[cell]).astype(np.int64)
        return chains.own_ns - np.minimum(less_ns, np.maximum(worked_ns, 0))

    def _at_once(self) -> FloatArray:
        """What part of a step's stretches is left, shape (ranks x steps,), where those at once count once."""
        rows = np.flatnonzero((self._step >= 0) & (self._worked_ns != 0))
        cell = self._matched.place[rows] * self._own_ns.shape[1] + self._step[rows]
        stretches = parts.sums(self._worked_ns[rows], cell, self._own_ns.size)
        own = np.nan_to_num(self._own_ns).reshape(-1)
        return np.minimum(1.0, np.divide(own, stretches, out=np.ones(len(own)), where=stretches > 0))

    def _balanced(self) -> tuple[IntArray, IntArray]:
        """Work before tokens are brought back, and what is moved, as even as a balancing loss makes it."""
        matched, chains = self._matched, self._chains
        first = matched.first
        grouped = np.maximum(matched.grouped_ns, 0).astype(np.float64)
        least_ns = parts.least(np.where(chains.after == NO_ROW, 0, matched.grouped_ns), first)
        told = parts.spread(self._of_experts & (least_ns > 0), first)
        mean = parts.spread(parts.total(grouped, first) / np.diff(first), first)
        most = parts.spread(parts.most(grouped, first), first)
        uneven = np.divide(most, mean, out=np.ones(len(most)), where=mean > 0)
        keeps = np.minimum(1.0, (BALANCED.value - 1) / np.maximum(uneven - 1, 1e-9))
        mean_ns = parts.spread(parts.total(chains.own_ns, first) / np.diff(first), first)
        even_ns = np.rint(mean_ns + (chains.own_ns - mean_ns) * keeps).astype(np.int64)
        moved = self._of_experts & np.isin(matched.operation, EXCHANGES)
        shortest_ns = parts.spread(parts.least(chains.moving_ns, first), first)
        moving_ns = np.where(parts.spread(moved, first), shortest_ns, chains.moving_ns)
        return np.where(told, even_ns, chains.own_ns), moving_ns
