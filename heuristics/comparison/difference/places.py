"""Places of a step: its sequence with loops written out, and how alike two places are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np

from heuristics.comparison.difference.alignment import Scores
from traces.limits import Limit
from traces.names.kernels import classify_kernel
from traces.patterns import compiled
from traces.sections.tables import Kind
from traces.sections.tables import Sequence as Recorded

PLACES: Final = Limit(
    2_000,
    "places a side",
    "ours: aligned in a tenth of a second; of more, fewer passes of each loop are, as many on both sides",
)
_CAPS: Final = (1 << 30, 64, 32, 16, 8, 4, 2, 1)
"""How many passes of a loop are aligned: the most for which both sides have room."""
SAME, ALIKE, RELATED, FAMILY = 6, 4, 3, 2
"""What a pair of places is worth: the same kernel, one of other types, its subclass, its class."""
_TYPES: Final = compiled(
    r"c10::\w+|__nv_\w+|[bB][fF]loat16|\d+"
    r"|\b(?:float|double|half|bool|int|long|unsigned|signed|short|char|bf|fp|f)\b"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Alike activities that follow each other in one pass of the loops around them: how many, and their work.

    Of a loop that is cut to fewer passes each stands for several.
    """

    kind: int
    count: Fraction
    work_ns: Fraction


def places_of(base: Recorded, new: Recorded) -> tuple[list[Place], list[Place]]:
    """Both sides, with as many passes of a loop as both have room for; no work is lost."""
    for cap in _CAPS:
        sides = [_written_out(one, cap, int(PLACES.value)) for one in (base, new)]
        if None not in sides:
            break
    runs = [_cut(one, cap) if run is None else run for one, run in zip((base, new), sides, strict=True)]
    return _places(base, runs[0]), _places(new, runs[1])


def _written_out(one: Recorded, cap: int, most: int) -> list[int] | None:
    """The runs in order, each as often as it is passed; None where that is more than `most`."""
    passes = _passes(one, cap)
    return _cut(one, cap) if sum(passes) <= most else None


def _passes(one: Recorded, cap: int) -> list[int]:
    """How often each run is passed where no loop has more than `cap` passes."""
    passes = [1] * len(one.of)
    for first, count, times in _loops(one):
        for run in range(first, first + count):
            passes[run] *= min(times, cap)
    return passes


def _loops(one: Recorded) -> Iterator[tuple[int, int, int]]:
    loops = one.loops
    return zip(loops.first_run, loops.run_count, loops.times, strict=True)


def _cut(one: Recorded, cap: int) -> list[int]:
    """The runs in the order in which they are passed; inner loops, which stand last, are written first."""
    bodies = [[run] for run in range(len(one.of))]
    for first, count, times in reversed(list(_loops(one))):
        body = [run for part in bodies[first : first + count] for run in part]
        bodies[first : first + count] = [body * min(times, cap), *([[]] * (count - 1))]
    return [run for part in bodies for run in part]


def _places(one: Recorded, runs: Sequence[int]) -> list[Place]:
    shown, whole = [0] * len(one.of), _passes(one, 1 << 30)
    for run in runs:
        shown[run] += 1
    each = [
        Place(kind, Fraction(length * all_, times), Fraction(work_ns, times)) if times else None
        for kind, length, work_ns, all_, times in zip(
            one.of, one.run_length, one.work_ns, whole, shown, strict=True
        )
    ]
    return [place for run in runs if (place := each[run])]


def scores_of(base: Sequence[Kind], new: Sequence[Kind]) -> Scores:
    """What each pair of kinds is worth, shape (kinds of base, kinds of new); 0 where they are no pair."""
    table = [[_worth(one, other) for other in new] for one in base]
    return np.array(table, dtype=np.int32).reshape(len(base), len(new))


def _worth(one: Kind, other: Kind) -> int:
    """Work of different passes is never a pair, nor is compute one of communication or copies."""
    if None not in (one.phase, other.phase) and one.phase != other.phase:
        return 0
    if one.name == other.name and (one.name is not None or one.key == other.key):
        return SAME
    if one.key.partition(".")[0] != other.key.partition(".")[0] or None in (one.name, other.name):
        return 0
    name, their_name = one.name or "", other.name or ""
    if _without_types(name) == _without_types(their_name):
        return ALIKE
    if one.key != other.key:
        return 0
    return RELATED if _subclass(name) == _subclass(their_name) else FAMILY


@cache
def _without_types(name: str) -> str:
    return _TYPES.sub("", name)


def _subclass(name: str) -> str:
    return classify_kernel(name).subclass
