"""Expert all-to-alls under the compute of the other microbatch: forward beside the backward before
it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import Final

import numpy as np

from traces.account.calls import NONE
from traces.arrays import NOWHERE, BoolArray, IntArray, columns_of, ints, summed, zeros
from traces.frozen import frozen
from traces.groups import in_order
from traces.replay.changes.change import DraftChange, Recorded
from traces.replay.changes.dispatcher import (
    EP_KINDS,
    Exchange,
    autograd_compute,
    find_exchanges,
    of_kinds,
    reads_counts,
    running_ns,
)
from traces.replay.graph import Timing
from traces.replay.without import without_work

NODES: Final = 4
"""Backward nodes of a layer in the merged schedule: combine, experts, dispatch, attention with the
router."""


@frozen
class _Pass:
    """The exchanges of one microbatch's forward or backward."""

    exchanges: list[Exchange]
    backward: bool


def overlap_drafts(recorded: Recorded) -> Iterator[DraftChange]:
    """`expert_overlap`: where backward of one microbatch is followed by forward of the next in the
    same step.

    Each exchange hides at most what compute of the other pass lies beside it in the merged
    schedule, which is slower beside communication by as much as in this recording; control kernels
    stay as they are, and the first forward and the last backward of a step stay exposed. The host
    hands over to autograd for every node of every layer, which takes as long as its handovers here;
    where it reads token counts in forward, it then waits for backward's work as well, in each
    layer.
    """
    pairs = _pairs(recorded)
    if not pairs:
        return
    high = partial(without_work, which=of_kinds(recorded, EP_KINDS))
    acts_on = {"communication": EP_KINDS}
    stretch = recorded.subject.stretch_frac
    if stretch is None or not recorded.subject.stretch_measured:
        why = "how much slower compute runs beside communication was not measured in this recording"
        yield DraftChange("expert_overlap", acts_on, why, high)
        return
    handed_ns = _handover_ns(recorded) * 2 * NODES
    begins = chain.from_iterable(map(_begins, chain.from_iterable(pairs)))
    handing = recorded.graph.launched_by[ints([*begins])]
    handing = handing[handing != NONE]
    drained, drain_ns = _drains(recorded, pairs)

    def low(timing: Timing) -> Timing:
        pause_ns = timing.pause_ns.copy()
        np.add.at(pause_ns, handing, handed_ns // 4)  # a layer has four exchanges
        np.add.at(pause_ns, drained, drain_ns)
        hidden_ns = _hidden_ns(recorded, pairs, max(0.0, stretch), timing.duration_ns)
        left = np.maximum(timing.duration_ns - hidden_ns, 0)
        return replace(timing, duration_ns=left, pause_ns=pause_ns)

    yield DraftChange("expert_overlap", acts_on, low, high)


def _pairs(recorded: Recorded) -> list[tuple[_Pass, _Pass]]:
    """Backward passes, each with the forward pass right after it in its step, of equally many
    exchanges.
    """
    passes: list[_Pass] = []
    for exchange in find_exchanges(recorded):
        if not passes or passes[-1].backward != exchange.backward:
            passes.append(_Pass([], exchange.backward))
        passes[-1].exchanges.append(exchange)
    return [
        (back, forward)
        for back, forward in pairwise(passes)
        if back.backward
        and len(back.exchanges) == len(forward.exchanges)
        and len(back.exchanges) % 2 == 0  # a dispatch and a combine of each layer
        and _same_step(recorded, back, forward)
    ]


def _same_step(recorded: Recorded, back: _Pass, forward: _Pass) -> bool:
    starts, _ = recorded.subject.steps.borders_ns
    times = recorded.rows.start_ns[[back.exchanges[0].works[0], forward.exchanges[-1].works[-1]]]
    first, last = np.searchsorted(starts, times, "right")
    return bool(first == last and first > 0)


def _hidden_ns(
    recorded: Recorded, pairs: Sequence[tuple[_Pass, _Pass]], stretch: float, length: IntArray
) -> IntArray:
    """How much shorter each payload kernel would be if what hides of its exchange took no time,
    shape (n,).

    `length`, shape (n,): of all work, in ns, which another change may have made shorter.

    With so much compute C beside it, an exchange of T hides C where it is longer than C takes
    beside communication, else T less what it slows C down.
    """
    hidden = zeros(len(length))
    compute = autograd_compute(recorded)
    for backward, forward in pairs:
        for exchange, cover_ns in _covers(recorded, compute, backward, forward, length):
            whole_ns = summed(length[exchange.works])
            saved = min(whole_ns / (1 + stretch), cover_ns)
            hidden[exchange.works] = ints(length[exchange.works] * (saved / max(whole_ns, 1)))
    return hidden


def _covers(
    recorded: Recorded,
    compute: tuple[BoolArray, BoolArray],
    backward: _Pass,
    forward: _Pass,
    length: IntArray,
) -> Iterator[tuple[Exchange, int]]:
    """Each exchange of two passes and the `compute` beside it: of the other pass, between its
    exchanges.

    Merged, the k-th exchange of backward runs beside forward's compute before its k-th exchange,
    and that of forward beside backward's compute after its k-th.
    """
    of_backward, of_forward = compute
    (b_start, b_end), (f_start, f_end) = _times(recorded, backward), _times(recorded, forward)
    before = running_ns(
        recorded.rows, length, of_forward, np.concatenate((b_end[-1:], f_end[:-1])), f_start
    )
    until = np.concatenate((b_start[1:], f_start[:1]))
    after = running_ns(recorded.rows, length, of_backward, b_end, until)
    yield from zip(backward.exchanges, before.tolist(), strict=True)
    yield from zip(forward.exchanges, after.tolist(), strict=True)


def _begins(pass_: _Pass) -> list[int]:
    return [exchange.works[0] for exchange in pass_.exchanges]


def _times(recorded: Recorded, pass_: _Pass) -> tuple[IntArray, IntArray]:
    ends = [exchange.works[-1] for exchange in pass_.exchanges]
    return recorded.rows.start_ns[_begins(pass_)], recorded.rows.end_ns[ends]


def _handover_ns(recorded: Recorded) -> int:
    """How much longer the pause is where another thread goes on, as a median; 0 where none does."""
    calls, pause = recorded.graph.calls, recorded.graph.timing.pause_ns
    known = calls.before != NONE
    handed_over = known & (calls.thread != calls.thread[np.maximum(calls.before, 0)])
    if handed_over.any():
        return max(0, int(np.median(pause[handed_over]) - np.median(pause[known & ~handed_over])))
    return 0


def _drains(recorded: Recorded, pairs: Sequence[tuple[_Pass, _Pass]]) -> tuple[IntArray, IntArray]:
    """Calls of backward before which the host would wait for the GPU in each layer, and for how
    long.

    That is as far as the host is ahead of the GPU there, less what it has waited in the layers
    before; none where forward reads no token counts.
    """
    reading, polling = reads_counts(recorded)
    graph = recorded.graph
    if not (reading.any() or polling.any()):
        return NOWHERE, NOWHERE
    of_backward, _ = autograd_compute(recorded)
    launched = np.flatnonzero(of_backward & (graph.launched_by != NONE))
    launched = in_order(launched, graph.launched_by)
    by = graph.launched_by[launched]
    drains = []
    for backward, _ in pairs:
        waited = 0
        for exchange in backward.exchanges[::2]:  # the first of each layer's two
            call = int(graph.launched_by[exchange.works[0]])
            before = int(np.searchsorted(by, call)) - 1
            if call == NONE or before < 0:
                continue
            ahead = int(graph.rows.end_ns[launched[before]] - graph.calls.start_ns[call]) - waited
            if ahead > 0:
                drains.append((call, ahead))
                waited += ahead
    calls, waits = columns_of(drains, 2)
    return calls, waits
