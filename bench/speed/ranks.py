"""A large run of made-up ranks: `python -m bench.speed.ranks FOLDER COUNT` writes a summary for each.

A healthy run of eight simulated ranks is repeated as replicas, each rank with a clock of its own. Data
parallelism and the reduction over all ranks span the replicas, other groups do not. The device of the first
rank is slow: in each step it comes `LATE_NS` later to that reduction, so that all others wait so long for it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.recorded import Capture, write_ranks
from tests.recordings.ranks import summaries_in
from traces.arrays import BoolArray, IntArray
from traces.names.kernels import COMM_KINDS
from traces.ranks.summaries.codec import SUFFIX, encode
from traces.ranks.summaries.summary import UNKNOWN, Group, KernelTimes, RankSummary

LATE_NS: Final = 2_000_000
REPLICA: Final = 8
_SEED: Final = 21
_SLOWER: Final = 1.25
_DRIFT_PPM: Final = 20
_APART_NS: Final = 1_000_000_000
_OF_ALL: Final = COMM_KINDS.index("all_reduce")
_SPANNING: Final = (_OF_ALL, COMM_KINDS.index("dp_reduce_scatter"), COMM_KINDS.index("dp_all_gather"))


def main(words: Sequence[str]) -> None:
    """Write the summaries."""
    folder, count = Path(words[0]), int(words[1])
    folder.mkdir(parents=True)
    for summary in large_run(count):
        (folder / f"{summary.identity.rank}{SUFFIX}").write_bytes(encode(summary))


def large_run(count: int) -> Iterator[RankSummary]:
    """The summaries of a run of so many ranks, a multiple of eight; the first is late."""
    healthy = _healthy()
    waiting = [_delayed(one, late=False) for one in healthy]
    for rank in range(count):
        one = waiting[rank % REPLICA] if rank else _delayed(healthy[0], late=True)
        yield _copy(one, rank, count)


@cache
def _healthy() -> tuple[RankSummary, ...]:
    """One simulated run, in order of rank."""
    truth = draw_run(_SEED, Cause.NONE, REPLICA)
    with tempfile.TemporaryDirectory() as folder:
        written = write_ranks(truth.done, Path(folder), draw_clocks(truth.run), Capture(mpi=True))
        found = [summary for one in written for summary in summaries_in(one.path)]
    return tuple(sorted(found, key=lambda one: one.identity.rank or 0))


def _delayed(one: RankSummary, *, late: bool) -> RankSummary:
    """The rank in a run whose reduction over all ranks is `LATE_NS` later in each step."""
    rows, steps = one.instances, one.steps
    which = rows.kind == _OF_ALL
    at_ns = np.sort(rows.start_ns[which])

    def later(times_ns: IntArray) -> IntArray:
        return times_ns + LATE_NS * np.searchsorted(at_ns, times_ns, side="left")

    start_ns, end_ns = later(rows.start_ns) + LATE_NS * (which & late), later(rows.end_ns)
    after = LATE_NS * (_first_since(one, which) | (which & late))
    computed_ns = np.where(rows.compute_ns == UNKNOWN, UNKNOWN, rows.compute_ns + after * late)
    exposed_ns = rows.exposed_ns + LATE_NS * (which & (not late))
    part = "compute_ns" if late else "exposed_comm_ns"
    start, end = later(steps.start_ns), later(steps.end_ns)
    longer = (end - start) - (steps.end_ns - steps.start_ns)
    return replace(
        one,
        steps=replace(steps, start_ns=start, end_ns=end, **{part: getattr(steps, part) + longer}),
        instances=replace(
            rows, start_ns=start_ns, end_ns=end_ns, exposed_ns=exposed_ns, compute_ns=computed_ns
        ),
        kernels=_slower(one.kernels) if late else one.kernels,
    )


def _slower(kernels: KernelTimes) -> KernelTimes:
    median_ns, total_ns = (
        np.rint(times * _SLOWER).astype(np.int64) for times in (kernels.median_ns, kernels.total_ns)
    )
    return replace(kernels, median_ns=median_ns, total_ns=total_ns)


def _first_since(one: RankSummary, which: BoolArray) -> BoolArray:
    """The first collective of each group after each of some others."""
    found = np.zeros(len(which), dtype=np.bool_)
    times = np.cumsum(which)
    for group in range(len(one.groups)):
        rows = np.flatnonzero((one.instances.group == group) & ~which)
        found[rows[1:]] = np.diff(times[rows]) > 0
    return found


def _copy(one: RankSummary, rank: int, count: int) -> RankSummary:
    """The same rank in another replica, on a clock of its own."""
    draw = np.random.default_rng(rank)
    offset_ns, ppm = int(draw.integers(-_APART_NS, _APART_NS)), draw.uniform(-_DRIFT_PPM, _DRIFT_PPM)

    def shown(times_ns: IntArray) -> IntArray:
        result: IntArray = times_ns + offset_ns + np.rint(times_ns * (ppm * 1e-6)).astype(np.int64)
        return result

    rows, steps = one.instances, one.steps
    replica, replicas = rank // REPLICA, count // REPLICA
    return replace(
        one,
        identity=replace(
            one.identity, trace=f"{rank}.sqlite", rank=rank, world_size=count, clock=rank, recording=rank
        ),
        groups=tuple(
            _group(group, replica, replicas, bool(np.isin(rows.kind[rows.group == number], _SPANNING).all()))
            for number, group in enumerate(one.groups)
        ),
        steps=replace(steps, start_ns=shown(steps.start_ns), end_ns=shown(steps.end_ns)),
        instances=replace(rows, start_ns=shown(rows.start_ns), end_ns=shown(rows.end_ns)),
    )


def _group(group: Group, replica: int, replicas: int, spans: bool) -> Group:
    size, own = group.size or 0, group.own or 0
    if spans:
        return replace(group, size=size * replicas, own=own + replica * size)
    return replace(group, key=(group.key + replica * 7919) % (1 << 62))


if __name__ == "__main__":
    main(sys.argv[1:])
