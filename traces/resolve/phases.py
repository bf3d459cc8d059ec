"""Phase of expert communication: by its name, the range around it, its notify kernel, or its neighbours."""

import re
from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray, distinct
from traces.resolve.communication import Communication
from traces.resolve.neighbours import Neighbours, launch_order
from traces.resolve.ranges import Enclosing
from traces.resolve.resolution import OPERATIONS, PHASES, UNTOLD

_AUTOGRAD: Final = re.compile(r"pt_autograd")
"""PyTorch names the threads that run backward `pt_autograd_0`, and so on."""
_EXPERT: Final = ("dispatch", "combine", "a2a", "notify", "sync", "layout", "fused")


def phases_of(comm: Communication, operation: IntArray, ranges: Enclosing, near: Neighbours) -> IntArray:
    """Phase of each all-to-all and of what comes with it, shape (m,); `UNTOLD` elsewhere.

    A dispatch belongs to what comes next, a combine to what came before. Recomputed forward is forward.
    """
    code = {name: place for place, name in enumerate(OPERATIONS)}
    expert = np.isin(operation, [code[name] for name in _EXPERT])
    phase = comm.phase_by_name()
    phase = _first_told(phase, ranges.phase)
    phase = _first_told(phase, _of_notify(comm, phase, operation == code["dispatch"]))
    phase = _first_told(phase, np.where(operation == code["dispatch"], near.next_phase, UNTOLD))
    phase = _first_told(phase, np.where(operation == code["combine"], near.previous_phase, UNTOLD))
    agreed = np.where(near.previous_phase == near.next_phase, near.next_phase, UNTOLD)
    phase = _first_told(phase, agreed)
    phase = _first_told(phase, np.where(_on_autograd(comm), PHASES.index("bwd"), UNTOLD))
    return np.where(expert, phase, UNTOLD)


def _first_told(first: IntArray, second: IntArray) -> IntArray:
    return np.where(first != UNTOLD, first, second)


def _of_notify(comm: Communication, phase: IntArray, dispatch: BoolArray) -> IntArray:
    """Phase of the notify kernel right before a dispatch on its stream: DeepEP sends the counts first."""
    notify = comm.of_subclass("ep_notify")
    place = np.argsort(launch_order(comm.rank.activities), kind="stable")[comm.index]
    result = np.full(len(comm), UNTOLD, dtype=np.int64)
    for stream in distinct(comm.rows.stream_id[notify]):
        mine = np.flatnonzero((comm.rows.stream_id == stream) & (notify | dispatch))
        mine = mine[np.argsort(place[mine], kind="stable")]
        after_notify = dispatch[mine[1:]] & notify[mine[:-1]]
        result[mine[1:][after_notify]] = phase[mine[:-1][after_notify]]
    return result


def _on_autograd(comm: Communication) -> BoolArray:
    names = comm.rank.columns.thread_names
    autograd = [gid for gid, name in names.items() if _AUTOGRAD.match(name)]
    return np.isin(comm.rows.launch_thread, np.array(autograd, dtype=np.int64))
