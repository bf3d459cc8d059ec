"""JSON -> checked values: each field named by its path, so that an error says which one it is."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Final, NoReturn, cast

from traces.errors import InputError

Json = Mapping[str, object]

SHOWN_LENGTH: Final = 40
"""Characters of an unknown key that an error repeats: enough to find it, too few to carry a secret far."""


class Fields:
    """An object of a symptoms file. Getters give None where a field is absent or null, and raise InputError.

    `path` is its place in the file. `window_ns` turns lengths in ns into fractions; None: they are refused.
    `unread`: sentences of keys that mean nothing to us, of the whole file.
    """

    def __init__(
        self,
        source: str,
        path: str,
        values: Json,
        window_ns: float | None = None,
        unread: list[str] | None = None,
    ) -> None:
        self.source, self.path, self.values, self.window_ns = source, path, values, window_ns
        self.unread = [] if unread is None else unread

    def timed(self, window_ns: float | None) -> Fields:
        """The same object, with lengths in ns of this window."""
        return Fields(self.source, self.path, self.values, window_ns, self.unread)

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def refuse(self, key: str, need: str) -> NoReturn:
        """Raise InputError: the field is not what it has to be."""
        raise InputError(f"{self.source}: {self._place(key)} {need}")

    def only(self, known: Collection[str]) -> None:
        """Raise InputError for a key that is none of `known`, with the nearest that is."""
        for key in self.values:
            if key not in known:
                raise InputError(f"{self.source}: {self._unknown(key, known)}")

    def note(self, known: Collection[str]) -> None:
        """Remember each key that is none of `known`: it is not read, as the contract may grow."""
        self.unread += [f"not read: {self._unknown(key, known)}" for key in self.values if key not in known]

    def _unknown(self, key: str, known: Collection[str]) -> str:
        near = get_close_matches(key, sorted(known), n=1, cutoff=0.5)
        shown = "".join(one for one in key[:SHOWN_LENGTH] if one.isprintable())
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(sorted(known))}"
        return f"{self._place(shown)} is no symptom; {hint}"

    def under(self, key: str) -> Fields:
        """The object at `key`; an empty one where it is absent."""
        value = self.values.get(key)
        if value is None:
            return Fields(self.source, self._place(key), {}, self.window_ns, self.unread)
        if not isinstance(value, dict):
            self.refuse(key, "is to be an object")
        return Fields(self.source, self._place(key), cast("Json", value), self.window_ns, self.unread)

    def each(self, key: str) -> list[Fields]:
        """The objects of the list at `key`."""
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            self.refuse(key, "is to be a list of objects")
        listed = cast("list[Json]", value)
        return [
            Fields(self.source, f"{self._place(key)}[{at}]", one, unread=self.unread)
            for at, one in enumerate(listed)
        ]

    def number(self, key: str, least: float = 0.0, most: float = math.inf) -> float | None:
        """A finite number within limits."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(key, "is to be a number")
        try:
            told = float(value)
        except OverflowError:
            self.refuse(key, "is too large a number")
        if not math.isfinite(told):
            self.refuse(key, "is to be a finite number")
        if not least <= told <= most:
            self.refuse(
                key, f"is to be {least:g} or more" if most == math.inf else f"is to be {least:g} to {most:g}"
            )
        return told

    def count(self, key: str) -> int | None:
        """A whole number, 0 or more."""
        told = self.number(key)
        if told is not None and not told.is_integer():
            self.refuse(key, "is to be a whole number")
        return None if told is None else int(told)

    def share(self, key: str) -> float | None:
        """A fraction, 0 to 1."""
        told = self.number(key, least=-math.inf)
        if told is not None and not 0.0 <= told <= 1.0:
            self.refuse(key, "is to be 0 to 1, a part of the whole: 26 % is 0.26")
        return told

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            self.refuse(key, "is to be true or false")
        return value

    def text(self, key: str, choices: Iterable[str] = ()) -> str | None:
        """Text; one of `choices`, where any are given."""
        value, allowed = self.values.get(key), tuple(choices)
        if value is None:
            return None
        if not isinstance(value, str):
            self.refuse(key, "is to be text")
        if allowed and value not in allowed:
            self.refuse(key, f"is to be one of {', '.join(allowed)}")
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of texts."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self.refuse(key, "is to be a list of texts")
        return tuple(cast("list[str]", value))

    def time(self, name: str) -> float | None:
        """A part of the window: `<name>_frac`, or `<name>_ns` of the window that is said."""
        if f"{name}_frac" in self:
            return self.share(f"{name}_frac")
        told_ns = self.number(f"{name}_ns")
        if told_ns is None:
            return None
        return self._of_window(f"{name}_ns", told_ns)

    def times(self, name: str, known: Collection[str]) -> dict[str, float] | None:
        """Parts of the window by key, from `<name>_frac` or `<name>_ns`; the keys are of `known`."""
        for key, in_ns in ((f"{name}_frac", False), (f"{name}_ns", True)):
            if key in self:
                return self.under(key).parts(known, in_ns)
        return None

    def parts(self, known: Collection[str], in_ns: bool) -> dict[str, float]:
        """All of its fields as parts of the window."""
        self.only(known)
        told = {key: self.number(key) if in_ns else self.share(key) for key in self.values}
        return {
            key: self._of_window(key, value) if in_ns else value
            for key, value in told.items()
            if value is not None
        }

    def _of_window(self, key: str, told_ns: float) -> float:
        if told_ns == 0:
            return 0.0
        if not self.window_ns:
            self.refuse(key, "is in ns, so budget_ns.window is needed; or give it as a part, with _frac")
        if told_ns > self.window_ns * 1.001:
            self.refuse(key, "is longer than budget_ns.window")
        return min(1.0, told_ns / self.window_ns)

    def _place(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def parse_object(text: str, source: str) -> Fields:
    """The object of a JSON text. Raises InputError: no JSON, NaN or Infinity, no object, nested too deep."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{source}: no JSON at line {error.lineno}, column {error.colno}; symptoms are one JSON object"
        ) from None
    except (ValueError, RecursionError):
        raise InputError(
            f"{source}: NaN, Infinity, a number too long or lists nested too deep; JSON has finite numbers"
        ) from None
    if not isinstance(value, dict):
        raise InputError(f'{source}: symptoms are one JSON object, such as {{"budget_frac": {{...}}}}')
    return Fields(source, "", cast("Json", value))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
