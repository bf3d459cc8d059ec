"""What a change is: the costs it acts on, its pessimistic edit, its optimistic one, and what they
give.

What several give together is one replay of all their edits, and no sum of what each gives alone.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial, reduce
from typing import Final

from traces.arrays import IntArray, summed
from traces.frozen import frozen
from traces.limits import NEARLY_ALL, Limit
from traces.names.kernels import KernelClass
from traces.progress import report
from traces.replay.edits import Subject
from traces.replay.graph import Graph, Timing
from traces.replay.run import ReplayBorders, replay
from traces.texts import Texts
from traces.timeline import Activities

Edit = Callable[[Timing], Timing]


@frozen
class DraftChange:
    """A change that was found in a recording, before it is replayed (`measure.py`).

    `acts_on`: wall -> kinds of its cost. No gain exceeds what they cost, unless the change acts on
    several walls: two overheads that hide each other cost little alone and much together. `low`:
    the pessimistic edit, or why none can be defended; `high`: an edit whose saving the gain cannot
    exceed either, None where the costs say all.
    """

    kind: str
    acts_on: Mapping[str, Texts]
    low: Edit | str
    high: Edit | None = None


@frozen
class Change:
    """What a change would save, in ns of the windows.

    `low_ns` is that of the pessimistic replay, negative where the change may cost more than it
    gives, and None where no lower end can be defended: `because` then says why. Always `low_ns` <=
    `high_ns`, and where it acts on one wall, `high_ns` is never above what the kinds in `acts_on`
    (wall -> kinds) cost.
    """

    kind: str
    acts_on: Mapping[str, Texts]
    low_ns: int | None
    high_ns: int
    because: str | None


class Recorded:
    """What every change looks at: a rank, its graph, and what its kernels are by their names."""

    def __init__(self, subject: Subject, graph: Graph) -> None:
        self.subject, self.graph, self.rank = subject, graph, subject.rank

    @property
    def rows(self) -> Activities:
        return self.graph.rows

    @cached_property
    def classes(self) -> list[KernelClass]:
        """Of each activity what its name says; copies and graph replays are unnamed."""
        return [self.rank.classes[code] for code in self.rows.name.tolist()]

    @cached_property
    def launch_count(self) -> IntArray:
        return self.graph.launch_counts()

    @cached_property
    def call_names(self) -> list[str]:
        columns = self.rank.columns
        names = (*columns.call_names, "")
        return [names[code] for code in columns.calls.name[self.graph.calls.row].tolist()]


MOST_EVENTS: Final = Limit(
    500_000,
    "events of a rank's replay",
    "ours: so much is kept until it is known what is to be replayed together, about 100 MB a rank",
)

Base = tuple[Timing, int]
"""A timing without the change, and how long its steps last, in ns."""


@frozen
class Joint:
    """What changes save when they are made together, in ns of the windows.

    `low_ns`: by the pessimistic edits of all that have one, negative where they may cost more than
    they give. `high_ns`: by the optimistic edits of all. `beyond_ns`: how much more that is than
    the same edits save one by one, where they hide each other; else 0.
    """

    low_ns: int
    high_ns: int
    beyond_ns: int


@frozen
class Savings:
    """What edits of one graph save against a replay without them, `bases` first without unexplained
    waits.
    """

    graph: Graph
    bases: Sequence[Base]
    borders: ReplayBorders

    @property
    def whole_ns(self) -> int:
        return self.bases[0][1]

    def sure_ns(self, edits: Sequence[Edit]) -> int:
        """What pessimistic edits save together on any base, nearly all of it: replays are off by a
        little.
        """
        low_ns = min(map(partial(self._saved_ns, edits), self.bases))
        if low_ns > 0:
            return int(low_ns * NEARLY_ALL.value)
        return low_ns

    def most_ns(self, edits: Sequence[Edit]) -> int:
        """What optimistic edits save together."""
        return max(0, self._saved_ns(edits, self.bases[0]))

    def _saved_ns(self, edits: Sequence[Edit], base: Base) -> int:
        report("replaying changes of the run")
        timing, length_ns = base
        edited: Timing = reduce(lambda before, edit: edit(before), edits, timing)
        return length_ns - summed(self.borders.lengths_ns(replay(self.graph, edited)))


class ChangesTogether:
    """The changes found in one rank, to be replayed in any combination."""

    def __init__(self, savings: Savings, drafts: Sequence[DraftChange]) -> None:
        self._savings, self._drafts = savings, drafts
        self._alone_ns: dict[str, int] = {}

    def __getstate__(self) -> None:
        """What travels to another process holds nothing: the graph is too large, and is asked where
        it is.
        """

    def joint(self, kinds: Collection[str]) -> Joint:
        """What the changes of some kinds save; kinds that were not found save nothing."""
        drafts = [draft for draft in self._drafts if draft.kind in kinds]
        if not drafts:
            return Joint(0, 0, 0)
        high_ns = self._savings.most_ns([*filter(None, map(_best_edit, drafts))])
        alone_ns = sum(map(self._alone, drafts))
        low_ns = self._savings.sure_ns([one.low for one in drafts if not isinstance(one.low, str)])
        return Joint(min(low_ns, high_ns), high_ns, max(0, high_ns - alone_ns))

    def _alone(self, draft: DraftChange) -> int:
        if draft.kind not in self._alone_ns:
            edit = _best_edit(draft)
            self._alone_ns[draft.kind] = self._savings.most_ns([edit]) if edit else 0
        return self._alone_ns[draft.kind]


def _best_edit(draft: DraftChange) -> Edit | None:
    """The edit that gives most; None where only the cost of what it acts on is known."""
    if draft.high is None and not isinstance(draft.low, str):
        return draft.low
    return draft.high
