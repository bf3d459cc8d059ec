"""Whose times a page shows, and by what they are divided: ms per step of one rank."""

from dataclasses import dataclass
from typing import Final

from heuristics.result.result import Result
from reports.content.names import gpu_of
from traces.missing import known
from traces.sections.rank import Rank, Steps
from traces.spelling import milliseconds


@dataclass(frozen=True, slots=True)
class Scale:
    """One rank and its number of used steps; without steps times are of the whole window."""

    rank: Rank
    step_count: int

    def ms(self, time_ns: float) -> str:
        """A total as ms per step, without its unit."""
        return milliseconds(time_ns / max(1, self.step_count))

    @property
    def unit(self) -> str:
        """The unit of `ms`."""
        return f"ms/{self.whole}" if self.step_count else "ms"

    @property
    def whole(self) -> str:
        """What shares are of."""
        return unit_of(self.rank.steps) if self.step_count else "window"

    @property
    def length(self) -> str:
        """The mean step, or the window, with its unit."""
        return f"{self.ms(self.rank.budget_ns.window)} ms"


_UNITS: Final = {"step": "step", "block": "block", "replay": "graph replay", "window": "window"}


def unit_of(steps: Steps) -> str:
    """What the stretches of a rank are called."""
    return _UNITS[steps.unit]


def scale_of(rank: Rank) -> Scale:
    """The scale of one rank."""
    return Scale(rank, len(rank.steps.used))


def telling_rank(result: Result) -> Rank:
    """The rank whose details are shown: the one that computes for the smallest part of its time."""
    return min(result.ranks, key=lambda rank: rank.budget_frac.compute)


def per_step_ns(result: Result, total_ns: float) -> float:
    """A total over all ranks, of one step of one rank."""
    return total_ns / sum(max(1, len(rank.steps.used)) for rank in result.ranks)


def gpus_of(rank: Rank, count: int) -> str:
    """Several GPUs of the model of one rank's."""
    return f"{count} GPUs, model not recorded" if known(rank.gpu) is None else f"{count} x {gpu_of(rank)}"
