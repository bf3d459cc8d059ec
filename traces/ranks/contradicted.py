"""Collectives that contradict the clocks that were fitted: matched wrongly, or the clocks are wrong."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.arrays import BoolArray, distinct
from traces.groups import group_of
from traces.limits import Limit
from traces.ranks import parts
from traces.ranks.clocks import RESIDUAL, Aligned, unaligned
from traces.ranks.match import Matched
from traces.ranks.summary import RankSummary

_WHY_CONTRADICTED: Final = (
    "collectives contradict the clocks that fit most of them: ranks would be in one after others had left it"
)
AGREE: Final = Limit(
    0.97,
    "of the collectives",
    "ours: of 55 pipelines with right clocks at least 99.2 % agree with these, of two with wrong ones 93 %",
)
_MANY: Final = 200
"""Collectives, from which on some that were put together wrongly weigh little."""


def agreed(
    summaries: Sequence[RankSummary], matched: Matched, aligned: Aligned, possible: BoolArray
) -> Aligned:
    """The same, or without clocks where too many instances contradict them; `possible`: those that do not.

    Where only those that contradict them hold clocks together, these are not one clock.
    """
    few = len(possible) < _MANY or float(possible.mean()) >= AGREE.value
    if few and _in_one(summaries, matched, possible):
        return aligned
    return unaligned(matched, aligned.clocks.residual_ns, _WHY_CONTRADICTED)


SAME: Final = Limit(
    0.5, "of the collectives of a kind", "ours: of a kind that is counted from another step most contradict"
)


def _in_one(summaries: Sequence[RankSummary], matched: Matched, possible: BoolArray) -> bool:
    """Whether kinds of which most are possible hold all clocks together that took part."""
    number: dict[int, int] = {}
    clock = np.array([number.setdefault(one.identity.clock, len(number)) for one in summaries])
    kind = group_of(matched.operation, matched.kind[matched.first[:-1]]).astype(np.int64)
    often = np.bincount(kind)
    kept = matched.take(
        possible & (np.bincount(kind[possible], minlength=len(often)) >= SAME.value * often)[kind]
    )
    island = parts.joined(clock[kept.place], kept.first, len(number))
    return len(distinct(island[distinct(clock[matched.place])])) <= 1


def consistent(matched: Matched, aligned: Aligned) -> BoolArray:
    """Which instances can be what they seem: no participant ended before the last one was there.

    Others were put together wrongly, where only their order was known.
    """
    last_ns = parts.most(aligned.start_ns, matched.first)
    return last_ns <= parts.least(aligned.end_ns, matched.first) + RESIDUAL.value
