"""A rule of a framework: from settings, to the knobs it changes and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traces.settings.knobs import Release
from traces.settings.settings import Settings, Value


@dataclass(frozen=True, slots=True)
class Change:
    """A knob that a framework sets to another value. `why`: what makes it, and where."""

    knob: str
    value: Value
    why: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Settings as a rule asks them."""

    settings: Settings
    core: Release

    def value(self, knob: str) -> Value:
        """A knob's value; None where it is null or unknown."""
        return self.settings.value(knob)

    def said(self, knob: str) -> bool:
        """Whether a knob is known."""
        return knob in self.settings

    def is_null(self, knob: str) -> bool:
        """Whether a knob is known to be null."""
        return knob in self.settings and self.settings.value(knob) is None

    def count(self, knob: str) -> int | None:
        """A whole number; None where it is unknown or none."""
        value = self.settings.value(knob)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def group(self, prefix: str) -> tuple[str, ...]:
        """Known knobs of a group."""
        return tuple(knob for knob in self.settings.by_knob if knob.startswith(prefix))


Rule = Callable[[Facts], tuple[Change, ...]]
