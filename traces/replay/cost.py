"""What one overhead, or a change, costs a rank: a ceiling from replay, in ns of the windows."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """One overhead's ceiling.

    `by_kind_ns`: each kind taken away alone, so they need not add up; kinds that give nothing are left out.
    `step_ns`: of each replayed step in order, times what it stands for (`traces.steps.sample`); empty where
    there are no steps.
    """

    ns: int
    by_kind_ns: Mapping[str, int]
    step_ns: tuple[int, ...]

    def of_kinds_ns(self, kinds: tuple[str, ...]) -> int:
        """What some of its kinds cost together, at most all of it; all of it where it was not split."""
        if not self.by_kind_ns:
            return self.ns
        return min(self.ns, sum(ns for kind, ns in self.by_kind_ns.items() if kind in kinds))
