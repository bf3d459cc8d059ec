"""Start-up in a recording: time that the profiler and initialisation take is no part of a steady step.

What it is: time without compute because the profiler worked or libraries were initialised (modules loaded,
kernels compiled). How we tell: by the account. Above the limit it is a fault of the recording, said first,
and walls are judged on the rest of the windows. What it is not: a wall, for a run pays for it once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from traces.account.account import Account
from traces.limits import Limit
from traces.measurements import RankMeasurements
from traces.replay.proofs import Cost

STARTUP: Final = Limit(
    0.05, "fraction of the windows", "ours: half a wall; a steady recording has hardly any"
)
CAUSES: Final = ("profiler", "lazy_init")
"""Causes of a late launch that only a recording's start has, or the profiler itself."""


MOSTLY: Final = Limit(
    0.90, "fraction of the windows", "ours: by what a tenth of a recording shows nobody should judge a run"
)


@dataclass(frozen=True, slots=True)
class Startup:
    """Profiler and start-up time of the ranks that have too much of it, and its part of all windows."""

    ns: int
    frac: float

    @property
    def is_nearly_all(self) -> bool:
        """Whether too little else was recorded to judge any wall by it."""
        return self.frac > MOSTLY.value


def find_startup(measurements: Sequence[RankMeasurements]) -> Startup | None:
    """Over all ranks; None where no rank has more than the limit."""
    ns = sum(startup_ns(rank) for rank in measurements)
    if not ns:
        return None
    window_ns = sum(rank.budget.window_ns for rank in measurements)
    return Startup(ns, ns / window_ns)


def startup_ns(rank: RankMeasurements) -> int:
    """Profiler and start-up time that is left out of one rank's windows; 0 where it is below the limit.

    And where there is no account.
    """
    if not isinstance(rank.account, Account):
        return 0
    ns = sum(rank.account.launch_starved_ns.get(cause, 0) for cause in CAUSES)
    return ns if ns > STARTUP.value * rank.budget.window_ns else 0


def judged_ns(rank: RankMeasurements) -> int:
    """The part of a rank's windows that walls are judged on."""
    return max(1, rank.budget.window_ns - startup_ns(rank))


def initialising_ns(rank: RankMeasurements) -> int:
    """The part of the start-up that is left out in which the host initialised."""
    if not startup_ns(rank) or not isinstance(rank.account, Account):
        return 0
    return rank.account.launch_starved_ns.get("lazy_init", 0)


def without_startup(rank: RankMeasurements, cost: Cost) -> Cost:
    """The host's cost less initialisation, where that is left out; the profiler's work is not in it."""
    if not (loading_ns := initialising_ns(rank)) or not cost.ns:
        return cost
    alone_ns = cost.by_kind_ns.get("lazy_init", 0) if cost.by_kind_ns else loading_ns
    ns = max(0, cost.ns - min(loading_ns, alone_ns))
    kinds = {kind: min(one, ns) for kind, one in cost.by_kind_ns.items() if kind != "lazy_init"}
    return replace(cost, ns=ns, by_kind_ns=kinds, step_ns=tuple(one * ns // cost.ns for one in cost.step_ns))
