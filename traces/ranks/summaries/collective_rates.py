"""Bandwidth of collectives whose sizes are recorded, as nccl-tests define it (doc/PERFORMANCE.md).

The size is that of all ranks together for a gather and a scatter. Algorithm bandwidth is size over
time; bus bandwidth is that times what each link carries of the size: 2 (n - 1) / n of an
all-reduce, (n - 1) / n of a gather, a scatter and an all-to-all, all of a broadcast. Four ranks
that reduce 1000 bytes in 1000 ns: 1 GB/s, 1.5 GB/s on the bus.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from traces.arrays import BoolArray, summed
from traces.cures import cure
from traces.groups import group_of
from traces.intervals import Spans
from traces.limits import Limit
from traces.missing import Missing, OrMissing, gap
from traces.names.gpus import link_rate
from traces.ranks.summaries.summary import (
    GroupSource,
    Instances,
    Operation,
    RankSummary,
    kinds_of,
    of_source,
    sizes_of,
)
from traces.resolve.resolution import PAYLOAD_KINDS
from traces.sections.rates import CollectiveName, CollectiveRate
from traces.timeline import RankTimeline

DOMAIN: Final = Limit(
    8, "ranks", "ours: a larger group leaves the eight GPUs that share NVLinks in most machines"
)
_NAMES: Final[Mapping[Operation, CollectiveName]] = {
    Operation.EXCHANGE: "all_to_all",
    Operation.ALL_REDUCE: "all_reduce",
    Operation.ALL_GATHER: "all_gather",
    Operation.REDUCE_SCATTER: "reduce_scatter",
    Operation.BROADCAST: "broadcast",
}
_AMONG_ALL: Final = kinds_of(*PAYLOAD_KINDS, "cp")
"""Kinds whose exchanges go from each rank to each other one; the others may be messages."""


def measure_collectives(
    rank: RankTimeline, windows: Spans, summary: RankSummary
) -> tuple[CollectiveRate, ...] | Missing:
    """Those that start in the windows, by operation and size of the group, the longest first."""
    link = link_rate(rank.gpu.name if rank.gpu else None)
    rows, how = summary.instances, cure("payloads", rank.columns.info.kind)
    inside = windows.hold(rows.start_ns)
    if not inside.any():
        return ()
    sizes = sizes_of(summary.groups)[rows.group]
    known = inside & _single(summary) & (rows.size_bytes > 0) & (sizes > 1) & (rows.length_ns > 0)
    rates = []
    for operation, name in _NAMES.items():
        of_one = known & (rows.operation == operation)
        for count in sorted(set(sizes[of_one].tolist())):
            rates.append(_rate(name, count, rows.take(of_one & (sizes == count)), link))
    return tuple(sorted(rates, key=lambda rate: -rate.work_ns)) or gap(
        "sizes of collectives and of their groups were not recorded", how
    )


def _single(summary: RankSummary) -> BoolArray:
    """Instances that are one kernel each, and no messages between two."""
    instances = summary.instances
    kernels = group_of(instances.group, instances.sequence)
    of_peers = of_source(GroupSource.PEER, summary.groups)[instances.group]
    exchanges = (instances.operation == Operation.EXCHANGE) & ~np.isin(instances.kind, _AMONG_ALL)
    return (np.bincount(kernels)[kernels] == 1) & ~of_peers & ~exchanges


def _rate(name: CollectiveName, count: int, rows: Instances, link: float | None) -> CollectiveRate:
    size_bytes = rows.size_bytes * (count if name == "all_gather" else 1)
    total, work_ns, carried = summed(size_bytes), summed(rows.length_ns), bus_share(name, count)
    fastest = float((size_bytes / rows.length_ns).max()) * carried
    return CollectiveRate(
        collective=name,
        rank_count=count,
        count=len(rows),
        size_bytes=total,
        work_ns=work_ns,
        algorithm_gb_per_s_at_least=total / work_ns,
        bus_gb_per_s_at_least=total / work_ns * carried,
        fastest_bus_gb_per_s=fastest,
        link_frac=_of_link(fastest, count, link),
    )


def bus_share(name: CollectiveName, count: int) -> float:
    """What each link carries of the size, among so many ranks."""
    if name == "broadcast":
        return 1.0
    return (2 if name == "all_reduce" else 1) * (count - 1) / count


def _of_link(bus: float, count: int, link: float | None) -> OrMissing[float]:
    if count > DOMAIN.value:
        return gap(
            "the group is larger than most NVLink domains: its slowest link is not known", "none"
        )
    if link is None:
        return gap("the NVLink rate of this GPU is not known", "name the GPU with --gpu-model")
    return bus / link
