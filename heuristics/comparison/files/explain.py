"""Which known change of the configuration explains a difference of two logs, by what it did
elsewhere.

A measurement made elsewhere tells here only within a factor: its range is taken wider by
`ELSEWHERE`, less the nearer it was made. The first explanation is the one whose range holds the
size that was observed, made on the nearest run; where memory ran out or a step drifts, the ones
that can do that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import starmap
from math import exp, log
from operator import attrgetter
from typing import Final, Literal, get_args

from msgspec.structs import replace

from heuristics.comparison.files.measured import Known, MeasuredChange, known_changes, measurements
from heuristics.config.hardware import family_named
from heuristics.config.view import Config
from heuristics.result.compared_files import (
    EffectiveChange,
    Explained,
    Explanation,
    Here,
    MeasuredElsewhere,
    Together,
)
from heuristics.result.judged import Level
from heuristics.rules.condition import CONFIGURED
from heuristics.words import lacking, say
from traces.limits import Limit
from traces.missing import OrMissing
from traces.sections.section import copied
from traces.spelling import percent, signed
from traces.texts import Texts

ELSEWHERE: Final = Limit(
    2.0,
    "times",
    "ours: CUDA graphs, expert overlap and recompute of one module, each measured on several "
    "shapes of this "
    "table, differ by 1.5 to 3 times between two of one generation of GPUs",
)
SAME: Final = Limit(
    1.5,
    "times",
    "ours: two releases of one model on one GPU differ by that (MTP: 6.8 to 11 % a step)",
)

EXACT: Final = Limit(
    0.005, "of a step", "ours: what is measured as no change elsewhere may be this much here"
)

Fit = Literal["covers", "open", "direction", "against"]
_ORDER: Final[tuple[Here, ...]] = get_args(Here)
_FITS: Final = get_args(Fit)
Observed = Literal["out_of_memory", "drift"]
SideName = Literal["base", "new"]
Range = tuple[float, float]
"""Both ends of what is done to a step, as natural logarithms."""


@dataclass(frozen=True)
class Size:
    """How much longer the new step is, as natural logarithms: its most likely value and both ends.

    None where no logs tell it. `memory`: how many times as large the peak is. `moved`: what else
    differs between the logs, each with the side that has it.
    """

    ratio: tuple[float, float, float] | None = None
    memory: float | None = None
    moved: Mapping[Observed, SideName] = field(default_factory=dict)

    @property
    def is_certain(self) -> bool:
        return self.ratio is not None and not self.ratio[1] <= 0 <= self.ratio[2]


@dataclass(frozen=True)
class Made:
    """A known change that two configurations make. `mirrored`: the other way round than the table
    has it.
    """

    known: Known
    mirrored: bool
    base: Config
    new: Config
    changed: tuple[EffectiveChange, ...]

    @property
    def title(self) -> str:
        return self.known.titled(self.mirrored)

    @property
    def knobs(self) -> Texts:
        """The settings that differ for it."""
        return tuple(change.what for change in self.changed if change.what in self.known.knobs)

    @cached_property
    def nearest(self) -> tuple[tuple[Here, MeasuredChange], ...]:
        """Its measurements in the direction in which it is made, the nearest first."""
        placed = [
            (self._here(measured), replace(measured, is_turned=self.mirrored))
            for measured in measurements(self.known.id)
        ]
        return tuple(sorted(placed, key=lambda pair: _ORDER.index(pair[0])))

    @property
    def here(self) -> Here:
        """How near the nearest measurement was made."""
        return self.nearest[0][0]

    @cached_property
    def range(self) -> Range:
        """What it does to a step by the nearest measurements."""
        times = [measured.times for here, measured in self.nearest if here == self.here]
        return log(min(times)), log(max(times))

    @cached_property
    def wide(self) -> Range:
        """The same, as far as it may go here."""
        factor = SAME.value if self.here == "same" else ELSEWHERE.value
        low, high = self.range
        return min(low * factor, low / factor) - EXACT.value, max(
            high * factor, high / factor
        ) + EXACT.value

    @property
    def memory(self) -> float | None:
        """How many times as large it makes the memory, by the nearest measurement of that."""
        for _, measured in self.nearest:
            if measured.memory_times is not None:
                return measured.memory_times
        return None

    def _here(self, near: MeasuredChange) -> Here:
        """How near a measurement was made: GPU and model, one of both or the generation, or
        neither.
        """
        held = {near.when.holds(side) for side in (self.base, self.new)} if near.when else set()
        of_model, of_another = True in held, False in held and True not in held
        gpu = self.new.gpu or self.base.gpu
        if of_model and gpu in near.gpu:
            return "same"
        own = _generation(gpu)
        is_like = gpu in near.gpu or (own is not None and own in map(_generation, near.gpu))
        if of_another or not (of_model or is_like):
            return "other"
        return "near"


def _generation(gpu: str | None) -> str | None:
    family = family_named(gpu or "")
    if family is None:
        return None
    return family.hardware


def made_changes(base: Config, new: Config, changed: Sequence[EffectiveChange]) -> list[Made]:
    """The known changes from base to new, those whose settings differ in effect."""
    effective = tuple(change for change in changed if change.effect == "may")
    changes_made = []
    for known in known_changes().values():
        for mirrored, sides in ((False, (base, new)), (True, (new, base))):
            made = Made(known, mirrored, base, new, effective)
            if _is_made(known, *sides) and made.knobs:
                changes_made.append(made)
    return changes_made


def _is_made(known: Known, before: Config, after: Config) -> bool:
    """Whether the change leads from one configuration to the other, as far as that is known."""
    for condition, side in ((known.before, before), (known.after, after)):
        if condition and not condition.holds(side):
            return False
    if known.more:
        figure = CONFIGURED.named(known.more).of
        less, more = figure(before), figure(after)
        return isinstance(less, int | float) and isinstance(more, int | float) and less < more
    return True


@dataclass(frozen=True)
class _Held:
    """A known change that is made, held against the difference that was observed."""

    made: Made
    size: Size

    @property
    def is_toward(self) -> bool:
        """Whether its range has an end on the side of zero that the size lies on."""
        ratio = self.size.ratio
        return ratio is not None and any(end * ratio[0] > 0 for end in self.made.range)

    @cached_property
    def fit(self) -> Fit:
        ratio, wide = self.size.ratio, self.made.wide
        if ratio is None:
            return "open"
        overlaps = wide[0] <= ratio[2] and ratio[1] <= wide[1]
        if overlaps and (not self.size.is_certain or self.is_toward):
            return "covers"
        if self.is_toward:
            return "direction"
        return "against"

    @cached_property
    def explains(self) -> tuple[Explained, ...]:
        size, made = self.size, self.made
        toward: SideName = "base" if made.mirrored else "new"
        more = made.memory or 1.0
        short: SideName = toward  # whose memory it needs
        if more > 1:
            short = "new"
        elif more < 1:
            short = "base"
        bears = max(map(abs, made.range)) > EXACT.value
        explained = list[Explained]()
        if bears and (size.ratio is None or self.fit in ("covers", "direction")):
            explained.append("step")
        if "drift" in made.known.moves and size.moved.get("drift") == toward:
            explained.append("drift")
        if ((size.memory or 1.0) - 1) * (more - 1) > 0:
            explained.append("memory")
        if "out_of_memory" in made.known.moves and size.moved.get("out_of_memory") == short:
            explained.append("out_of_memory")
        return tuple(explained)

    @property
    def rank(self) -> tuple[float, ...]:
        """What comes first: what memory or drift asks for, how the range fits, how near, and how
        close.
        """
        asked = bool(self.size.moved) and not {*self.explains} & {"out_of_memory", "drift"}
        middle = sum(self.made.range) / 2
        far = -abs(middle)
        if self.size.ratio is not None:
            far = abs(middle - self.size.ratio[0])
        return (
            float(asked),
            float(_FITS.index(self.fit)),
            float(_ORDER.index(self.made.here)),
            far,
        )

    def confidence(self, beside_others: bool) -> Level:
        """High where it alone was measured on such a run and covers the size, low where it points
        its way.
        """
        if "out_of_memory" in self.explains:
            return "medium"
        if self.fit != "covers" or self.made.here == "other":
            return "low"
        if self.made.here == "same" and not beside_others:
            return "high"
        return "medium"

    @property
    def because(self) -> Iterator[str]:
        made, ratio = self.made, self.size.ratio
        yield _range(made.here, made.range, made.wide)
        if ratio is not None:
            yield say(f"files.fit-{self.fit}", size=part_of_step(ratio[0]))
        for what in ("drift", "out_of_memory", "memory"):
            if what in self.explains:
                yield say(f"files.moves-{what.replace('_', '-')}")


def explain(made: Sequence[Made], size: Size) -> tuple[Explanation, ...]:
    """All known changes as explanations, the likeliest first."""
    held = sorted((_Held(change, size) for change in made), key=attrgetter("rank"))
    return tuple(_explanation(held_change, len(made) > 1) for held_change in held)


def _explanation(held: _Held, beside_others: bool) -> Explanation:
    low, high = map(_longer, held.made.wide)
    return copied(
        Explanation,
        held.made.known,
        held.made,
        held,
        step_low_frac=low,
        step_high_frac=high,
        confidence=held.confidence(beside_others),
        because=tuple(held.because),
        measured=tuple(starmap(_elsewhere, held.made.nearest)),
    )


def _range(here: Here, range_: Range, wide: Range) -> str:
    """What was measured elsewhere, and what it may be here."""
    where = say(f"files.here-{here}")
    if max(map(abs, range_)) <= EXACT.value:
        return say("files.measured-none", where=where)
    low, high = map(part_of_step, range_)
    least, most = map(part_of_step, wide)
    if low == high:
        return say("files.measured-one", where=where, low=low, least=least, most=most)
    return say("files.measured", where=where, low=low, high=high, least=least, most=most)


def part_of_step(ratio: float) -> str:
    """A logarithm as the part by which a step is longer, in words."""
    return signed(percent(_longer(ratio)))


def _longer(ratio: float) -> float:
    return exp(ratio) - 1


def _elsewhere(here: Here, measured: MeasuredChange) -> MeasuredElsewhere:
    return copied(
        MeasuredElsewhere,
        measured,
        here=here,
        step_frac=measured.times - 1,
        memory_frac=_grown(measured.memory_times),
    )


def _grown(times: float | None) -> OrMissing[float]:
    if times is None:
        return lacking("files.not-measured")
    return times - 1


def together(made: Sequence[Made], size: Size) -> Together | None:
    """What all of them come to where there are several; None else."""
    ends = {change.known.id: change.wide for change in made}
    if len(ends) < 2:
        return None
    low, high = map(sum, zip(*ends.values(), strict=True))
    covers = None
    if size.ratio is not None:
        covers = low <= size.ratio[2] and size.ratio[1] <= high
    return Together(tuple(ends), _longer(low), _longer(high), covers)
