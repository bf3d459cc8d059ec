"""What ranks that do the same work usually do before the same collective."""

from __future__ import annotations

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

    That is the same number of the same operation, in groups of one purpose and size; of a message of the
    pipeline, its first rank or its second.
    """
    size = np.diff(matched.first)
    purpose = np.array([group.purpose for group in matched.groups] + [0], dtype=np.int64)[matched.group]
    stage = stages_of(matched, ranks)[matched.place]
    of_instance = np.stack((size, purpose, matched.operation))[:, matched.instance]
    second = np.arange(len(matched.place)) - matched.first[matched.instance]
    in_pair = np.where(messages_of(matched)[matched.instance], second, 0)
    kind = numbers_of(alike, ranks)[matched.place]
    return group_of(kind, stage, *of_instance, in_pair, matched.sequence[matched.instance])


def usual(values: IntArray, role: IntArray, wanted: BoolArray) -> tuple[IntArray, BoolArray]:
    """Of each row the median of the wanted rows of its role, and whether there are any."""
    order = np.argsort(role, kind="stable")
    first = parts.begins_of(role[order])
    middle = parts.median(values[order], first, wanted[order])
    known = np.bincount(role[wanted], minlength=len(first) - 1) > 0
    return middle[role], known[role]
