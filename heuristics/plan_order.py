"""A replay's word on the order of fixes: what gains little comes after what is known to gain more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from traces.limits import Limit

if TYPE_CHECKING:
    from heuristics.plan import Planned

LITTLE: Final = Limit(
    0.01, "fraction of the windows", "ours: nobody tries first what a replay says gains under a point"
)


def by_gain(fixes: Sequence[Planned]) -> list[Planned]:
    """Fixes of one wall in their order, those a replay gives least after the others.

    None stands before one that gains more at least, nor one of little before one that may gain more, unless
    that one waits for it.
    """
    result: list[Planned] = []
    for one in fixes:
        place = next((at for at, other in enumerate(result) if _gains_less(other, one)), len(result))
        cures = {need.cure for need in one.preconditions if need.state != "met"}
        after = max((at + 1 for at, other in enumerate(result) if other.fix.id in cures), default=0)
        result.insert(max(place, after), one)
    return result


def little_last(fixes: Sequence[Planned]) -> list[Planned]:
    """Fixes of all walls in their order, those of little behind the others, unless another waits for one."""
    cures = {need.cure for one in fixes for need in one.preconditions if need.state != "met"}
    little = [one for one in fixes if (one.ceiling_frac or 1.0) < LITTLE.value and one.fix.id not in cures]
    return [one for one in fixes if one not in little] + little


def _gains_less(one: Planned, other: Planned) -> bool:
    """Whether one gains at most less than the other at least, or little where the other may gain more."""
    most, others = one.ceiling_frac, other.ceiling_frac
    if most is None or others is None:
        return False
    return most < (other.low_frac or 0.0) or most < LITTLE.value <= others
