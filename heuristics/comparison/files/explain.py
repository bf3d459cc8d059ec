"""Which known change of the configuration explains a difference of two logs, by what it did elsewhere.

A measurement made elsewhere tells here only within a factor: its range is taken wider by `ELSEWHERE`, less
the nearer it was made. The first explanation is the one whose range holds the size that was observed, made on
the nearest run; where memory ran out or a step drifts, the ones that can do that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log
from typing import Final, Literal

from heuristics.comparison.files.measured import Known, Measured, known_changes, measurements
from heuristics.config.hardware import family_named
from heuristics.config.view import Config
from heuristics.limits import LITTLE
from heuristics.result.compared_files import EffectiveChange, Explanation, MeasuredElsewhere, Together
from heuristics.result.judged import Level
from heuristics.rules.condition import CONFIGURED
from heuristics.words import say
from traces.limits import Limit
from traces.missing import gap
from traces.spelling import percent, signed

ELSEWHERE: Final = Limit(
    2.0,
    "times",
    "ours: CUDA graphs, expert overlap and recompute of one module, each measured on several shapes of this "
    "table, differ by 1.5 to 3 times between two of one generation of GPUs",
)
SAME: Final = Limit(
    1.5, "times", "ours: two releases of one model on one GPU differ by that (MTP: 6.8 to 11 % a step)"
)

Here = Literal["same", "near", "other"]
_ORDER: Final[tuple[Here, ...]] = ("same", "near", "other")
_FITS: Final = ("covers", "open", "direction", "against")
Observed = Literal["out_of_memory", "drift"]


@dataclass(frozen=True)
class Size:
    """How much longer the new step is, as natural logarithms: its most likely value and both ends.

    None where no logs tell it. `memory`: how many times as large the peak is. `moved`: what else differs
    between the logs, each with the side that has it (`new`, or `base`).
    """

    ratio: tuple[float, float, float] | None = None
    memory: float | None = None
    moved: Mapping[Observed, Literal["base", "new"]] | None = None

    @property
    def is_certain(self) -> bool:
        return self.ratio is not None and not self.ratio[1] <= 0 <= self.ratio[2]


@dataclass(frozen=True)
class Made:
    """A known change that two configurations make. `mirrored`: the other way round than the table has it."""

    known: Known
    mirrored: bool
    base: Config
    new: Config
    changed: tuple[EffectiveChange, ...]

    @property
    def knobs(self) -> tuple[str, ...]:
        """The settings that differ for it."""
        return tuple(one.what for one in self.changed if one.what in self.known.knobs)

    @cached_property
    def nearest(self) -> tuple[tuple[Here, Measured], ...]:
        """Its measurements, the nearest first."""
        made = [(self._here(one), one) for one in measurements(self.known.id)]
        return tuple(sorted(made, key=lambda pair: _ORDER.index(pair[0])))

    @property
    def here(self) -> Here:
        """How near the nearest measurement of a step was made."""
        return next((here for here, one in self.nearest if one.times is not None), "other")

    @cached_property
    def range(self) -> tuple[float, float] | None:
        """What it does to a step by the nearest measurements, in logarithms; None without one."""
        times = [one.times for here, one in self.nearest if here == self.here and one.times is not None]
        logs = sorted(log(one) * (-1 if self.mirrored else 1) for one in times)
        return (logs[0], logs[-1]) if logs else None

    @cached_property
    def wide(self) -> tuple[float, float] | None:
        """The same, as far as it may go here."""
        if self.range is None:
            return None
        factor = SAME.value if self.here == "same" else ELSEWHERE.value
        ends = [end * by for end in self.range for by in (factor, 1 / factor)]
        return min(ends) - LITTLE.value, max(ends) + LITTLE.value

    @property
    def memory(self) -> float | None:
        """How many times as large it makes the memory, by the nearest measurement of that."""
        times = next((one.memory_times for _, one in self.nearest if one.memory_times is not None), None)
        return None if times is None else 1 / times if self.mirrored else times

    def _here(self, one: Measured) -> Here:
        """How near a measurement was made: GPU and model, one of both or the generation, or neither."""
        of_model = one.when is not None and True in (one.when.holds(self.base), one.when.holds(self.new))
        not_model = one.when is not None and False in (one.when.holds(self.base), one.when.holds(self.new))
        gpu = self.new.gpu or self.base.gpu
        if gpu in one.gpu:
            return "same" if of_model else "other" if not_model and one.when is not None else "near"
        own, theirs = family_named(gpu or ""), [family_named(name) for name in one.gpu]
        alike = own is not None and any(their and their.hardware == own.hardware for their in theirs)
        return "near" if of_model or (alike and not not_model) else "other"


def made_changes(base: Config, new: Config, changed: Sequence[EffectiveChange]) -> list[Made]:
    """The known changes from base to new, those whose settings differ in effect."""
    effective = tuple(one for one in changed if one.effect == "may")
    found = (
        Made(known, mirrored, base, new, effective)
        for known in known_changes().values()
        if (mirrored := _way(known, base, new)) is not None
    )
    return [one for one in found if one.knobs]


def _way(known: Known, base: Config, new: Config) -> bool | None:
    """Whether the change is made mirrored; None where it is not made, or nobody knows."""
    sides = (base, new)
    ways = [True, True]
    if known.before is not None and known.after is not None:
        before, after = ([one.holds(side) for side in sides] for one in (known.before, known.after))
        ways = [
            before == [False, True] and after == [True, False],
            before == [True, False] and after == [False, True],
        ]
    if known.more:
        one, other = (CONFIGURED.named(known.more).of(side) for side in sides)
        if not isinstance(one, int | float) or not isinstance(other, int | float):
            return None
        ways = [ways[0] and one > other, ways[1] and one < other]
    return None if True not in ways else ways.index(True) == 0


def explain(made: Sequence[Made], size: Size) -> tuple[Explanation, ...]:
    """All known changes as explanations, the likeliest first."""
    several = sum(one.range is not None for one in made) > 1
    found = [(_rank(one, size), _explanation(one, size, several)) for one in made]
    return tuple(explanation for _, explanation in sorted(found, key=lambda pair: pair[0]))


def _rank(one: Made, size: Size) -> tuple[float, ...]:
    """What comes first: what memory or drift asks for, then how the range fits, how near, and how close."""
    asked = bool(size.moved) and not {*_explains(one, size)} & {"out_of_memory", "drift"}
    fit, middle = _FITS.index(_fit(one, size)), 0.0 if one.range is None else sum(one.range) / 2
    observed = size.ratio[0] if size.ratio else None
    far = -abs(middle) if observed is None else abs(middle - observed)
    return float(asked), float(fit), float(_ORDER.index(one.here)), far


def _fit(one: Made, size: Size) -> Literal["covers", "direction", "against", "open"]:
    if size.ratio is None or one.range is None or one.wide is None:
        return "open"
    low, high = size.ratio[1:]
    if one.wide[0] <= high and low <= one.wide[1] and (size.is_certain is False or _toward(one, size)):
        return "covers"
    return "direction" if _toward(one, size) else "against"


def _toward(one: Made, size: Size) -> bool:
    """Whether its range has an end on the side of zero that the size lies on."""
    return (
        one.range is not None and size.ratio is not None and any(end * size.ratio[0] > 0 for end in one.range)
    )


def _explains(one: Made, size: Size) -> tuple[Literal["step", "drift", "memory", "out_of_memory"], ...]:
    found: list[Literal["step", "drift", "memory", "out_of_memory"]] = []
    moved = size.moved or {}
    bears = one.range is not None and max(map(abs, one.range)) > LITTLE.value
    if bears and (size.ratio is None or _fit(one, size) in ("covers", "direction")):
        found.append("step")
    toward = "base" if one.mirrored else "new"
    if "drift" in one.known.moves and moved.get("drift") == toward:
        found.append("drift")
    if size.memory is not None and one.memory is not None and (size.memory - 1) * (one.memory - 1) > 0:
        found.append("memory")
    if "out_of_memory" in one.known.moves and (side := moved.get("out_of_memory")):
        more = one.memory
        needs = toward if more is None or more == 1 else "new" if more > 1 else "base"
        if needs == side:
            found.append("out_of_memory")
    return tuple(found)


def _explanation(one: Made, size: Size, several: bool) -> Explanation:
    known, fit, explains = one.known, _fit(one, size), _explains(one, size)
    none = gap(say("files.no-step"), say("files.no-step-cure"))
    ends = [exp(end) - 1 for end in one.wide] if one.wide else None
    return Explanation(
        id=known.id,
        title=known.mirrored if one.mirrored else known.title,
        knobs=one.knobs,
        fit=fit,
        explains=explains,
        step_low_frac=ends[0] if ends else none,
        step_high_frac=ends[1] if ends else none,
        confidence=_confidence(one, fit, explains, several),
        because=tuple(_because(one, size, fit, explains)),
        measured=tuple(_elsewhere(one, here, each) for here, each in one.nearest),
        next=known.next,
    )


def _confidence(one: Made, fit: str, explains: Sequence[str], several: bool) -> Level:
    """High where it alone was measured on such a run and covers the size, low where it points its way."""
    if "out_of_memory" in explains:
        return "medium"
    if fit != "covers":
        return "low"
    return "high" if one.here == "same" and not several else "low" if one.here == "other" else "medium"


def _because(one: Made, size: Size, fit: str, explains: Sequence[str]) -> Iterator[str]:
    if one.range is not None and one.wide is not None:
        yield _range(one, one.range, one.wide)
    if size.ratio is not None and one.range is not None:
        yield say(f"files.fit-{fit}", size=_part(size.ratio[0]))
    for what in ("drift", "out_of_memory", "memory"):
        if what in explains:
            yield say(f"files.moves-{what.replace('_', '-')}")


def _range(one: Made, range_: tuple[float, float], wide: tuple[float, float]) -> str:
    """What was measured elsewhere, and what it may be here."""
    where, (low, high), (least, most) = say(f"files.here-{one.here}"), map(_part, range_), map(_part, wide)
    if max(map(abs, range_)) <= LITTLE.value:
        return say("files.measured-none", where=where)
    if low == high:
        return say("files.measured-one", where=where, low=low, least=least, most=most)
    return say("files.measured", where=where, low=low, high=high, least=least, most=most)


def _part(ratio: float) -> str:
    """A logarithm as the part by which a step is longer."""
    return signed(percent(exp(ratio) - 1))


def _elsewhere(one: Made, here: Here, measured: Measured) -> MeasuredElsewhere:
    none = gap(say("files.not-measured"), say("files.not-measured-cure"))

    def frac(times: float | None) -> float | None:
        return None if times is None else (1 / times if one.mirrored else times) - 1

    step, memory = frac(measured.times), frac(measured.memory_times)
    return MeasuredElsewhere(
        of=measured.of,
        source=measured.source,
        here=here,
        step_frac=none if step is None else step,
        memory_frac=none if memory is None else memory,
    )


def together(made: Sequence[Made], size: Size) -> Together | None:
    """What all of them come to where there are several; None else."""
    ranged = [one for one in made if one.wide is not None]
    if len(ranged) < 2:
        return None
    low, high = (sum(one.wide[end] for one in ranged if one.wide) for end in (0, 1))
    covers = None if size.ratio is None else low <= size.ratio[2] and size.ratio[1] <= high
    return Together(tuple(one.known.id for one in ranged), exp(low) - 1, exp(high) - 1, covers)
