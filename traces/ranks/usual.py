"""What ranks that do the same work usually do before the same collective."""

from collections.abc import Sequence

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.groups import group_of
from traces.ranks import parts
from traces.ranks.alike import Alike, numbers_of
from traces.ranks.match import Matched
from traces.ranks.stages import messages_of, stages_of


def roles_of(matched: Matched, alike: Sequence[Alike], ranks: int) -> IntArray:
    """A number for each participation, the same for what like ranks do at the same place of their programs.

    That is the same number of the same operation, in groups of one family; of a message of the pipeline, its
    first rank or its second.
    """
    purpose = np.array([group.purpose for group in matched.groups] + [0], dtype=np.int64)[matched.group]
    size, family = np.diff(matched.first), families_of(matched)
    what = group_of(size, purpose, family, matched.operation, matched.sequence)[matched.instance]
    stage = stages_of(matched, ranks)[matched.place]
    second = np.arange(len(matched.place)) - matched.first[matched.instance]
    in_pair = np.where(messages_of(matched)[matched.instance], second, 0)
    kind = numbers_of(alike, ranks)[matched.place]
    return group_of(kind, stage, in_pair, what)


def families_of(matched: Matched) -> IntArray:
    """Of each instance how many groups of the same size a rank of it takes part in more often, shape (n,).

    Most recordings do not name what a group is for. On like ranks the groups of one family are taken part in
    equally often, nearly, and those of another more or less often.
    """
    instances = np.diff(parts.begins_of(matched.group))  # groups rise
    some = np.zeros(len(matched), dtype=np.bool_)
    some[parts.begins_of(matched.group)[:-1]] = True
    size = np.diff(matched.first)
    place = matched.place[parts.spread(some, matched.first)]
    count, of_size = np.repeat(instances, size[some]), np.repeat(size[some], size[some])
    number = group_of(
        np.max(count, initial=0) - count, of_size, place
    )  # those of a rank together, most first
    order = np.argsort(number, kind="stable")
    mine = parts.begins_of(group_of(of_size, place)[order])
    equal = parts.begins_of(number[order])
    more = np.empty(len(order), dtype=np.int64)
    more[order] = parts.spread(equal[:-1], equal) - parts.spread(mine[:-1], mine)
    return np.repeat(more[np.cumsum(size[some]) - size[some]], instances)


def usual(values: IntArray, role: IntArray, wanted: BoolArray) -> tuple[IntArray, BoolArray]:
    """Of each row the median of the wanted rows of its role, and whether there are any."""
    middle, known = parts.medians(values[wanted], role[wanted], int(role.max(initial=-1)) + 1)
    return middle[role], known[role]
