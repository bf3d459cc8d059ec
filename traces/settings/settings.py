"""Settings of a run: one name for each knob, whoever said it, and where it was said.

A knob's name (its id) is Megatron-Core's newest field name: `moe_token_dispatcher_type`. What is
not a field of the model's or the parallel layout's configuration carries its group:
`ddp.overlap_grad_reduce`, `optimizer.optimizer_cpu_offload`, `train.micro_batch_size`,
`comm_overlap.tp_comm_overlap` (of Bridge), `mixed_precision.fp8_recipe`, `rng.te_rng_tracker`,
`env.CUDA_DEVICE_MAX_CONNECTIONS`.

With one view of them, None for what is unknown (never off, never zero), and what of a file was not
taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import contains, eq, gt
from typing import Final, Literal

from traces.errors import InputError
from traces.frozen import frozen
from traces.limits import Limit
from traces.missing import of_known
from traces.patterns import compiled

Scalar = bool | int | float | str
Value = Scalar | tuple[Scalar, ...] | None
"""None is a setting too: said to be null."""
Values = Mapping[str, Value]
"""By knob."""


def entries_of(value: Value) -> tuple[Scalar | None, ...]:
    """The entries of a list; any other value is one."""
    if isinstance(value, tuple):
        return value
    return (value,)


Framework = Literal["megatron_lm", "megatron_bridge", "torchtitan", "deepspeed"]
PROGRAMS: Final[Mapping[Framework, str]] = {"torchtitan": "torchtitan", "deepspeed": "DeepSpeed"}
"""Those that are no Megatron, as people call them."""


@frozen
class Setting:
    """A knob's value. `said`: where, such as `config.yaml:12`, `--ep`, `trace`, `default`."""

    value: Value
    said: str


@frozen
class Settings:
    """What is known of a run's configuration; a knob that is not in it is unknown, never off.

    `framework`: whose spelling the file was in, None where no file was given.
    """

    by_knob: Mapping[str, Setting] = field(default_factory=dict)
    framework: Framework | None = None

    def __contains__(self, knob: str) -> bool:
        return knob in self.by_knob

    def value(self, knob: str) -> Value:
        found = self.by_knob.get(knob)
        if found is None:
            return None
        return found.value

    def said(self, knob: str) -> str:
        found = self.by_knob.get(knob)
        if found is None:
            return ""
        return found.said

    def under(self, other: Settings) -> Settings:
        """These, overlaid with others, which win."""
        return Settings({**self.by_knob, **other.by_knob}, other.framework or self.framework)

    def changed(self, values: Mapping[str, Value], said: str) -> Settings:
        return self.under(settings(values, said))


def settings(
    values: Mapping[str, Value] | Iterable[tuple[str, Value]],
    said: str,
    framework: Framework | None = None,
) -> Settings:
    """Settings all said in one place."""
    return Settings({knob: Setting(value, said) for knob, value in dict(values).items()}, framework)


OFF: Final = ("", "0", "false", "no", "off", "none", "null")
"""Texts that switch something off."""


class KnobView:
    """Settings that are asked. None: unknown, null, or not of the kind asked for.

    `known` tells whether a knob is configured, if only as null, which for a switch is off.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def known(self, knob: str) -> bool:
        return knob in self.settings

    def value(self, knob: str) -> Value:
        return self.settings.value(knob)

    def group(self, prefix: str) -> tuple[str, ...]:
        return tuple(knob for knob in self.settings.by_knob if knob.startswith(prefix))

    def first(self, *knobs: str) -> Value:
        """The first value among these knobs; None where all are unknown or null."""
        for knob in knobs:
            if (value := self.value(knob)) is not None:
                return value
        return None

    def on(self, *knobs: str) -> bool | None:
        """Whether the first of these that has a value is switched on; null is off.

        A number is on unless it is 0, a text unless it says so, as variables of the environment do.
        """
        value = self.first(*knobs)
        if value is None:
            if any(map(self.known, knobs)):
                return False
            return None
        if isinstance(value, str):
            return value.lower() not in OFF
        return bool(value)

    def any_on(self, *knobs: str) -> bool | None:
        """True where one is on, False where all that are known are off and one is known."""
        states = {*map(self.on, knobs)} - {None}
        if states:
            return True in states
        return None

    def null(self, knob: str) -> bool | None:
        if self.known(knob):
            return self.value(knob) is None
        return None

    def one_of(self, knob: str, *values: Value) -> bool | None:
        if self.known(knob):
            return self.value(knob) in values
        return None

    def number(self, knob: str) -> float | None:
        value = self.value(knob)
        if type(value) is int or type(value) is float:
            return value
        return None

    def count(self, knob: str) -> int | None:
        value = self.value(knob)
        if type(value) is int:
            return value
        return None

    def positive(self, *knobs: str) -> int | None:
        """A whole number above zero, of the first of these that has a value; else None."""
        value = self.first(*knobs)
        if type(value) is int and value > 0:
            return value
        return None

    def above(self, knob: str, limit: float) -> bool | None:
        if self.null(knob):
            return False
        return of_known(gt, self.number(knob), limit)

    def word(self, knob: str) -> str | None:
        value = self.value(knob)
        if isinstance(value, str):
            return value
        return None

    def names(self, knob: str) -> tuple[str, ...] | None:
        """Its list of names, one text as well; null is the empty list, None is unknown."""
        value = self.value(knob)
        if not self.known(knob):
            return None
        if isinstance(value, str):
            return tuple(compiled(r"[^\s,\[\]'\"]+").findall(value))
        if isinstance(value, tuple):
            return tuple(map(str, value))
        return ()

    def holds(self, knob: str, name: str) -> bool | None:
        return of_known(contains, self.names(knob), name)

    def env(self, name: str) -> str | None:
        """An environment variable's text; None where unknown. Null is the empty text: unset."""
        knob = f"env.{name}"
        if not self.known(knob):
            return None
        if self.null(knob):
            return ""
        return str(self.value(knob))

    def env_is(self, name: str, text: str) -> bool | None:
        return of_known(eq, self.env(name), text)

    def size(self, knob: str) -> int | None:
        """Ranks of a parallel dimension; null is 1."""
        if self.null(knob):
            return 1
        return self.positive(knob)

    def where(self, knob: str) -> str:
        place = self.settings.said(knob)
        if place == "default":
            return "the framework's defaults"
        return place or "the options"


MOST_PROBLEMS: Final = Limit(100, "problems", "ours: a file with more is another kind of file")


ProblemEffect = Literal["unread", "older_name", "stops"]


class NotAConfiguration(InputError):
    """A file that cannot be read as a run's configuration. The message names it and what to give
    instead.
    """


@frozen
class Problem:
    """Something in the file that was not taken as it stands.

    `where`: such as `run.sh:31`; `instead`: what to write there, empty where nothing would do.
    Neither holds a value of the file, nor a name that is not made of words we know, or near to
    them. `effect`: what the framework makes of it: nothing, the same as of the newer name, or it
    stops. `newer`: the knob whose flag only later releases have.
    """

    where: str
    text: str
    instead: str = ""
    effect: ProblemEffect = "unread"
    newer: str = ""


@frozen
class Configuration:
    """A file's settings, its problems in the order of its lines, and its name.

    `versions`: what it tells of releases: `core_at_least` and `core_before` of Megatron-Core by the
    names it uses, `container` of an image it names.
    """

    settings: Settings
    problems: tuple[Problem, ...]
    versions: Mapping[str, str]
    name: str


@dataclass(slots=True)
class Draft:
    """A configuration while it is read. A knob in `unclear` was said, but its value could not be
    told.

    `is_strict`: its program is one of which we know at what its parser stops.
    """

    name: str
    framework: Framework | None = None
    by_knob: dict[str, Setting] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    unclear: set[str] = field(default_factory=set)
    is_strict: bool = False
    names: dict[str, dict[str, tuple[Value, int | None]]] = field(default_factory=dict)
    """By knob the names under which it was said, each with value and line."""
    looked_up: int = 0
    """Unknown names of which the nearest known one was looked for."""

    @property
    def view(self) -> KnobView:
        return KnobView(Settings(self.by_knob))

    def where(self, line: int | None) -> str:
        if line is None:
            return self.name
        return f"{self.name}:{line}"

    def put(self, knob: str, value: Value, line: int | None) -> None:
        """Take a value; a later one wins, as in the frameworks."""
        self.by_knob[knob] = Setting(value, self.where(line))
        self.unclear.discard(knob)

    def note_name(self, knob: str, name: str, line: int | None) -> None:
        """Keep under which name a knob was said just now, where it has a value."""
        if (said := self.by_knob.get(knob)) is not None and said.value is not None:
            self.names.setdefault(knob, {})[name] = said.value, line

    def leave(self, knob: str) -> None:
        """The knob was said and cannot be told: it stays unknown, and gets no default."""
        self.by_knob.pop(knob, None)
        self.unclear.add(knob)

    def has(self, knob: str) -> bool:
        """Whether a knob was said, told or not."""
        return knob in self.by_knob or knob in self.unclear

    @property
    def is_full(self) -> bool:
        """Whether it has as many problems as a reader would read; then none is looked into any
        more.
        """
        return len(self.problems) > MOST_PROBLEMS.value

    def problem(
        self,
        line: int | None,
        text: str,
        instead: str = "",
        effect: ProblemEffect = "unread",
        newer: str = "",
        always: bool = False,
    ) -> None:
        """Note a problem once; the last one says that there are more. `always`: every program stops
        at it.
        """
        if self.is_full:
            return
        effect = "unread" if effect == "stops" and not (self.is_strict or always) else effect
        found = Problem(self.where(line), text, instead, effect, newer)
        if found in self.problems:
            return
        if len(self.problems) == MOST_PROBLEMS.value:
            found = Problem(
                self.where(line), "more problems from here on", "correct those before it first"
            )
        self.problems.append(found)

    def finished(self) -> Configuration:
        return Configuration(
            Settings(self.by_knob, self.framework), tuple(self.problems), self.versions, self.name
        )
