"""The reference for clocks beside the clocks that runs of many ranks are recorded by."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from bench.simulate.ranks.clocks import Clock, draw_clocks
from bench.simulate.ranks.clocks_by_definition import earliest_ends, fit_clocks
from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.happened import Instance, RanksDone
from bench.simulate.ranks.programs import RINGS

CAUSES = (Cause.NONE, Cause.SLOW_DEVICE, Cause.SLOW_LINK, Cause.ROUTING_IMBALANCE)
SEED = 7202


@lru_cache(maxsize=1)
def done(cause: Cause) -> RanksDone:
    return draw_run(SEED, cause, step_count=2).done


def furthest_ns(ran: RanksDone, ranks_per_host: int, instances: list[Instance]) -> int:
    """How far from the first clock any time of the run lies at most, on any clock that was fitted to it."""
    layout = replace(ran.run.layout, ranks_per_host=ranks_per_host)
    clocks = draw_clocks(replace(ran.run, layout=layout))
    host_of = {rank: layout.host(rank) for rank in range(layout.world_size)}
    ends_ns = {
        (one.group, one.name, one.sequence): {
            rank: clocks[host_of[rank]].at(part.end_ns) for rank, part in one.parts.items()
        }
        for one in instances
    }
    fitted = fit_clocks(earliest_ends(ends_ns, host_of))
    moments_ns = range(0, ran.whole_ns, ran.whole_ns // 50)
    first_ns = at(clocks[0], moments_ns)
    apart_ns = 0
    for host, clock in fitted.items():
        assert clock is not None
        apart_ns = max(apart_ns, np.abs(clock.on_first_ns(at(clocks[host], moments_ns)) - first_ns).max())
    return int(apart_ns)


def at(clock: Clock, moments_ns: range) -> np.ndarray:
    return np.array([clock.at(moment_ns) for moment_ns in moments_ns], np.int64)


@pytest.mark.parametrize("cause", CAUSES)
def test_rings_tell_the_clock_of_every_rank_to_half_a_us(cause: Cause) -> None:
    rings = [one for one in done(cause).instances() if one.kernel in RINGS]
    assert furthest_ns(done(cause), 1, rings) < 500


@pytest.mark.parametrize("cause", CAUSES)
def test_the_earliest_end_on_a_host_tells_its_clock_whatever_the_operation(cause: Cause) -> None:
    assert furthest_ns(done(cause), 2, done(cause).instances()) < 100


def test_all_ends_of_a_rank_with_a_slow_link_make_its_clock_seem_ahead() -> None:
    ran = done(Cause.SLOW_LINK)
    assert furthest_ns(ran, 1, ran.instances()) > 20_000
