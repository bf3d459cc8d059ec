"""What a cause is: a base run, one change of it with a strength, and the row it is to be found in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean
from typing import Final

from bench.compare_score.sides import Side, simulate
from bench.simulate.knobs import Knobs

Change = Callable[[Side, float], tuple[Side, Side]]
"""(side, strength) -> (base, new): strength 0 is no change, and more of it makes `new` slower."""

_STEPS: Final = 6
_NEAR: Final = 0.02
"""A strength is found when the slowdown is this near to what is asked, as part of it."""
_FIRST: Final = 0.1
_MOST: Final = 1e3
_TRIES: Final = 20
"""Looks between two strengths that lie on both sides: on the line between them, and half way, in turns."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause. `rows`: where it is to stand first; more than one where `because` says why.

    `shape` names the base run, `knobs`; causes of one shape may act at once. `ranges`: what a recording must
    have for the row to be told, empty for any. `most`: the largest part of a step that it can add.
    """

    name: str
    rows: frozenset[str]
    because: str
    shape: str
    knobs: Knobs
    change: Change
    ranges: str = ""
    most: float = 0.3


def times(*knobs: str) -> Change:
    """These knobs, 1 + strength times as large."""

    def change(side: Side, strength: float) -> tuple[Side, Side]:
        scaled = {knob: getattr(side.knobs, knob) * (1 + strength) for knob in knobs}
        return side, replace(side, knobs=replace(side.knobs, **scaled))

    return change


def longer(*kernels: str) -> Change:
    """These kernels, 1 + strength times as long."""

    def change(side: Side, strength: float) -> tuple[Side, Side]:
        factors = tuple((kernel, 1 + strength) for kernel in kernels)
        return side, replace(side, longer=side.longer + factors)

    return change


def from_nothing(knob: str, unit: float, **also: object) -> Change:
    """What the base has none of: a knob at `unit` times the strength, and others with it."""

    def change(side: Side, strength: float) -> tuple[Side, Side]:
        return side, replace(side, knobs=replace(side.knobs, **{knob: unit * strength}, **also))  # type: ignore[arg-type]

    return change


def switched(knob: str, base: object, new: object, size: str, unit: float) -> Change:
    """A switch: `base` on one side, `new` on the other, and on both sides a knob that says what it costs."""

    def change(side: Side, strength: float) -> tuple[Side, Side]:
        both = {size: unit * (1 + strength)}
        return (
            replace(side, knobs=replace(side.knobs, **both, **{knob: base})),  # type: ignore[arg-type]
            replace(side, knobs=replace(side.knobs, **both, **{knob: new})),  # type: ignore[arg-type]
        )

    return change


def strength_for(cause: Cause, side: Side, frac: float, seed: int) -> float:
    """The strength that makes a step longer by this part of it, as near as whole tiles allow.

    Raises ValueError where none does.
    """

    def slowdown(strength: float) -> float:
        base, new = cause.change(side, strength)
        return _mean_step_ns(new, seed) / _mean_step_ns(base, seed) - 1

    low, high, below, above = 0.0, _FIRST, 0.0, slowdown(_FIRST)
    while above < frac * (1 - _NEAR):
        if high > _MOST:
            raise ValueError(f"{cause.name}: a step gets {above:.1%} longer and not {frac:.0%}")
        low, high, below, above = high, high * 2, above, slowdown(high * 2)
    strength, found = high, above
    for turn in range(_TRIES):
        if abs(found - frac) <= _NEAR * frac:
            break
        share = (frac - below) / (above - below) if turn % 2 == 0 else 0.5
        strength = low + (high - low) * share
        found = slowdown(strength)
        if found < frac:
            low, below = strength, found
        else:
            high, above = strength, found
    return strength


@lru_cache(maxsize=64)
def _mean_step_ns(side: Side, seed: int) -> float:
    return fmean(simulate(side, seed, _STEPS).step_ns[1:])
