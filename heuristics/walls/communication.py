"""The communication wall: the step waits for data of other GPUs.

What is removed to measure it: communication takes no GPU time; its launches stay. How we tell: by replay, so
communication that runs under compute, or behind a host that is later still, costs nothing. Its kind is the
kind whose absence alone would win most: expert all-to-all, then data, tensor, pipeline, context parallelism.

What it is not: the sum of communication kernels, nor exposed time (the host may be the limit behind it, and
compute beside it may be slowed), nor bandwidth: from one rank waiting for a late peer and moving data look
the same. Where waits that no edge explains could make it a wall, it is not clear: where events are not
recorded, those are mostly waits for communication (in simulated runs the true cost was the replayed one plus
their share).
References: Megatron-Bridge, skill nsys-analysis (exposed is not blocking; ceilings, not forecasts).
"""

from collections.abc import Sequence
from dataclasses import replace

from heuristics.figures.figures import Figures
from heuristics.result.judged import Evidence, Wall
from heuristics.walls.price import WALL, Price, Unpriced, at_most_frac, judged, price, shown_frac
from traces.cures import cure
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.spelling import percent


def judge(ranks: Sequence[Figures], told: Price | Unpriced) -> Wall:
    """Judge the communication of a run's ranks (at least one)."""
    return judged("communication", told, ranks, [*_context(ranks), *_longest(ranks)])


def measured(measurements: Sequence[RankMeasurements]) -> Price | Unpriced:
    """Its price by replay, which may be more where waits that no edge explains could make it a wall."""
    told = price(measurements, "communication")
    unexplained = max(_unexplained_fracs(measurements), default=0.0)
    if isinstance(told, Unpriced) or not told.frac < WALL.value <= told.frac + unexplained:
        return told
    reason = f"up to {percent(unexplained)} of the window are waits that no edge explains, most likely of it"
    how = cure("events", measurements[0].kind)
    most = at_most_frac(measurements, "communication", proofs_hold=False)
    return replace(told, at_least=Missing("replay", reason, how), at_most_frac=most)


def _unexplained_fracs(measurements: Sequence[RankMeasurements]) -> list[float]:
    """How much of each rank's window only waits without a known cause account for."""
    costs = [rank.costs for rank in measurements if not isinstance(rank.costs, Missing)]
    return [one.proofs.residual_free_error_frac for one in costs if one.refused is None]


def _context(ranks: Sequence[Figures]) -> list[Evidence]:
    """Exposed, blocking and hidden beside the cost, over all ranks that tell communication."""
    told = [rank for rank in ranks if rank.comm_known]
    found = shown_frac(
        "exposed_comm_frac",
        told,
        lambda rank: rank.exposed_comm_ns,
        "less may be saved, as the host may be late as well; more where it slows compute",
    )
    if all(rank.blocking_ns is not None for rank in told):
        why = "what a fix could recover while the host stays ahead"
        found += shown_frac("blocking_comm_frac", told, lambda rank: rank.blocked_ns, why)
    return found + shown_frac(
        "hidden_comm_frac", told, lambda rank: rank.hidden_comm_ns, "runs under compute"
    )


def _longest(ranks: Sequence[Figures]) -> list[Evidence]:
    spans = [(span, rank.place) for rank in ranks for span in rank.a2a_spans if rank.comm_known]
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
            known(span.step),
            place,
        )
    ]
