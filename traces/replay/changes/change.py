"""What a change is: which costs it acts on, its pessimistic edit, its optimistic one, and what they give."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from traces.account.host_calls import NONE
from traces.columns import BoolArray, IntArray
from traces.names.kernels import UNNAMED, KernelClass, classify_kernel
from traces.replay.edits import Subject
from traces.replay.graph import Graph, Timing
from traces.timeline import Activities, Source

Edit = Callable[[Timing], Timing]


@dataclass(frozen=True, slots=True)
class Draft:
    """A change that was found in a recording, before it is replayed.

    `acts_on`: wall -> kinds of its cost. No gain exceeds what they cost, unless the change acts on several
    walls: two overheads that hide each other cost little alone and much together. `low`: the pessimistic
    edit, or why none can be defended; `high`: an edit whose saving the gain cannot exceed either, None where
    the costs say all.
    """

    kind: str
    acts_on: Mapping[str, tuple[str, ...]]
    low: Edit | str
    high: Edit | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What a change would save, in ns of the windows.

    `low_ns` is that of the pessimistic replay, negative where the change may cost more than it gives, and
    None where no lower end can be defended: `because` then says why. Always `low_ns` <= `high_ns`, and where
    it acts on one wall, `high_ns` is never above what the kinds in `acts_on` (wall -> kinds) cost.
    """

    kind: str
    acts_on: Mapping[str, tuple[str, ...]]
    low_ns: int | None
    high_ns: int
    because: str | None


class Recorded:
    """What every change looks at: a rank, its graph, and what its kernels are by their names."""

    def __init__(self, subject: Subject, graph: Graph) -> None:
        self.subject, self.graph = subject, graph

    @property
    def rows(self) -> Activities:
        """The rank's activities."""
        return self.graph.rows

    @cached_property
    def classes(self) -> list[KernelClass]:
        """Of each activity what its name says; copies and graph replays are unnamed."""
        named = [*map(classify_kernel, self.subject.rank.columns.kernel_names), UNNAMED]
        return [named[name] for name in self.rows.name.tolist()]

    @cached_property
    def launch_count(self) -> IntArray:
        """How many activities each call launched, shape (m,)."""
        by = self.graph.launched_by
        return np.bincount(by[by != NONE], minlength=len(self.graph.calls))

    @cached_property
    def call_names(self) -> list[str]:
        """Name of each call."""
        columns = self.subject.rank.columns
        names = (*columns.call_names, "")
        return [names[name] for name in columns.calls.name[self.graph.calls.row].tolist()]

    def is_kernel(self) -> BoolArray:
        """Which activities are single kernels, shape (n,)."""
        result: BoolArray = self.rows.source == Source.KERNEL
        return result
