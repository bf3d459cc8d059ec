"""The communication wall: the step waits for data of other GPUs.

What is removed to measure it: communication takes no GPU time; its launches stay. How we tell: by replay, so
communication that runs under compute, or behind a host that is later still, costs nothing. Its kind is the
kind whose absence alone would win most: expert all-to-all, then data, tensor, pipeline, context parallelism.

What it is not: the sum of communication kernels, nor exposed time (an upper bound: the host may be the limit
behind it), nor bandwidth: from one rank waiting for a late peer and moving data look the same. Where waits
that no edge explains could make it a wall, it is not clear: where events are not recorded, those are mostly
waits for communication (in simulated runs the true cost was the replayed one plus their share).
References: Megatron-Bridge, skill nsys-analysis (exposed is not blocking; ceilings, not forecasts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heuristics.walls.price import WALL, at_most_frac, price
from heuristics.walls.wall import Evidence, WallJudgement, judged, unpriced
from traces.account.account import Account
from traces.cures import cure
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing
from traces.names.kinds import COMM_KINDS


def judge(measurements: Sequence[RankMeasurements]) -> WallJudgement:
    """Judge the communication of a run's ranks (at least one)."""
    told = price(measurements, "communication")
    if isinstance(told, Missing):
        return unpriced("communication", told, measurements, _context(measurements))
    unexplained = max(_unexplained_fracs(measurements), default=0.0)
    if told.frac < WALL.value <= told.frac + unexplained:
        reason = f"up to {unexplained:.0%} of the window are waits that no edge explains, most likely of it"
        how = cure("events", measurements[0].kind)
        most = at_most_frac(measurements, "communication", proofs_hold=False)
        told = replace(told, at_least=Missing("replay", reason, how), at_most_frac=most)
    return judged("communication", told, _context(measurements))


def _unexplained_fracs(measurements: Sequence[RankMeasurements]) -> list[float]:
    """How much of each rank's window only waits without a known cause account for."""
    costs = [rank.costs for rank in measurements if not isinstance(rank.costs, Missing)]
    return [one.proofs.residual_free_error_frac for one in costs if one.refused is None]


def _context(measurements: Sequence[RankMeasurements]) -> list[Evidence]:
    """Exposed and blocking beside the cost, over all ranks, and the longest all-to-all of any."""
    ranks = [rank for rank in measurements if rank.communication_told]
    if not ranks:
        return []
    unit, window_ns = "fraction of the windows", sum(rank.budget.window_ns for rank in ranks)
    exposed = sum(rank.budget.exposed_comm_ns for rank in ranks) / window_ns
    hidden = sum(rank.budget.hidden_comm_ns for rank in ranks) / window_ns
    found = [Evidence("exposed_comm_frac", exposed, unit, None, "an upper bound of its cost")]
    accounts = [rank.account for rank in ranks if isinstance(rank.account, Account)]
    if len(accounts) == len(ranks):
        blocking_ns = sum(
            ns for account in accounts for kind, ns in account.blocking_ns.items() if kind in COMM_KINDS
        )
        why = "what a fix could recover while the host stays ahead"
        found.append(Evidence("blocking_comm_frac", blocking_ns / window_ns, unit, None, why))
    found.append(Evidence("hidden_comm_frac", hidden, unit, None, "runs under compute"))
    return found + _longest(measurements)


def _longest(measurements: Sequence[RankMeasurements]) -> list[Evidence]:
    spans = [
        (span, place)
        for place, rank in enumerate(measurements)
        if rank.a2a is not None
        for span in rank.a2a.spans
    ]
    if not spans:
        return []
    span, place = max(spans, key=lambda one: one[0].end_ns - one[0].start_ns)
    return [
        Evidence(
            f"longest_{span.kind}_ns",
            span.end_ns - span.start_ns,
            "ns",
            None,
            "the longest expert all-to-all kernel in the windows",
            span.start_ns,
            span.end_ns,
            span.step,
            place,
        )
    ]
