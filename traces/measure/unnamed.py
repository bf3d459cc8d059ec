"""Compute kernels that no rule names: how long nothing else computes, and which are probably
communication.

They count as compute, and a report must say so. Probably: on a stream of their own, begun once
compute of another stream has ended, waited for by compute, and with nothing beside them. Streams,
edges and overlap tell it, never a name.
"""

from typing import Final

import numpy as np

from traces.account.device import Queueing
from traces.account.producers import Producers
from traces.arrays import BoolArray, IntArray, distinct, listed, none_of, shifted, summed
from traces.columns import NULL
from traces.frozen import frozen
from traces.groups import mask_of, sums_of
from traces.intervals import Spans, instants_in, instants_of, ns_in, subtract
from traces.launches import grid_numbers
from traces.limits import MOST, NEARLY_ALL
from traces.measure.kernel_table import NO_NAME, no_grid
from traces.patterns import compiled
from traces.recording.recorder import recorded_by
from traces.sections.tables import UnknownKernel
from traces.steps.found import Steps, no_steps
from traces.timeline import Activities, RankTimeline


@frozen
class Unnamed:
    """`alone_ns`: how long of the windows no compute of known class ran beside compute of unknown
    class that may communicate.

    `apart`: places of the kernels that are probably communication; `apart_ns`: how long of the
    windows they ran and no compute did. `kernels`: all of them in the windows, by name.
    """

    alone_ns: int
    apart: IntArray
    apart_ns: int
    kernels: tuple[UnknownKernel, ...]


def measure_unnamed(rank: RankTimeline, queueing: Queueing, steps: Steps) -> Unnamed:
    """Measure one rank; `queueing`: what each of its activities had to wait for."""
    rows, windows = rank.activities, steps.windows
    unnamed = np.array([kernel.rule is None for kernel in rank.classes])[rows.name] & rows.is_kernel
    compute, doubted = rows.is_compute, unnamed & _may_communicate(rank, steps)
    known = instants_of(rows, compute & ~unnamed)
    apart = _apart(rank, queueing.producers, doubted)
    beside = instants_of(rows, compute & ~mask_of(apart, len(rows)))

    def alone_ns(which: BoolArray | IntArray, others: Spans) -> int:
        return subtract(instants_in(windows, rows, which), others).total_ns

    kernels = _kernels(rank, steps, unnamed, apart)
    return Unnamed(alone_ns(doubted, known), apart, alone_ns(apart, beside), kernels)


_REACHES: Final = compiled(r"(?i)peer|ipc|shareable|multicast|nccl|shmem")
_EXCHANGES: Final = compiled(
    r"(?i)dispatch|combine|exchange|a2a|all_?to_?all|all_?gather|reduce_?scatter|all_?reduce|send|recv|shmem"
)


def _may_communicate(rank: RankTimeline, steps: Steps) -> BoolArray:
    """Which activities may, by who else there is, a mask of shape (n,).

    With nobody else none does: where nothing recorded communicates in a program that began here and
    opens the memory of no other. In a world of one rank, and on a machine of one GPU, what says by
    its name that it exchanges may.
    """
    rows, world_size, info = rank.activities, rank.columns.world_size, rank.columns.info
    is_seen = world_size is None and not rows.is_comm.any()
    if is_seen and _is_by_itself(rank, steps):
        return none_of(len(rows))
    of_one = len(info.gpus) == 1 or recorded_by(info.kind).tells_world
    if world_size == 1 or (is_seen and of_one):
        return rank.named(lambda name, _: _EXCHANGES.search(name) is not None)
    return ~none_of(len(rows))


def _is_by_itself(rank: RankTimeline, steps: Steps) -> bool:
    """Whether one process works on one GPU, began here and calls nothing by which GPUs reach each
    other.
    """
    reaches = any(map(_REACHES.search, rank.columns.call_names))
    return steps.starting_ns is not None and not rank.beside and not reaches


def _apart(rank: RankTimeline, producers: Producers, unnamed: BoolArray) -> IntArray:
    rows = rank.activities
    compute = rows.is_compute
    here, elsewhere = _own_streams(rows, unnamed, compute & ~unnamed)
    mine = np.flatnonzero(unnamed & here)
    if not len(mine):
        return mine
    held, length_ns = _held(producers, here, elsewhere)[mine], rows.length_ns[mine]
    beside_ns = ns_in(rows.take(mine), instants_of(rows, compute & elsewhere))
    names, name = np.unique(rows.name[mine], return_inverse=True)
    # the first of a recording waits for nothing in it; what compute hides may be compute itself
    mostly = MOST.value * np.bincount(name, minlength=len(names))
    is_apart = np.bincount(name, held, minlength=len(names)) >= mostly
    whole_ns = np.bincount(name, length_ns, minlength=len(names))
    is_apart &= np.bincount(name, beside_ns, minlength=len(names)) <= MOST.value * whole_ns
    return mine[is_apart[name]]


def _own_streams(
    rows: Activities, unnamed: BoolArray, known: BoolArray
) -> tuple[BoolArray, BoolArray]:
    """What runs on streams whose compute is nearly all of unknown class, and what beside such of
    known class.

    Masks of shape (n,). Streams of unknown class that hold nearly all compute are those of the
    model; what packs a message runs on its stream, and is short.
    """
    streams = distinct(rows.stream_id)
    of_row = np.searchsorted(streams, rows.stream_id)
    length_ns = rows.length_ns
    known_ns = sums_of(length_ns * known, of_row, len(streams))
    unknown_ns = sums_of(length_ns * unnamed, of_row, len(streams))
    own = unknown_ns.astype(np.bool_) & (unknown_ns >= NEARLY_ALL.value * (known_ns + unknown_ns))
    main = known_ns.astype(np.bool_) & ~own
    own &= unknown_ns <= NEARLY_ALL.value * (unknown_ns + known_ns[main].sum())
    return own[of_row], main[of_row]


def _held(producers: Producers, here: BoolArray, elsewhere: BoolArray) -> BoolArray:
    """What runs `here` while work `elsewhere` stands: it waited for that, and is waited for; shape
    (n,).

    Several may follow each other, the first of them waiting and the last waited for.
    """
    waits, awaited = np.zeros((2, len(here)), dtype=np.bool_)
    for producer in producers.place.T:
        known = producer >= 0
        waits |= known & here & elsewhere[producer]
        awaited[producer[known & elsewhere & here[producer]]] = True
    mine = np.flatnonzero(here)
    ends = awaited[mine]
    chain = np.cumsum(shifted(ends))  # up to what is waited for
    both = (np.bincount(chain, waits[mine]) > 0) & (np.bincount(chain, ends) > 0)
    held = none_of(len(here))
    held[mine] = both[chain]
    return held


def _kernels(
    rank: RankTimeline, steps: Steps, unnamed: BoolArray, apart: IntArray
) -> tuple[UnknownKernel, ...]:
    """Kernels in the windows that no rule names, longest first; which of them are findings others
    say.

    `frac` is the part of the windows in which such a kernel ran. `count` kernels had time there,
    `mean_ns` is their mean whole duration, `grid` that of the most of them. `unnamed`: those of all
    activities, a mask of shape (n,); `apart`: those that are probably communication.
    """
    names, rows, windows = rank.columns.kernel_names, rank.activities, steps.windows
    untold = no_steps(rank.columns.info.kind)
    inside = unnamed & (ns_in(rows, windows) > 0)
    kernels, likely = [], {*rows.name[apart].tolist()}
    for code in distinct(rows.name[inside]).tolist():
        mine = rows.take(inside & (rows.name == code))
        busy_ns = instants_in(windows, mine).total_ns
        shapes, shape = rank.kernels.shapes, rank.kernels.shape[mine.row]
        grids = grid_numbers(shapes)
        often = listed(shapes.grid[np.argmax(grids == np.bincount(grids[shape]).argmax())])
        kernels.append(
            UnknownKernel(
                name=names[code] if code >= 0 else NO_NAME,
                frac=busy_ns / windows.total_ns,
                busy_ns=busy_ns,
                count=len(mine),
                mean_ns=summed(mine.length_ns) // len(mine),
                grid=no_grid(rank) if NULL in often else often,
                per_step_ns=busy_ns // len(steps.used) if steps.used else untold,
                finding=False,
                probably_communication=code in likely,
            )
        )
    return tuple(sorted(kernels, key=lambda kernel: (-kernel.frac, kernel.name)))
