"""Real recordings of several ranks read a second time: plain SQL or JSON and numpy, nothing of the program.

What was argued from these figures stands in `tests/data/real_ranks.toml`. Communication is every kernel with
`nccl` in its name, which is all there is in these recordings; calls match by their order and kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.by_definition.real_recordings import Document, Ints, sql

_KIND = re.compile(r"nccl(?:Dev)?Kernel_([A-Za-z]+)")
_PID = "(globalPid >> 24) & 16777215"
_KERNELS = f"""
SELECT k.start, k.end, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k
JOIN StringIds s ON s.id = k.demangledName
WHERE {_PID} = ? ORDER BY k.start
"""


@dataclass(frozen=True)
class Kernel:
    """A kernel on the GPU."""

    start: int
    end: int
    name: str

    @property
    def kind(self) -> str | None:
        """The operation of a communication kernel, None of others."""
        found = _KIND.match(self.name)
        return found[1] if found else None


@dataclass(frozen=True)
class Calls:
    """Matched calls of one group: nanoseconds in arrays of shape (ranks, calls), and each call's kind."""

    start: Ints
    end: Ints
    kinds: tuple[str, ...]

    @property
    def length(self) -> Ints:
        return self.end - self.start

    @property
    def transfer(self) -> Ints:
        """Of each call, the time of the rank that waited least."""
        least: Ints = self.length.min(axis=0)
        return least

    @property
    def wait(self) -> Ints:
        return self.length - self.transfer

    @property
    def late(self) -> Ints:
        """The place of the rank that waited least: it came last. Needs no common clock."""
        shortest: Ints = self.length.argmin(axis=0)
        return shortest

    @property
    def charged(self) -> Ints:
        """What all others waited, added up by the rank that was late."""
        return np.array([self.wait[:, self.late == rank].sum() for rank in range(len(self.start))])

    @property
    def ends_spread(self) -> Ints:
        """How far apart the ranks' ends of each call lie: clocks and the ways out of a call together."""
        spread: Ints = self.end.max(axis=0) - self.end.min(axis=0)
        return spread


def matched(ranks: Sequence[Sequence[Kernel]]) -> Calls:
    """The n-th call of each rank; every rank must have the same kinds in the same order."""
    rows = [[kernel for kernel in rank if kernel.kind] for rank in ranks]
    kinds = {tuple(str(kernel.kind) for kernel in row) for row in rows}
    assert len(kinds) == 1, "calls of the ranks do not match by order"
    start = np.array([[kernel.start for kernel in row] for row in rows], dtype=np.int64)
    end = np.array([[kernel.end for kernel in row] for row in rows], dtype=np.int64)
    return Calls(start, end, kinds.pop())


def kernels_of_events(events: Sequence[Document]) -> list[Kernel]:
    """The kernels of a profiler's events in order of start."""
    kernels = (one for one in events if one["cat"] == "kernel")
    found = (Kernel(one["start"], one["end"], one["name"]) for one in kernels)
    return sorted(found, key=lambda kernel: kernel.start)


def kernels_of_export(path: Path, pid: int) -> list[Kernel]:
    """The kernels of one process of an export in order of start."""
    return [Kernel(*row) for row in sql(path, _KERNELS, pid)]
