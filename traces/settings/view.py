"""Questions to the settings of a run, knob by knob. None is unknown: never off, never zero."""

import re
from typing import Final

from traces.settings.settings import Settings, Value

OFF: Final = ("", "0", "false", "no", "off", "none", "null")
"""Texts that switch something off."""


class KnobView:
    """Settings that are asked."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def known(self, knob: str) -> bool:
        """Whether it is configured, if only as null."""
        return knob in self.settings

    def value(self, knob: str) -> Value:
        """Its value; None where unknown or null."""
        return self.settings.value(knob)

    def group(self, prefix: str) -> tuple[str, ...]:
        """Known knobs of a group."""
        return tuple(knob for knob in self.settings.by_knob if knob.startswith(prefix))

    def first(self, *knobs: str) -> Value:
        """The first value among these knobs; None where all are unknown or null."""
        return next((value for knob in knobs if (value := self.value(knob)) is not None), None)

    def on(self, *knobs: str) -> bool | None:
        """Whether the first of these that has a value is switched on; null is off.

        A number is on unless it is 0, a text unless it says so, as variables of the environment do.
        """
        value = self.first(*knobs)
        if value is None:
            return False if any(map(self.known, knobs)) else None
        return value.lower() not in OFF if isinstance(value, str) else bool(value)

    def any_on(self, *knobs: str) -> bool | None:
        """True where one is on, False where all that are known are off and one is known."""
        states = [state for knob in knobs if (state := self.on(knob)) is not None]
        return any(states) if states else None

    def null(self, knob: str) -> bool | None:
        """Whether it is configured as null."""
        return self.value(knob) is None if self.known(knob) else None

    def one_of(self, knob: str, *values: Value) -> bool | None:
        """Whether it is one of these."""
        return self.value(knob) in values if self.known(knob) else None

    def number(self, knob: str) -> float | None:
        """Its number; None where unknown, null or no number."""
        value = self.value(knob)
        return None if isinstance(value, bool) or not isinstance(value, int | float) else value

    def count(self, knob: str) -> int | None:
        """Its whole number; None where unknown, null or no whole number."""
        value = self.value(knob)
        return None if isinstance(value, bool) or not isinstance(value, int) else value

    def positive(self, *knobs: str) -> int | None:
        """A whole number above zero, of the first of these that has a value; else None."""
        value = self.first(*knobs)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def above(self, knob: str, limit: float) -> bool | None:
        """Whether its number is above a limit; null is not."""
        number = self.number(knob)
        return number > limit if number is not None else False if self.null(knob) else None

    def word(self, knob: str) -> str | None:
        """Its text; None where unknown, null or no text."""
        value = self.value(knob)
        return value if isinstance(value, str) else None

    def names(self, knob: str) -> tuple[str, ...] | None:
        """Its list of names, one text as well; null is the empty list, None is unknown."""
        value = self.value(knob)
        if not self.known(knob):
            return None
        if isinstance(value, str):
            return tuple(re.findall(r"[^\s,\[\]'\"]+", value))
        return tuple(str(name) for name in value) if isinstance(value, tuple) else ()

    def holds(self, knob: str, name: str) -> bool | None:
        """Whether its list has a name."""
        names = self.names(knob)
        return None if names is None else name in names

    def env(self, name: str) -> str | None:
        """An environment variable's text; None where unknown. Null is the empty text: unset."""
        knob = f"env.{name}"
        return None if not self.known(knob) else "" if self.null(knob) else str(self.value(knob))

    def env_is(self, name: str, text: str) -> bool | None:
        """Whether an environment variable has this text; one that is unset has not."""
        value = self.env(name)
        return None if value is None else value == text

    def size(self, knob: str) -> int | None:
        """Ranks of a parallel dimension; null is 1."""
        return 1 if self.null(knob) else self.positive(knob)

    def where(self, knob: str) -> str:
        """Where it was configured, for sentences."""
        place = self.settings.said(knob)
        return "the framework's defaults" if place == "default" else place or "the options"
