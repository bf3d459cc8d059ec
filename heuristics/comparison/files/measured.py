"""The table of measured deltas: what a known change of a configuration did to steps and memory elsewhere.

A measurement that is a gain of a fix is read out of the gain's own words, so that a figure stands once.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, Literal

from msgspec import Struct, field

from heuristics.facts.dictionary import DICTIONARY
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.rules.condition import CONFIGURED, Condition
from traces.patterns import Pattern
from traces.toml_tables import WrongRow, read_keyed

_NAME: Final = "measured_deltas.toml"
_QUESTIONS: Final = {"config.dispatcher": DICTIONARY["flex"].knobs}
"""What answers a question that is no setting."""
Pair = tuple[float, float]
Moves = Literal["drift", "out_of_memory"]


class FromGain(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a fix's gain has the figures: `read` finds them by named groups, as the table says."""

    fix: str
    place: int
    read: Pattern
    kind: Literal["step", "rate", ""] = field(default="", name="as")


class Row(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One measurement as the table has it."""

    of: str = ""
    source: str = ""
    gpu: tuple[str, ...] = ()
    when: Condition | None = None
    step: Pair | None = None
    rate: Pair | None = None
    memory: Pair | None = None
    step_frac: float | None = None
    rate_frac: float | None = None
    gain: FromGain | None = None


class Known(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One known change; its fields are described in the table."""

    id: str
    title: str
    mirrored: str
    next: str
    measured: tuple[Row, ...]
    before: Condition | None = None
    after: Condition | None = None
    more: str = ""
    moves: tuple[Moves, ...] = ()

    @property
    def knobs(self) -> tuple[str, ...]:
        """Settings that its conditions speak of."""
        several = [one.knobs for one in (self.before, self.after) if one]
        if self.more:
            several.append(CONFIGURED.condition(f"known({self.more})").knobs)
        named = (one for knobs in several for knob in knobs for one in _QUESTIONS.get(knob, (knob,)))
        return tuple(dict.fromkeys(named))


class Measured(Struct, frozen=True, kw_only=True):
    """One measurement: the new step and the new memory as parts of the old ones; None where not measured."""

    of: str
    source: str
    gpu: tuple[str, ...]
    when: Condition | None
    times: float | None
    memory_times: float | None


@cache
def known_changes() -> dict[str, Known]:
    """All rows by id, in order. Raises `WrongRow`."""
    return read_keyed("heuristics.comparison", _NAME, Known, CONFIGURED.readers)


@cache
def measurements(id: str) -> tuple[Measured, ...]:
    """Those of a row. Raises `WrongRow` where a gain does not hold its figures any more."""
    return tuple(_measured(id, row) for row in known_changes()[id].measured)


def _measured(id: str, row: Row) -> Measured:
    found = dict(_figures(id, row))
    of, source = row.of, row.source
    if row.gain is not None:
        gain = CATALOGUE[row.gain.fix].gains[row.gain.place]
        of, source = of or gain.text, gain.source
    if not of or not source or not found:
        raise WrongRow(
            f"heuristics/comparison/{_NAME}, {id}: a measurement lacks its shape, source or figures"
        )
    return Measured(
        of=of,
        source=source,
        gpu=row.gpu,
        when=row.when,
        times=found.get("times"),
        memory_times=found.get("memory"),
    )


def _figures(id: str, row: Row) -> Iterator[tuple[Literal["times", "memory"], float]]:
    """How many times as long a step is, and as large its memory."""
    if row.step:
        yield "times", row.step[1] / row.step[0]
    if row.rate:
        yield "times", row.rate[0] / row.rate[1]
    if row.step_frac is not None:
        yield "times", 1 + row.step_frac
    if row.rate_frac is not None:
        yield "times", 1 / (1 + row.rate_frac)
    if row.memory:
        yield "memory", row.memory[1] / row.memory[0]
    if row.gain is not None:
        yield from _of_gain(id, row.gain)


def _of_gain(id: str, asked: FromGain) -> Iterator[tuple[Literal["times", "memory"], float]]:
    text = CATALOGUE[asked.fix].gains[asked.place].text
    found = asked.read.search(text)
    if found is None:
        raise WrongRow(f"heuristics/comparison/{_NAME}, {id}: the gain of {asked.fix} has no such figures")
    said = {name: float(number) for name, number in found.groupdict().items()}
    if "base" in said:
        times = said["new"] / said["base"]
        yield "times", times if asked.kind == "step" else 1 / times
    if "step" in said:
        yield "times", 1 + said["step"] / 100
    if "rate" in said:
        yield "times", 1 / (1 + said["rate"] / 100)
    if "times" in said:
        yield "times", said["times"]
    if "less" in said:
        yield "memory", 1 - said["less"] / 100
