"""The host-overhead wall: the GPU waits for the CPU to launch its work.

What is removed to measure it: Python between calls, launch calls, the overhead of synchronising calls,
arrival, garbage collection and data loading take no time; small copies that only feed a synchronising call
go. How we tell: by replay, capped by what the account lays on the host. Allocator calls belong to the memory
wall.

What it is not: time the host spends in cudaStreamSynchronize while the GPU works, nor many launches as such:
a host that is ahead of its GPU costs nothing.
References: Megatron-Bridge, skill nsys-analysis (launch-starved); Megatron-Core's MoE guide (CUDA graphs).
"""

from __future__ import annotations

from collections.abc import Sequence

from heuristics.walls.price import price
from heuristics.walls.wall import Evidence, WallJudgement, judged, unpriced
from traces.account.account import Account
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing


def judge(measurements: Sequence[RankMeasurements]) -> WallJudgement:
    """Judge the host of a run's ranks (at least one)."""
    told = price(measurements, "host_overhead")
    if isinstance(told, Missing):
        return unpriced("host_overhead", told, measurements)
    return judged("host_overhead", told, _context(measurements))


def _context(measurements: Sequence[RankMeasurements]) -> list[Evidence]:
    """What the account lays on the host, over all ranks that have one."""
    told = [(rank, rank.account) for rank in measurements if isinstance(rank.account, Account)]
    unit, window_ns = "fraction of the windows", sum(rank.budget.window_ns for rank, _ in told)
    starved_ns = sum(ns for _, account in told for ns in account.launch_starved_ns.values())
    masked_ns = sum(account.masked_ns for _, account in told)
    why = "no compute ran and none was launched"
    found = [
        Evidence("launch_starved_frac", starved_ns / window_ns, unit, None, why),
        Evidence(
            "masked_frac",
            masked_ns / window_ns,
            unit,
            None,
            "in this part the late kernel also waited for another kernel; a faster host alone would not "
            "recover it",
        ),
    ]
    if graphs := max(rank.detected.graph_share_frac for rank in measurements):
        why = "kernel work inside CUDA graphs, which the host launches at once"
        found.append(Evidence("graph_share_frac", graphs, "fraction of kernel work", None, why))
    return found
