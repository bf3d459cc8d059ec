"""Start-up in a recording: time that the profiler and initialisation take is no part of a steady
step.

What it is: time without compute because the profiler worked or libraries were initialised (modules
loaded, kernels compiled). How we tell: by the account. Above the limit it is a fault of the
recording, said first, and walls are judged on the rest of the windows. What it is not: a wall, for
a run pays for it once.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from traces.account.account import Account
from traces.frozen import frozen
from traces.limits import HALF_A_WALL, MOST, NEARLY_ALL
from traces.measurements import RankMeasurements
from traces.replay.proofs import Cost

CAUSES: Final = ("profiler", "lazy_init")
"""Causes of a late launch that only a recording's start has, or the profiler itself."""


@frozen
class Start:
    """What is left out of one rank's windows: all of it, and of that the time in which the host
    initialised; 0 where it is below the limit, or there is no account.

    `busy_ns`: how long the GPU works in the windows.
    """

    window_ns: int
    busy_ns: int
    ns: int = 0
    loading_ns: int = 0

    @property
    def judged_ns(self) -> int:
        """The part of the windows that walls are judged on."""
        return max(1, self.window_ns - self.ns)

    def without(self, cost: Cost) -> Cost:
        """The host's cost less initialisation, where that is left out; the profiler's work is not
        in it.
        """
        if not self.loading_ns or not cost.ns:
            return cost
        alone_ns = cost.by_kind_ns.get("lazy_init", 0) if cost.by_kind_ns else self.loading_ns
        ns = max(0, cost.ns - min(self.loading_ns, alone_ns))
        kinds = {
            kind: min(of_kind, ns)
            for kind, of_kind in cost.by_kind_ns.items()
            if kind != "lazy_init"
        }
        step_ns = tuple(length * ns // cost.ns for length in cost.step_ns)
        return replace(cost, ns=ns, by_kind_ns=kinds, step_ns=step_ns)


def start_of(rank: RankMeasurements) -> Start:
    starved = rank.account.launch_starved_ns if isinstance(rank.account, Account) else {}
    window_ns, ns = rank.budget.window_ns, sum(starved.get(cause, 0) for cause in CAUSES)
    none = Start(window_ns, window_ns - rank.budget.idle_ns)
    if ns <= HALF_A_WALL.value * window_ns:
        return none
    return replace(none, ns=ns, loading_ns=starved.get("lazy_init", 0))


@frozen
class Startup:
    """Profiler and start-up time of the ranks that have too much of it, its part of all windows,
    and the part of the rest in which GPUs work.
    """

    ns: int
    frac: float
    busy_frac_of_rest: float

    @property
    def leaves_too_little(self) -> bool:
        """Whether no wall can be judged by the rest: it is short, and no steady work."""
        return self.frac > NEARLY_ALL.value and self.busy_frac_of_rest < MOST.value


def startup_of(starts: Sequence[Start]) -> Startup | None:
    """Over all ranks; None where no rank has more than the limit."""
    ns = window_ns = rest_ns = busy_ns = 0
    for start in starts:
        ns += start.ns
        window_ns += start.window_ns
        rest_ns += start.judged_ns
        busy_ns += start.busy_ns
    if ns:
        return Startup(ns, ns / window_ns, busy_ns / rest_ns)
    return None
