"""Which ranks share a clock: a recording of several processes may be of several hosts.

Each process has a clock of its own, as in a recording of its own, so that one file gives what many give.
Where that leaves too few collectives for a fit, the processes of one recording count as one clock, unless
their collectives contradict it.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.ranks import parts
from traces.ranks.clocks import RESIDUAL
from traces.ranks.match import Matched
from traces.ranks.summary import RankSummary


def with_own_clocks(summaries: Sequence[RankSummary]) -> list[RankSummary]:
    """A clock for each process of each recording, by a number in their order."""
    return _numbered(summaries, [(one.identity.clock, one.identity.process) for one in summaries])


def share_a_clock(summaries: Sequence[RankSummary]) -> bool:
    """Whether several processes are of one recording, by the clocks as recorded."""
    processes = defaultdict(set)
    for one in summaries:
        processes[one.identity.clock].add(one.identity.process)
    return any(len(each) > 1 for each in processes.values())


def with_shared_clocks(summaries: Sequence[RankSummary], matched: Matched) -> list[RankSummary]:
    """A clock for the processes of a recording whose collectives agree with that; another for the others.

    They agree where each is there before the other ends, and where what ends on all ranks at once does.
    """
    clocks = sorted({one.identity.clock for one in summaries})
    number = {clock: place for place, clock in enumerate(clocks)}
    of_place = np.array([number[one.identity.clock] for one in summaries], dtype=np.int64)
    clock, instance = of_place[matched.place], matched.instance
    order = np.lexsort((clock, instance))
    first = parts.begins_of(instance[order] * (len(clocks) + 1) + clock[order])
    agree = parts.spread(_agree(matched, order, first), first)
    rows = order[agree]
    kept = parts.begins_of((instance * (len(clocks) + 1) + clock)[rows])
    island = parts.joined(matched.place[rows], kept, len(summaries))
    took = np.bincount(matched.place, minlength=len(summaries)) > 0
    alone = np.where(took, island, -1)  # what took part in nothing contradicts nothing
    return _numbered(summaries, list(zip(of_place.tolist(), alone.tolist(), strict=True)))


def _agree(matched: Matched, order: IntArray, first: IntArray) -> BoolArray:
    """Of the participants of an instance on one clock, whether its times fit together, shape (parts,)."""
    start_ns, end_ns = matched.start_ns[order], matched.end_ns[order]
    last_ns, early_ns = parts.most(start_ns, first), parts.least(end_ns, first)
    apart_ns = parts.most(end_ns, first) - early_ns
    together = matched.ends_together[matched.instance[order[first[:-1]]]]
    result: BoolArray = (last_ns <= early_ns + RESIDUAL.value) & (~together | (apart_ns <= RESIDUAL.value))
    return result


def _numbered(summaries: Sequence[RankSummary], keys: Sequence[Hashable]) -> list[RankSummary]:
    number: dict[Hashable, int] = {}
    return [
        _with_clock(one, number.setdefault(key, len(number)))
        for one, key in zip(summaries, keys, strict=True)
    ]


def _with_clock(summary: RankSummary, clock: int) -> RankSummary:
    identity = summary.identity
    return summary if identity.clock == clock else replace(summary, identity=replace(identity, clock=clock))
