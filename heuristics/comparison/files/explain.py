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
from typing import Final, Literal, get_args

from heuristics.comparison.files.measured import Known, Measured, known_changes, measurements
from heuristics.config.hardware import family_named
from heuristics.config.view import Config
from heuristics.result.compared_files import EffectiveChange, Explanation, MeasuredElsewhere, Together
from heuristics.result.judged import Level
from heuristics.rules.condition import CONFIGURED
from heuristics.words import say
from traces.limits import Limit
from traces.missing import gap
from traces.sections.section import copied
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

EXACT: Final = Limit(
    0.005, "of a step", "ours: what is measured as no change elsewhere may be this much here"
)

Here = Literal["same", "near", "other"]
Fit = Literal["covers", "open", "direction", "against"]
Explained = Literal["step", "drift", "memory", "out_of_memory"]
_ORDER: Final[tuple[Here, ...]] = get_args(Here)
_FITS: Final = get_args(Fit)
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
        return min(ends) - EXACT.value, max(ends) + EXACT.value

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


@dataclass(frozen=True)
class _Held:
    """A known change that is made, held against the difference that was observed."""

    made: Made
    size: Size

    @property
    def is_toward(self) -> bool:
        """Whether its range has an end on the side of zero that the size lies on."""
        ratio, ends = self.size.ratio, self.made.range
        return ratio is not None and ends is not None and any(end * ratio[0] > 0 for end in ends)

    @cached_property
    def fit(self) -> Fit:
        ratio, wide = self.size.ratio, self.made.wide
        if ratio is None or wide is None:
            return "open"
        overlaps = wide[0] <= ratio[2] and ratio[1] <= wide[1]
        if overlaps and (not self.size.is_certain or self.is_toward):
            return "covers"
        return "direction" if self.is_toward else "against"

    @cached_property
    def explains(self) -> tuple[Explained, ...]:
        found: list[Explained] = []
        size, known, ends = self.size, self.made.known, self.made.range
        moved = size.moved or {}
        bears = ends is not None and max(map(abs, ends)) > EXACT.value
        if bears and (size.ratio is None or self.fit in ("covers", "direction")):
            found.append("step")
        toward = "base" if self.made.mirrored else "new"
        if "drift" in known.moves and moved.get("drift") == toward:
            found.append("drift")
        more = self.made.memory
        if size.memory is not None and more is not None and (size.memory - 1) * (more - 1) > 0:
            found.append("memory")
        if "out_of_memory" in known.moves and (side := moved.get("out_of_memory")):
            needs = toward if more is None or more == 1 else "new" if more > 1 else "base"
            if needs == side:
                found.append("out_of_memory")
        return tuple(found)

    @property
    def rank(self) -> tuple[float, ...]:
        """What comes first: what memory or drift asks for, how the range fits, how near, and how close."""
        asked = bool(self.size.moved) and not {*self.explains} & {"out_of_memory", "drift"}
        middle = 0.0 if self.made.range is None else sum(self.made.range) / 2
        far = -abs(middle) if self.size.ratio is None else abs(middle - self.size.ratio[0])
        return float(asked), float(_FITS.index(self.fit)), float(_ORDER.index(self.made.here)), far

    def confidence(self, several: bool) -> Level:
        """High where it alone was measured on such a run and covers the size, low where it points its way."""
        if "out_of_memory" in self.explains:
            return "medium"
        if self.fit != "covers":
            return "low"
        here = self.made.here
        return "high" if here == "same" and not several else "low" if here == "other" else "medium"

    @property
    def because(self) -> Iterator[str]:
        made, ratio = self.made, self.size.ratio
        if made.range is not None and made.wide is not None:
            yield _range(made, made.range, made.wide)
        if ratio is not None and made.range is not None:
            yield say(f"files.fit-{self.fit}", size=_part(ratio[0]))
        for what in ("drift", "out_of_memory", "memory"):
            if what in self.explains:
                yield say(f"files.moves-{what.replace('_', '-')}")


def explain(made: Sequence[Made], size: Size) -> tuple[Explanation, ...]:
    """All known changes as explanations, the likeliest first."""
    several = sum(one.range is not None for one in made) > 1
    held = sorted((_Held(one, size) for one in made), key=lambda one: one.rank)
    return tuple(_explanation(one, several) for one in held)


def _explanation(held: _Held, several: bool) -> Explanation:
    made, known = held.made, held.made.known
    none = gap(say("files.no-step"), say("files.no-step-cure"))
    low, high = (exp(end) - 1 for end in made.wide) if made.wide else (none, none)
    return copied(
        Explanation,
        known,
        made,
        held,
        title=known.mirrored if made.mirrored else known.title,
        step_low_frac=low,
        step_high_frac=high,
        confidence=held.confidence(several),
        because=tuple(held.because),
        measured=tuple(_elsewhere(made, here, each) for here, each in made.nearest),
    )


def _range(one: Made, range_: tuple[float, float], wide: tuple[float, float]) -> str:
    """What was measured elsewhere, and what it may be here."""
    where, (low, high), (least, most) = say(f"files.here-{one.here}"), map(_part, range_), map(_part, wide)
    if max(map(abs, range_)) <= EXACT.value:
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
