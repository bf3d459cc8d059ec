"""Places of a step: its sequence with loops written out, and how alike two places are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import chain, product, starmap
from typing import Final

import numpy as np

from heuristics.comparison.difference.alignment import Scores
from traces.frozen import frozen
from traces.limits import Limit
from traces.names.kernels import classify_kernel
from traces.patterns import compiled
from traces.sections.tables import Kind
from traces.sections.tables import Sequence as Recorded

PLACES: Final = Limit(
    2_000,
    "places a side",
    "ours: aligned in a tenth of a second; of more, fewer passes of each loop are, as many on both "
    "sides",
)
_CAPS: Final = (1 << 30, 64, 32, 16, 8, 4, 2, 1)
"""How many passes of a loop are aligned: the most for which both sides have room."""
SAME, ALIKE, RELATED, FAMILY = 6, 4, 3, 2
"""What a pair of places is worth: the same kernel, one of other types, its subclass, its class."""
_TYPES: Final = compiled(
    r"c10::\w+|__nv_\w+|[bB][fF]loat16|\d+"
    r"|\b(?:float|double|half|bool|int|long|unsigned|signed|short|char|bf|fp|f)\b"
)


@frozen
class Place:
    """Alike activities that follow each other in one pass of the loops around them: how many, and
    their work.

    Of a loop that is cut to fewer passes each stands for several.
    """

    kind: int
    count: Fraction
    work_ns: Fraction


def places_of(base: Recorded, new: Recorded) -> tuple[list[Place], list[Place]]:
    """Both sides, with as many passes of a loop as both have room for; no work is lost."""
    most = int(PLACES.value)
    caps = (cap for cap in _CAPS if max(sum(_passes(base, cap)), sum(_passes(new, cap))) <= most)
    cap = next(caps, _CAPS[-1])
    return _places(base, _cut(base, cap)), _places(new, _cut(new, cap))


def kinds_of(places: Sequence[Place]) -> list[int]:
    return [place.kind for place in places]


def _passes(sequence: Recorded, cap: int) -> list[int]:
    """How often each run is passed where no loop has more than `cap` passes."""
    passes = [1] * len(sequence.of)
    for first, count, times in _loops(sequence):
        for run in range(first, first + count):
            passes[run] *= min(times, cap)
    return passes


def _loops(sequence: Recorded) -> Iterator[tuple[int, int, int]]:
    loops = sequence.loops
    return zip(loops.first_run, loops.run_count, loops.times, strict=True)


def _cut(sequence: Recorded, cap: int) -> list[int]:
    """The runs in the order in which they are passed; inner loops, which stand last, are written
    first.
    """
    bodies = [[run] for run in range(len(sequence.of))]
    for first, count, times in reversed(list(_loops(sequence))):
        body = list(chain.from_iterable(bodies[first : first + count]))
        bodies[first : first + count] = [body * min(times, cap), *([[]] * (count - 1))]
    return list(chain.from_iterable(bodies))


def _places(sequence: Recorded, runs: Sequence[int]) -> list[Place]:
    shown, whole = Counter(runs), _passes(sequence, 1 << 30)
    place_of_run = {}
    for run, times in shown.items():
        count = Fraction(sequence.run_length[run] * whole[run], times)
        place_of_run[run] = Place(sequence.of[run], count, Fraction(sequence.work_ns[run], times))
    return [place_of_run[run] for run in runs]


def scores_of(base: Sequence[Kind], new: Sequence[Kind]) -> Scores:
    """What each pair of kinds is worth, shape (kinds of base, kinds of new); 0 where they are no
    pair.
    """
    table = list(starmap(_worth, product(base, new)))
    return np.array(table, dtype=np.int32).reshape(len(base), len(new))


def _worth(kind: Kind, their_kind: Kind) -> int:
    """Work of different passes is never a pair, nor is compute one of communication or copies."""
    if None not in (kind.phase, their_kind.phase) and kind.phase != their_kind.phase:
        return 0
    name, their_name = kind.name, their_kind.name
    if name == their_name and (name or kind.key == their_kind.key):
        return SAME
    if (
        name is None
        or their_name is None
        or kind.key.partition(".")[0] != their_kind.key.partition(".")[0]
    ):
        return 0
    if _without_types(name) == _without_types(their_name):
        return ALIKE
    if kind.key != their_kind.key:
        return 0
    if _subclass(name) == _subclass(their_name):
        return RELATED
    return FAMILY


@cache
def _without_types(name: str) -> str:
    return _TYPES.sub("", name)


def _subclass(name: str) -> str:
    return classify_kernel(name).subclass
