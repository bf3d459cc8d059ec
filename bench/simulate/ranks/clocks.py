"""Clocks that recordings are made by: each host's own, each file from its own session's start on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bench.simulate.draws import between, uniforms
from bench.simulate.ranks.described import RanksRun

_OFFSET_NS: Final = 3_000_000_000
"""Clocks of hosts are up to so much apart; NTP keeps them closer, mostly."""
_DRIFT_PPM: Final = 100.0
_SESSION_NS: Final = 2_000_000_000
"""Profilers of one run start within so much of each other."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A host's clock beside the true one."""

    offset_ns: int = 0
    drift_ppm: float = 0.0

    def at(self, true_ns: int) -> int:
        """What this clock shows."""
        return round(true_ns * (1 + self.drift_ppm * 1e-6)) + self.offset_ns


def draw_clocks(run: RanksRun) -> tuple[Clock, ...]:
    """A clock for each host; the first has no offset."""
    clocks = []
    for host in range(run.layout.host(run.layout.world_size - 1) + 1):
        offset, drift, *_ = uniforms(f"{run.seed}/clock/{host}")
        offset_ns = round(between(offset, -_OFFSET_NS, _OFFSET_NS)) if host else 0
        clocks.append(Clock(offset_ns, round(between(drift, -_DRIFT_PPM, _DRIFT_PPM), 3)))
    return tuple(clocks)


def session_ns(run: RanksRun, rank: int) -> int:
    """When the session of a rank's profiler began, in true time: never after the rank's program."""
    return -round(_SESSION_NS * uniforms(f"{run.seed}/session/{rank}")[0])
