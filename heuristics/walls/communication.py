"""The communication wall: the step waits for data of other GPUs.

What is removed to measure it: communication takes no GPU time; its launches stay. How we tell: by
replay, so communication that runs under compute, or behind a host that is later still, costs
nothing. Its kind is the kind whose absence alone would win most: expert all-to-all, then data,
tensor, pipeline, context parallelism.

Kernels of unknown class may be communication: while they take more than a twentieth of the windows
it is never clear, and costs between nothing and all of their time more.

What it is not: the sum of communication kernels, nor exposed time (the host may be the limit behind
it, and compute beside it may be slowed), nor bandwidth: from one rank waiting for a late peer and
moving data look the same. Where waits that no edge explains could make it a wall, it is not clear:
where events are not recorded, those are mostly waits for communication (in simulated runs the true
cost was the replayed one plus their share). References: Megatron-Bridge, skill nsys-analysis
(exposed is not blocking; ceilings, not forecasts).
"""

from dataclasses import replace

from heuristics.figures.figures import Ranks
from heuristics.result.judged import Evidence, Wall
from heuristics.walls.costs import RunCosts
from heuristics.walls.price import (
    UNNAMED,
    Price,
    Priced,
    Unpriced,
    judged,
    shown_frac,
    unmeasurable,
)
from heuristics.words import say
from traces.cures import cure
from traces.limits import WALL
from traces.missing import Missing, known


def judge(ranks: Ranks, priced: Priced) -> Wall:
    comm = [rank for rank in ranks if rank.comm_known]
    evidence = shown_frac("exposed_comm_frac", comm)
    if all(rank.blocking_ns is not None for rank in comm):
        evidence += shown_frac("blocking_comm_frac", comm)
    evidence += shown_frac("hidden_comm_frac", comm)
    result = judged("communication", priced, ranks, [*evidence, *_longest(comm)])
    doubt = priced.why if isinstance(priced, Unpriced) else priced.at_least
    if result.outcome != "clear" or doubt is None or not any(rank.unnamed_ns for rank in ranks):
        return result
    return unmeasurable("communication", doubt, result.evidence, priced.at_most_frac)


def doubted(costs: RunCosts, priced: Price) -> Price:
    """It may be more where waits that no edge explains could make it a wall."""
    is_named = priced.at_least is None or priced.at_least.path != UNNAMED
    if not (is_named and priced.frac < WALL.value <= priced.frac + costs.error_frac):
        return priced
    reason = say("walls.unexplained-communication", part_frac=costs.error_frac)
    why = Missing("replay", reason, cure("events", costs.recorder))
    return replace(
        priced, at_least=why, at_most_frac=costs.at_most_frac("communication", proofs_hold=False)
    )


def _longest(ranks: Ranks) -> list[Evidence]:
    spans = [(span, rank.place) for rank in ranks for span in rank.a2a_spans]
    if not spans:
        return []
    span, place = max(spans, key=lambda item: item[0].end_ns - item[0].start_ns)
    ns, step, because = span.end_ns - span.start_ns, known(span.step), say("walls.longest-a2a")
    measure = f"longest_{span.kind}_ns"
    return [Evidence(measure, ns, "ns", None, because, span.start_ns, span.end_ns, step, place)]
