"""How evenly the experts of a group of ranks work, collective by collective, and which ranks are
hot.
"""

from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, distinct, none_of
from traces.frozen import frozen
from traces.limits import Limit
from traces.ranks.matching.match import Matched
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import Operation, kinds_of
from traces.ranks.waiting.side_by_side import LikeGroups, numbers_of
from traces.ranks.waiting.waits import EXCHANGES

UNEVEN: Final = Limit(
    1.15,
    "largest over mean expert work of a group",
    "ours: a balancing loss leaves some percent, and the largest of many ranks is above the mean "
    "by chance",
)
HOT: Final = Limit(
    0.8,
    "fraction of the uneven expert work",
    "ours: elsewhere another rank is above by a fifth of it",
)
_NO_EXPERTS: Final = (Operation.ALL_REDUCE, Operation.BROADCAST, Operation.REDUCE)
"""Operations of which none brings tokens back from experts, nor waits for that."""


@frozen
class Routing:
    """Expert work before the collectives that bring tokens back, beside that of the others of the
    group.

    `imbalance` is the largest over the mean, in the group where that is most; None where nothing
    tells. `cost_ns` is the sum, over all steps, of what the largest is above the mean, in the group
    where that is most. `hot` are the places of the ranks that most of it is due to, one in each
    group that is so uneven, none where it moves. `of_experts` are the instances, shape (n,), of
    groups that exchange tokens.
    """

    imbalance: float | None
    cost_ns: float
    hot: tuple[int, ...]
    of_experts: BoolArray


def routing_of(matched: Matched, slow: FloatArray, alike: LikeGroups) -> Routing:
    """How unevenly the experts of the ranks work; `slow`, how many times as long a GPU takes
    for all it does, of each participation, is taken out.
    """
    first, worked = matched.first, _worked(matched, alike)
    work = matched.grouped_ns / slow
    is_told = _as_a_rule(matched, worked & (matched.operation != Operation.CONTROL))
    if not is_told.any():
        return Routing(None, 0.0, (), none_of(len(matched)))
    mean = np.where(is_told, parts.mean(work, first), 0.0)
    above = np.where(is_told, parts.most(work, first), 0.0) - mean
    count_of_groups = len(matched.groups)
    by_group = parts.sums(above, matched.group, count_of_groups)
    of_group = parts.sums(mean, matched.group, count_of_groups)
    uneven = parts.over(by_group, of_group, 0.0)
    hot = _hot(matched, parts.first_most(work, first), above, uneven)
    of_experts = np.isin(matched.group, distinct(matched.group[_as_a_rule(matched, worked)]))
    return Routing(1 + float(uneven.max()), float(by_group.max()), hot, of_experts)


def _hot(matched: Matched, top: IntArray, above: FloatArray, uneven: FloatArray) -> tuple[int, ...]:
    """In each group that is half as uneven as the worst, the rank that is the largest always; else
    none.

    The same experts are hot in every group where what is said of tokens does not depend on the
    replica.
    """
    if not above.any():
        return ()
    hot = set()
    for group in np.flatnonzero(uneven >= uneven.max() / 2).tolist():
        mine = matched.group == group
        by_place = np.bincount(matched.place[top[mine]], weights=above[mine])
        place = int(np.argmax(by_place))
        if by_place[place] < HOT.value * above[mine].sum():
            return ()
        hot.add(place)
    return tuple(sorted(hot))


def _worked(matched: Matched, alike: LikeGroups) -> BoolArray:
    """Instances of like ranks, each of which did expert work before."""
    first = matched.first
    like = ~parts.varies(numbers_of(alike, matched.ranks)[matched.place], first)
    worked = parts.least(matched.grouped_ns, first) > 0
    tokens = ~np.isin(matched.operation, _NO_EXPERTS) & ~np.isin(
        matched.kinds, kinds_of("dp_reduce_scatter", "dp_all_gather", "pp_p2p")
    )
    result = like & worked & tokens
    exchanges = result & np.isin(matched.operation, EXCHANGES)
    if exchanges.any():  # tokens travel by these; else by gathers and scatters
        of_them = np.isin(matched.group, matched.group[exchanges])
        result &= of_them | (matched.operation == Operation.CONTROL)
    return result


def _as_a_rule(matched: Matched, is_told: BoolArray) -> BoolArray:
    """Those in groups where expert work before is the rule.

    A reduction of gradients comes after expert work as well, but once where tokens come back many
    times.
    """
    often = np.bincount(matched.group[is_told], minlength=len(matched.groups))
    return is_told & (2 * often[matched.group] >= often.max(initial=0))
