"""A whole node that is slow, across stages of a pipeline: kernels and hosts of all stages do what is alike.

Ranks are held beside ranks of the same stage first. A node may hold the ends of a pipeline, of which nothing
elsewhere does the same work; but their layers have the same kernels, and their hosts launch alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray
from traces.limits import Limit
from traces.ranks.late import COST, DEVICE, HOST, LINK, Suspicion
from traces.ranks.side_by_side import Alike, Grid, device_factors, excess, ratio
from traces.ranks.summary import RankSummary
from traces.ranks.waits import Links
from traces.sections.cause import Cause

ALIKE: Final = Limit(
    0.5,
    "of what the slowest rank's transfers take longer",
    "ours: a NIC slows its ranks alike; peers of one slow rank send it a third of their data or less",
)
_CAUSES: Final = {Cause.SLOW_DEVICE: DEVICE.value, Cause.SLOW_HOST: HOST.value}


@dataclass(frozen=True, slots=True)
class Across:
    """Each rank beside all others of the run, shape (ranks,): how many times as long its kernels take, and
    as much time lies between its launches; and what its GPU waits more for its host in a mean step.
    `nodes`: a number of each rank's. Kernels of one stage are held side by side already: there `device` is
    NaN.
    """

    device: FloatArray
    pace: FloatArray
    host_ns: FloatArray
    nodes: IntArray

    def times(self, cause: Cause) -> FloatArray:
        return self.device if cause is Cause.SLOW_DEVICE else self.pace

    def slow(self, cause: Cause) -> BoolArray:
        result: BoolArray = np.nan_to_num(self.times(cause), nan=1.0) >= _CAUSES[cause]
        return result


def across(
    summaries: Sequence[RankSummary], grid: Grid, alike: Sequence[Alike], nodes: IntArray
) -> Across | None:
    """Hold all ranks side by side; None where nodes are not known, or there is one."""
    if not len(summaries) or (nodes == nodes[0]).all() or not grid.step_count:
        return None
    every = (Alike(alike[0].fingerprint, tuple(range(len(summaries)))),)
    with np.errstate(invalid="ignore"):
        told = ~np.isnan(grid.pace_ns).all(axis=1)
        pace = np.full(len(summaries), np.nan)
        pace[told] = np.nanmedian(grid.pace_ns[told], axis=1)
    host_ns = np.nan_to_num(excess(np.nan_to_num(grid.host_ns), every)).mean(axis=1)
    of_stages = device_factors(summaries, every) if len(alike) > 1 else np.full(len(summaries), np.nan)
    return Across(
        of_stages,
        ratio(pace, every),
        host_ns,
        nodes,
    )


def whole_node(found: Suspicion, beside: Across | None, grid: Grid, links: Links | None) -> Suspicion:
    """All ranks of a node, where it is those that are slow and no others; else what was found."""
    if beside is not None and links is not None and found.cause is Cause.SLOW_LINK and len(found.places) == 1:
        more = np.nan_to_num(links.factor, nan=1.0) - 1
        slow = more >= max(LINK.value - 1, ALIKE.value * float(more.max()))
        places = _node_of(slow, beside.nodes)
        if set(found.places) < set(places):
            seen = float(links.factor[list(places)].mean())
            return replace(found, places=places, factor=seen, is_nic=True)
    if beside is None or found.cause not in (*_CAUSES, *_MAY_BE) or (found.by_step and found.places):
        return found  # what is slow in some steps is one rank
    for cause in [found.cause] if found.cause in _CAUSES else list(_CAUSES):
        places = _node_of(beside.slow(cause), beside.nodes)
        if not places or not set(found.places) < set(places):
            continue
        mine = list(places)
        times = float(beside.times(cause)[mine].mean())
        device = cause is Cause.SLOW_DEVICE
        cost_ns = _lost_ns(grid, mine, times) if device else float(beside.host_ns[mine].max())
        cost_ns = max(cost_ns, found.cost_ns if found.cause is cause else 0.0)
        if cost_ns >= COST.value * float(np.nanmedian(grid.length_ns)):
            return Suspicion(cause, places, cost_ns, factor=times)
    return found


_MAY_BE: Final = (Cause.NONE, Cause.ROTATING_JITTER)
"""What a slow node that is a stage of its own may seem to be."""


def _node_of(slow: BoolArray, nodes: IntArray) -> tuple[int, ...]:
    """The places of the one node whose ranks are all slow, where no others are."""
    places = np.flatnonzero(slow)
    if not len(places) or (nodes[places] != nodes[places[0]]).any():
        return ()
    whole = np.flatnonzero(nodes == nodes[places[0]])
    return tuple(whole.tolist()) if len(whole) == len(places) > 1 else ()


def _lost_ns(grid: Grid, places: list[int], times: float) -> float:
    compute_ns = np.nanmean(np.where(np.isnan(grid.compute_ns), 0.0, grid.compute_ns)[places], axis=1)
    return float(compute_ns.max() * (1 - 1 / times))


def nodes_of(used: Sequence[RankSummary]) -> IntArray:
    """The first rank of each one's node, by its device; all on one where ranks have no numbers."""
    ranks = [one.identity.rank for one in used]
    known = None not in ranks
    return np.array(
        [(rank or 0) - one.identity.device if known else 0 for rank, one in zip(ranks, used, strict=True)]
    )
