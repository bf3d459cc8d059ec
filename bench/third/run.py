"""A run with its handicaps and the same without: what is true of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from bench.third.engine import Engine, Transfer, waits_of
from bench.third.handicaps import Hand, Kind, draw_hands, least_sizes, programs, rates, work_us
from bench.third.program import Do, Operation
from bench.third.world import World, draw_world

LEAST_EFFECT: Final = 0.05
_TRIES: Final = 12


@dataclass(frozen=True)
class Done:
    """Operations by rank with their times, and every collective."""

    operations: tuple[tuple[Operation, ...], ...]
    transfers: tuple[Transfer, ...]
    waits: tuple[tuple[int, int, str, float], ...]
    """Step, who arrived last, kernel, and what all waited, of each collective."""

    def ends(self, step: int) -> float:
        """When a step's last work ended, of a mean rank."""
        return fmean(max(one.end for one in each if one.step == step) for each in self.operations)

    def step_us(self) -> float:
        """A mean step of those that are recorded."""
        last = max(one.step for one in self.operations[0])
        return (self.ends(last) - self.ends(0)) / last


@dataclass(frozen=True)
class Truth:
    """A run. `base` is the same without its handicaps; `without`: without each of them alone."""

    world: World
    kind: Kind
    hands: tuple[Hand, ...]
    done: Done
    base: Done
    without: tuple[Done, ...]

    @property
    def saved_frac(self) -> float:
        """What the whole repair saves of a step."""
        return 1 - self.base.step_us() / self.done.step_us()

    @property
    def saved_of_each(self) -> tuple[float, ...]:
        """What the repair of each handicap alone saves."""
        return tuple(1 - one.step_us() / self.done.step_us() for one in self.without)


def simulate(world: World, hands: Sequence[Hand]) -> Done:
    """Run all ranks of a world."""
    written = programs(world, hands)
    engine = Engine(world, written, rates(world, hands), lambda rank, one: work_us(hands, rank, one))
    waits = tuple(
        (next(iter(one.parts.values())).step, last, next(iter(one.parts.values())).kernel, us)
        for one, last, us in waits_of(engine.transfers)
    )
    return Done(tuple(map(tuple, written)), tuple(engine.transfers.values()), waits)


def draw_truth(seed: int, kind: Kind) -> Truth:
    """A run of this kind, in a world of its own, whose handicap matters.

    Raises ValueError where it does not however strong it is.
    """
    world = draw_world(100 * seed + tuple(Kind).index(kind), *least_sizes(kind))
    base = simulate(world, ())
    hands = draw_hands(world, kind)
    for _ in range(_TRIES):
        done = simulate(world, hands) if hands else base
        if not hands or 1 - base.step_us() / done.step_us() >= LEAST_EFFECT:
            break
        hands = tuple(one.stronger() for one in hands)
    else:
        raise ValueError(f"{kind.value} of seed {seed} does not matter however strong it is")
    each = tuple(
        simulate(world, [other for other in hands if other is not one]) for one in hands[1:] and hands
    )
    return Truth(world, kind, hands, done, base, each or (base,))


def launches(operations: Sequence[Operation]) -> list[Operation]:
    """Those that put work on the GPU."""
    return [one for one in operations if one.do is Do.LAUNCH]
