"""The host-overhead wall: the GPU waits for the CPU to launch its work.

What is removed to measure it: Python between calls, launch calls, the overhead of synchronising calls,
arrival, garbage collection and data loading take no time; small copies that only feed a synchronising call
go. How we tell: by replay, capped by what the account lays on the host. Allocator calls belong to the memory
wall.

What it is not: time the host spends in cudaStreamSynchronize while the GPU works, nor many launches as such:
a host that is ahead of its GPU costs nothing.
References: Megatron-Bridge, skill nsys-analysis (launch-starved); Megatron-Core's MoE guide (CUDA graphs).
"""

from collections.abc import Sequence
from typing import Final

from heuristics.figures.figures import Figures
from heuristics.result.judged import Evidence, Wall
from heuristics.walls.price import Price, Unpriced, judged, price, shown, shown_frac
from traces.limits import Limit
from traces.measurements import RankMeasurements

EXPOSED_INPUT: Final = Limit(
    0.05,
    "fraction of the windows",
    "ours: half a wall; what pinned memory saves of less is lost in the noise",
)


def judge(ranks: Sequence[Figures], told: Price | Unpriced) -> Wall:
    """Judge the host of a run's ranks (at least one)."""
    return judged("host_overhead", told, ranks, _context(ranks))


def measured(measurements: Sequence[RankMeasurements]) -> Price | Unpriced:
    """Its price by replay."""
    return price(measurements, "host_overhead")


def _context(ranks: Sequence[Figures]) -> list[Evidence]:
    """What the account lays on the host, over all ranks that have one."""
    why = "no compute ran and none was launched"
    found = shown_frac("launch_starved_frac", ranks, lambda rank: rank.late_ns, why)
    why = (
        "in this part the late kernel also waited for another kernel; a faster host alone would not "
        "recover it"
    )
    found += shown_frac("masked_frac", ranks, lambda rank: rank.masked_ns, why)
    if graphs := max(rank.observed.graph_frac or 0.0 for rank in ranks):
        why = "kernel work inside CUDA graphs, which the host launches at once"
        found.append(shown("graph_share_frac", graphs, "fraction of kernel work", why))
    return found
