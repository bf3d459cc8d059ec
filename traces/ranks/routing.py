"""How evenly the experts of a group of ranks work, collective by collective."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import BoolArray, FloatArray, IntArray, distinct
from traces.limits import Limit
from traces.names.kinds import COMM_KINDS
from traces.ranks import parts
from traces.ranks.alike import Alike, numbers_of
from traces.ranks.links import EXCHANGES
from traces.ranks.match import Matched
from traces.ranks.summary import UNKNOWN, Operation

HOT: Final = Limit(
    0.8, "fraction of the uneven expert work", "ours: elsewhere another rank is above by a fifth of it"
)
_NO_EXPERTS: Final = (Operation.ALL_REDUCE, Operation.BROADCAST, Operation.REDUCE)
"""Operations of which none brings tokens back from experts, nor waits for that."""
_GRADIENTS: Final = tuple(COMM_KINDS.index(kind) for kind in ("dp_reduce_scatter", "dp_all_gather", "pp_p2p"))


@dataclass(frozen=True, slots=True)
class Routing:
    """Expert work before the collectives that bring tokens back, beside that of the others of the group.

    `imbalance` is the largest over the mean, in the group where that is most; None where nothing tells.
    `cost_ns` is the sum, over all steps, of what the largest is above the mean, in the group where that is
    most. `hot` is the place of the rank that most of it is due to, `UNKNOWN` where it moves. `of_experts` are
    the instances, shape (n,), of groups that exchange tokens.
    """

    imbalance: float | None
    cost_ns: float
    hot: int
    of_experts: BoolArray


def routing_of(matched: Matched, slow: FloatArray, alike: Sequence[Alike], count: int) -> Routing:
    """How unevenly the experts of `count` ranks work; `slow`, how many times as long a GPU takes for all it
    does, of each participation, is taken out.
    """
    first = matched.first
    nothing = np.zeros(len(matched), dtype=np.bool_)
    if not len(matched):
        return Routing(None, 0.0, UNKNOWN, nothing)
    work = np.maximum(matched.grouped_ns, 0) / slow
    worked = _worked(matched, alike, count)
    told = _as_a_rule(matched, worked & (matched.operation != Operation.CONTROL))
    if not told.any():
        return Routing(None, 0.0, UNKNOWN, nothing)
    mean = np.where(told, parts.total(work, first) / np.diff(first), 0.0)
    above = np.where(told, parts.most(work, first), 0.0) - mean
    by_group, of_group = (parts.sums(one, matched.group, len(matched.groups)) for one in (above, mean))
    uneven = np.divide(by_group, of_group, out=np.zeros(len(by_group)), where=of_group > 0)
    hot = _hot(matched, _first_largest(work, first), above, uneven)
    of_experts = np.isin(matched.group, distinct(matched.group[_as_a_rule(matched, worked)]))
    return Routing(1 + float(uneven.max()), float(by_group.max()), hot, of_experts)


def _hot(matched: Matched, top: IntArray, above: FloatArray, uneven: FloatArray) -> int:
    """The rank that is the largest of its group always, where no other group is half as uneven."""
    if not above.any():
        return UNKNOWN
    group = int(np.argmax(uneven))
    mine = matched.group == group
    by_place = np.bincount(matched.place[top[mine]], weights=above[mine])
    place = int(np.argmax(by_place))
    theirs = distinct(matched.group[matched.instance[matched.place == place]])
    others = np.delete(uneven, theirs)
    alone = others.max(initial=0.0) < uneven[group] / 2
    return place if alone and by_place[place] >= HOT.value * above[mine].sum() > 0 else UNKNOWN


def _worked(matched: Matched, alike: Sequence[Alike], count: int) -> BoolArray:
    """Instances of like ranks, each of which did expert work before."""
    first = matched.first
    kind = numbers_of(alike, count)[matched.place]
    like = parts.most(kind, first) == parts.least(kind, first)
    worked = parts.least(matched.grouped_ns, first) > 0
    tokens = ~np.isin(matched.operation, _NO_EXPERTS) & ~np.isin(matched.kind[first[:-1]], _GRADIENTS)
    result: BoolArray = like & worked & tokens & (np.diff(first) > 1)
    exchanges = result & np.isin(matched.operation, EXCHANGES)
    if exchanges.any():  # tokens travel by these; else by gathers and scatters
        of_them = np.isin(matched.group, matched.group[exchanges])
        result &= of_them | (matched.operation == Operation.CONTROL)
    return result


def _as_a_rule(matched: Matched, told: BoolArray) -> BoolArray:
    """Those in groups where expert work before is the rule.

    A reduction of gradients comes after expert work as well, but once where tokens come back many times.
    """
    often = np.bincount(matched.group[told], minlength=len(matched.groups))
    rule: BoolArray = told & (2 * often[matched.group] >= often.max(initial=0))
    return rule


def _first_largest(work: FloatArray, first: IntArray) -> IntArray:
    rows = np.flatnonzero(work == parts.spread(parts.most(work, first), first))
    result: IntArray = rows[np.searchsorted(rows, first[:-1])]
    return result
