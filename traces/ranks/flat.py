"""The collectives of many summaries as one table, with one number for each group of ranks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.ranks.pairs import groups_of
from traces.ranks.recorded import Recorded
from traces.ranks.summary import Group, GroupSource, Instances, RankSummary


@dataclass(frozen=True, slots=True)
class Flat:
    """Rows of all summaries, shape (n,): `place` is that of the summary, `rows.group` indexes `groups`."""

    place: IntArray
    rows: Instances
    groups: tuple[Group, ...]

    def __len__(self) -> int:
        return len(self.place)

    def of_source(self, source: GroupSource) -> BoolArray:
        """Which rows are of groups that are known by this."""
        return np.array([group.source == source for group in self.groups] + [False])[self.rows.group]


def flat_of(summaries: Sequence[RankSummary], recorded: Recorded) -> Flat:
    """All rows, in the order of the summaries; a group's number is that of its key, in order of keys."""
    groups = groups_of(summaries)
    known: dict[tuple[GroupSource, int], Group] = {}
    for group in (group for several in groups for group in several):
        known.setdefault((group.source, group.key), group)
    number = {key: place for place, key in enumerate(sorted(known))}
    of_group = [number[group.source, group.key] for several in groups for group in several]
    before = np.cumsum([0, *map(len, groups)])[recorded.place]
    number_of = np.array(of_group, dtype=np.int64)[before + recorded.rows.group]
    return Flat(
        recorded.place, replace(recorded.rows, group=number_of), tuple(known[key] for key in sorted(known))
    )
