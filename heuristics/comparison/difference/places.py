"""Places of a step: its sequence with loops written out, each as often as in a mean step, and how
alike two places are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import chain, product, starmap
from typing import Final

import numpy as np

from heuristics.comparison.difference.alignment import Scores
from heuristics.comparison.difference.subject import rows_of_group
from traces.frozen import frozen
from traces.limits import Limit
from traces.measure.kernel_table import NO_NAME
from traces.names.kernels import classify_kernel
from traces.names.mangled import readable
from traces.patterns import compiled
from traces.sections.rank import Rank
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
_BRACKET: Final = compiled(r"([()])")
_TYPES: Final = compiled(
    r"c10::\w+|__nv_\w+|[bB][fF]loat16|\d+"
    r"|\b(?:float|double|half|bool|int|long|unsigned|signed|short|char|bf|fp|f)\b"
)

Name = tuple[str, str]
"""Name and key of a kernel; a copy is called by its key."""


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
    most = PLACES.whole
    caps = (cap for cap in _CAPS if max(sum(_passes(base, cap)), sum(_passes(new, cap))) <= most)
    cap = next(caps, _CAPS[-1])
    return _places(base, _cut(base, cap)), _places(new, _cut(new, cap))


Places = list[tuple[Kind, Place]]


def name_of(kind: Kind) -> Name:
    return kind.name or kind.key, kind.key


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


def without_arguments(name: str) -> str:
    """A name without what stands between brackets; one that is cut in them ends before."""
    kept, opened = list[str](), list[int]()
    for piece in _BRACKET.split(name):
        if piece == ")" and opened:
            del kept[opened.pop() :]
            continue
        if piece == "(":
            opened.append(len(kept))
        kept.append(piece)
    return "".join(kept[: opened[0]] if opened else kept)


@cache
def spelled(name: str) -> str:
    """A kernel's name without its arguments, as any recorder spells it."""
    return without_arguments(readable(name)).removeprefix("void ").replace(" ", "")


class Side:
    """Work of one side: how many, and their time, by name."""

    def __init__(self) -> None:
        self.counts: dict[Name, Fraction] = defaultdict(Fraction)
        self.works_ns: dict[Name, Fraction] = defaultdict(Fraction)

    def __bool__(self) -> bool:
        return bool(self.counts)

    @property
    def names(self) -> set[str]:
        return {spelled(name) for name, _ in self.counts}

    @property
    def count(self) -> float:
        return float(sum(self.counts.values()))

    @property
    def work_ns(self) -> Fraction:
        return sum(self.works_ns.values(), Fraction(0))

    def add(self, name: Name, count: Fraction, work_ns: Fraction) -> None:
        self.counts[name] += count
        self.works_ns[name] += work_ns


def _mean_step(rank: Rank) -> Side:
    """Copies, and kernels where all are listed, of the mean step."""
    mean, steps = Side(), len(rank.lengths_ns)
    table = rank.kernel_table
    for kernels in () if table.left_out.rows else table.rows:
        name = kernels.key if kernels.name == NO_NAME else kernels.name, kernels.key
        mean.add(name, Fraction(kernels.count, steps), Fraction(kernels.work_ns, steps))
    for row in rows_of_group(rank, "budget"):
        if row.row.startswith("exposed_copy."):
            key = row.row.removeprefix("exposed_")
            mean.add((key, key), Fraction(row.count, steps), Fraction(row.work_ns, steps))
    return mean


def named_places(rank: Rank, sequence: Recorded, places: Sequence[Place]) -> Places:
    """Places with their kinds, as many and as long as all of a name in the mean step; last, what
    that has besides.
    """
    mean, placed, named = _mean_step(rank), Side(), Places()
    for place in places:
        placed.add(name_of(sequence.kinds[place.kind]), place.count, place.work_ns)
    for place in places:
        kind = sequence.kinds[place.kind]
        count = place.count * _times(mean.counts, placed.counts, kind)
        work_ns = place.work_ns * _times(mean.works_ns, placed.works_ns, kind)
        named.append((kind, Place(place.kind, count, work_ns)))
    for name in mean.counts:
        if name not in placed.counts:
            place = Place(-1, mean.counts[name], mean.works_ns[name])
            named.append((Kind(*name, None, None), place))
    return named


def _times(mean: Mapping[Name, Fraction], placed: Mapping[Name, Fraction], kind: Kind) -> Fraction:
    name = name_of(kind)
    return mean[name] / placed[name] if mean.get(name) and placed[name] else Fraction(1)
