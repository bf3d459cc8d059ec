"""Whether the first step of a run, longer than the others on its ranks, is a warm-up of theirs.

A rank alone cannot tell: its first step is longer where it warms up, and where it waits for another
one.
"""

from dataclasses import replace

import numpy as np

from traces.limits import MOST
from traces.ranks.summaries.summary import UNKNOWN, FirstStep, RankSummary, Summaries


def without_warm_ups(summaries: Summaries) -> list[RankSummary]:
    """The summaries, in order, without first steps that are a warm-up.

    They are where a rank initialises in it, and where most ranks spend what it takes more outside
    of communication. What is of other ranks in a first step is theirs all the same: a collective
    that one of them counts in no step is in none.
    """
    longer, without, initialises = [], [], False
    for summary in summaries:
        initialises |= summary.first_step is FirstStep.INITIALISES
        if summary.first_step is FirstStep.LONGER:
            longer.append(summary)
            without.append(without_steps(summary, 1))
        else:
            without.append(summary)
    if len(longer) > 1 and not initialises and np.median([*map(_own_frac, longer)]) <= MOST.value:
        return [*summaries]
    return without


def _own_frac(summary: RankSummary) -> float:
    """Of what its first step takes more than the median of the others, the part outside
    communication.
    """
    steps = summary.steps
    lasts_ns = steps.length_ns
    own_ns = lasts_ns - steps.exposed_comm_ns
    more_ns = float(lasts_ns[0] - np.median(lasts_ns[1:]))
    if more_ns > 0:
        return float(own_ns[0] - np.median(own_ns[1:])) / more_ns
    return 1.0


def without_steps(summary: RankSummary, count: int) -> RankSummary:
    """The summary without its first steps, so many, as if it was recorded later."""
    rows, experts = summary.instances, summary.experts
    return replace(
        summary,
        steps=summary.steps.take(np.arange(count, len(summary.steps))),
        instances=replace(rows, step=np.maximum(rows.step - count, UNKNOWN)),
        experts=replace(experts, step=experts.step - count),
        first_step=FirstStep.USUAL,
    )
