"""Waits for the next batch by step: their rhythm tells how many workers load; and what the input
copies show.

Workers start together and take batches in turn, so where loading holds a run back the step waits
for the slowest of each round: with k of them every k-th step waits longest.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.account.calls import PAUSE
from traces.account.host import input_copies
from traces.arrays import BoolArray, IntArray, ints, summed
from traces.columns import NULL, Memory
from traces.intervals import instants_of, intersect, subtract
from traces.limits import FEWEST, NEARLY_ALL, Limit
from traces.missing import Missing, gap, sole
from traces.sections.tables import LedgerRow
from traces.sections.work import DataLoading
from traces.steps.found import Steps
from traces.timeline import RankTimeline

RHYTHM: Final = Limit(
    0.7,
    "fraction of the variance of the waits between the places of a round, beyond chance",
    "by counting: of drawn series of random waits one or two in a hundred have as much; recordings "
    "of others with two and four workers have 0.96 and 0.71",
)
_CURE: Final = "look up num_workers of the program's DataLoader"
_WORKER: Final = "pt_data_worker"
_ITERATORS: Final = {"_SingleProcessDataLoaderIter": False, "_MultiProcessingDataLoaderIter": True}
"""Ranges that PyTorch opens around the next batch, and whether worker processes load it."""
_WAITS: Final = "idle.launch_starved.data"


def measure_data_loading(
    rank: RankTimeline, steps: Steps, ledger: Sequence[LedgerRow], resident: IntArray
) -> DataLoading:
    """Of one rank, whose `ledger` splits each step. `resident`: places of copies from host memory,
    no input.

    `workers` is None where no step waits. Copies are counted over the recording: those that read
    pageable memory keep the host until they end. What is exposed of them lies in the windows, with
    no kernel beside.
    """
    rows, copies = rank.activities, input_copies(rank)
    copies = copies[~np.isin(rank.copy_bytes(copies), rank.copy_bytes(resident))]
    other, moving = instants_of(rows, ~rows.is_copy), instants_of(rows, copies)
    exposed_ns = intersect(subtract(moving, other), steps.windows).total_ns
    waits = waits_of(ledger, steps)
    waiting = len(_late(waits))
    named = workers_by_name(rank)
    workers: int | Missing | None = named or workers_by_rhythm(waits)
    if waiting and workers is None:
        workers = gap("the waits for batches show no rhythm", _CURE)
    apart = loads_apart(rank.columns.range_texts)
    is_pageable = pageable_copies(rank, copies)
    pageable = is_pageable if isinstance(is_pageable, Missing) else summed(is_pageable)
    return DataLoading(
        waiting, workers, len(copies), pageable, exposed_ns, apart, workers_named=named > 0
    )


def workers_by_name(rank: RankTimeline) -> int:
    """Worker processes of PyTorch's loader by the name that they give their thread; 0 where several
    processes of the recording use GPUs, as these may share them.
    """
    if rank.beside:
        return 0
    return sum(name.startswith(_WORKER) for name in rank.columns.thread_names.values())


def loads_apart(range_texts: Sequence[str]) -> bool | None:
    """Whether processes of their own load, by the iterator that PyTorch names; None with none or
    both.
    """
    texts = "\n".join(range_texts)
    return sole({apart for name, apart in _ITERATORS.items() if name in texts})


def pageable_copies(rank: RankTimeline, copies: IntArray) -> BoolArray | Missing:
    """Which of some copies between host and GPU, by their places, read or write pageable memory."""
    memory = rank.columns.copies.memory[rank.activities.row[copies]]
    if (memory == NULL).any():
        return rank.lacks("the trace does not record the host's memory of copies", "memory_kinds")
    return memory == Memory.PAGEABLE


def waits_of(ledger: Sequence[LedgerRow], steps: Steps) -> IntArray:
    """How long each used step waits for its batch; empty without steps."""
    waits_ns = next((row.per_step_ns for row in ledger if row.row == _WAITS), ())
    return ints(waits_ns if steps.used else ())


def workers_by_rhythm(waits_ns: IntArray) -> int | None:
    """How many workers load, by the waits of steps in order; None where that does not show.

    The first waits of a run come before its loaders fell behind and are left out.
    """
    late = _late(waits_ns)
    if not len(late):
        return None
    waits = waits_ns[late[0] :].astype(np.float64)
    spread = float(((waits - waits.mean()) ** 2).sum())
    for count in range(2, len(waits) // FEWEST.whole + 1):
        place = np.arange(len(waits)) % count
        counts = np.bincount(place)
        means = np.bincount(place, weights=waits) / counts
        between = (counts * (means - waits.mean()) ** 2).sum()
        chance = (count - 1) / (len(waits) - 1)
        if spread and between / spread >= chance + RHYTHM.value * (1 - chance):
            return count
    # with one loader, or none, each step waits, but for a few at the ends
    steady = float((waits > np.median(waits) / 2).mean())
    if len(waits) >= 2 * FEWEST.value and steady >= NEARLY_ALL.value:
        return 1
    return None


def _late(waits_ns: IntArray) -> IntArray:
    """Steps that wait longer than any pause of the host."""
    return np.flatnonzero(waits_ns > PAUSE.value)
