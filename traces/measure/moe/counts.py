"""Passes through MoE layers counted by step."""

import numpy as np

from traces.measure.ledger_steps import borders_of
from traces.measure.moe.lanes import Lanes
from traces.measure.moe.layers import heads_of, steps_of
from traces.measure.moe.pass_count import PassCount
from traces.measure.moe.passes import Kind, Passes
from traces.resolve.resolution import UNTOLD
from traces.steps.found import Steps
from traces.timeline import RankTimeline


def counted(rank: RankTimeline, steps: Steps, lanes: Lanes, passes: Passes) -> tuple[PassCount, ...] | None:
    """Passes of each used step; None without steps or passes, and where one in them does not close."""
    if not steps.used or not len(passes):
        return None
    step = steps_of(rank, borders_of(steps), heads_of(lanes, passes))
    inside = step != UNTOLD
    if (inside & (~passes.whole | (passes.kind == UNTOLD))).any():
        return None
    count = np.zeros((len(steps.used), len(Kind)), dtype=np.int64)
    np.add.at(count, (step[inside], passes.kind[inside]), 1)
    return tuple(PassCount(*row) for row in count.tolist())
