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
from dataclasses import field
from operator import contains, eq, gt
from typing import Final, Literal, get_args

from traces.errors import InputError
from traces.frozen import frozen
from traces.missing import of_known
from traces.patterns import compiled
from traces.texts import Texts

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


Framework = Literal[
    "megatron_lm",
    "megatron_bridge",
    "torchtitan",
    "deepspeed",
    "automodel",
    "llamafactory",
    "axolotl",
    "swift",
    "transformers",
    "accelerate",
    "huggingface",
    "verl",
    "nemo_rl",
]
PROGRAMS: Final[tuple[Framework, ...]] = get_args(Framework)[2:]
"""Those that are no Megatron."""


@frozen
class Setting:
    """A knob's value. `said`: where, such as `config.yaml:12`, `--ep`, `trace`, `default`."""

    value: Value
    said: str


_NOT_SAID: Final = Setting(None, "")


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
        return self.by_knob.get(knob, _NOT_SAID).value

    def said(self, knob: str) -> str:
        return self.by_knob.get(knob, _NOT_SAID).said

    def under(self, other: Settings) -> Settings:
        """These, overlaid with others, which win."""
        return Settings({**self.by_knob, **other.by_knob}, other.framework or self.framework)

    def changed(self, values: Values, said: str) -> Settings:
        return self.under(settings(values, said))


def settings(
    values: Values | Iterable[tuple[str, Value]],
    said: str,
    framework: Framework | None = None,
) -> Settings:
    """Settings all said in one place."""
    return Settings({knob: Setting(value, said) for knob, value in dict(values).items()}, framework)


OFF: Final = ("", "0", "false", "no", "off", "none", "null")
"""Texts that switch something off."""


def truth(value: object) -> bool | None:
    """Whether a value switches something on; None where there is none."""
    if isinstance(value, str):
        return value.lower() not in OFF
    if value is None:
        return None
    return bool(value)


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

    def group(self, prefix: str) -> Texts:
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
        if value is None and any(map(self.known, knobs)):
            return False
        return truth(value)

    def any_on(self, *knobs: str) -> bool | None:
        """True where one is on, False where all that are known are off and one is known."""
        states = {*map(self.on, knobs)} - {None}
        if states:
            return True in states
        return None

    def null(self, knob: str) -> bool | None:
        return self.one_of(knob, None)

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

    def names(self, knob: str) -> Texts | None:
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


ProblemEffect = Literal["unread", "older_name", "stops"]


class NotAConfiguration(InputError):
    """A file that cannot be read as a run's configuration. The message names it and what to give
    instead.
    """


@frozen
class FileProblem:
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
    problems: tuple[FileProblem, ...]
    versions: Mapping[str, str]
    name: str
