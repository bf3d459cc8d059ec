"""JSON -> checked values: each field named by its path, so that an error says which one it is."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, NoReturn, TypeVar

from traces.errors import InputError

T = TypeVar("T")

WINDOW_NS: Final = 1_000_000_000
"""Length of every window, so that a part of it has a length in ns too, and ranks count alike."""
SHOWN_LENGTH: Final = 40
"""Characters of an unknown key that an error repeats: enough to find it, too few to carry a secret far."""
ROUNDED: Final = 1.001
"""How far a length may exceed its window: figures are given rounded."""


class Fields:
    """An object of a symptoms file. Getters give None where a field is absent or null, and raise InputError.

    `path` is its place in the file. `window_ns` is what lengths in ns are parts of; None: they are refused.
    `in_ns`: all of its lengths are in ns. `known`: keys that may stand there, those asked for among them.
    """

    def __init__(
        self, source: str, path: str, values: Mapping[str, object], known: Iterable[str] = ()
    ) -> None:
        self.source, self.path, self.values = source, path, values
        self.known, self.in_ns = {*known}, path.endswith("_ns")
        self.window_ns: float | None = None
        self._inner: dict[str, list[Fields]] = {}

    def __contains__(self, key: str) -> bool:
        return self._value(key) is not None

    def _value(self, key: str) -> object:
        self.known.add(key)
        return self.values.get(key)

    def _of(self, key: str, kind: type[T], what: str) -> T | None:
        value = self._value(key)
        if value is not None and not isinstance(value, kind):
            self.refuse(key, f"is to be {what}")
        return value

    def _list(self, key: str, kind: type[T], what: str) -> list[T] | None:
        value = self._of(key, list, what)
        if value is not None and not all(isinstance(one, kind) for one in value):
            self.refuse(key, f"is to be {what}")
        return value

    def refuse(self, key: str, need: str) -> NoReturn:
        """Raise InputError: the field is not what it has to be."""
        raise InputError(f"{self.source}: {self._place(key)} {need}")

    def unread(self) -> Iterator[str]:
        """A sentence for each key that nobody asked for, here and below: the contract may grow."""
        yield from (f"not read: {self._unknown(key)}" for key in self.values if key not in self.known)
        for inner in self._inner.values():
            for one in inner:
                yield from one.unread()

    def _unknown(self, key: str) -> str:
        near = self._with_the_fields_of(key) or get_close_matches(key, sorted(self.known), n=1, cutoff=0.5)
        shown = "".join(one for one in key[:SHOWN_LENGTH] if one.isprintable())
        hints = [f"did you mean {near[0]!r}?"] if near else []
        if self.path or not near:
            hints.append(f"known here: {', '.join(sorted(self.known))}")
        return f"{self._place(shown)} is no symptom; {' '.join(hints)}"

    def _with_the_fields_of(self, key: str) -> list[str]:
        """Objects that have all fields of an unknown one, in the same unit: most likely meant."""
        value = self.values[key]
        if not isinstance(value, dict) or not value:
            return []
        alike = [(name, inner) for name, inner in self._inner.items() if name[-3:] == key[-3:]]
        return [name for name, inner in alike if any({*value} <= one.known for one in inner)]

    def under(self, key: str, known: Iterable[str] = ()) -> Fields:
        """The object at `key`; an empty one where it is absent."""
        value = self._of(key, dict, "an object")
        if key not in self._inner:
            self._inner[key] = [Fields(self.source, self._place(key), value or {})]
        (inner,) = self._inner[key]
        inner.known |= {*known}
        inner.window_ns, inner.in_ns = self.window_ns, self.in_ns or inner.in_ns
        return inner

    def each(self, key: str, known: Iterable[str] = ()) -> list[Fields]:
        """The objects of the list at `key`."""
        listed = enumerate(self._list(key, dict, "a list of objects") or ())
        inner = [Fields(self.source, f"{self._place(key)}[{at}]", one, known) for at, one in listed]
        return self._inner.setdefault(key, inner)

    def number(self, key: str, least: float = 0.0, most: float = math.inf) -> float | None:
        """A finite number within limits."""
        value = self._value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(key, "is to be a number")
        try:
            number = float(value)
        except OverflowError:
            self.refuse(key, "is too large a number")
        if not math.isfinite(number):
            self.refuse(key, "is to be a finite number")
        if not least <= number <= most:
            self.refuse(key, f"is to be {least:g} " + ("or more" if most == math.inf else f"to {most:g}"))
        return number

    def count(self, key: str) -> int | None:
        """A whole number, 0 or more."""
        number = self.number(key)
        if number is not None and not number.is_integer():
            self.refuse(key, "is to be a whole number")
        return None if number is None else int(number)

    def share(self, key: str) -> float | None:
        """A fraction, 0 to 1."""
        number = self.number(key, least=-math.inf)
        if number is not None and not 0.0 <= number <= 1.0:
            self.refuse(key, "is to be 0 to 1, a part of the whole: 26 % is 0.26")
        return number

    def flag(self, key: str) -> bool | None:
        """True or false."""
        return self._of(key, bool, "true or false")

    def text(self, key: str, choices: Collection[str] = ()) -> str | None:
        """Text; one of `choices`, where any are given."""
        value = self._of(key, str, "text")
        if value is not None and choices and value not in choices:
            self.refuse(key, f"is to be one of {', '.join(choices)}")
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of texts."""
        value = self._list(key, str, "a list of texts")
        return None if value is None else tuple(value)

    def time(self, name: str) -> int | None:
        """A part of the window in ns of `WINDOW_NS`: from `<name>_frac`, else `<name>_ns`."""
        found = self.part(f"{name}_frac")
        return self.part(f"{name}_ns") if found is None else found

    def times(self, name: str, known: Collection[str]) -> dict[str, int] | None:
        """Parts of the window by key, from `<name>_frac` or `<name>_ns`, those of no time left out."""
        key = next((key for unit in ("frac", "ns") if (key := f"{name}_{unit}") in self), None)
        return None if key is None else {one: ns for one, ns in self.under(key).parts(known).items() if ns}

    def parts(self, known: Collection[str]) -> dict[str, int]:
        """All of its fields as parts of the window.

        A key that is none of `known` is refused: without it the whole would be another.
        """
        self.known |= {*known}
        if unknown := next((key for key in self.values if key not in known), None):
            raise InputError(f"{self.source}: {self._unknown(unknown)}")
        return {key: ns for key in self.values if (ns := self.part(key)) is not None}

    def part(self, key: str) -> int | None:
        """A fraction of the window, or a length of it, in ns of `WINDOW_NS`."""
        if not (self.in_ns or key.endswith("_ns")):
            frac = self.share(key)
            return None if frac is None else round(frac * WINDOW_NS)
        ns = self.number(key)
        if not ns:
            return None if ns is None else 0
        if not self.window_ns:
            self.refuse(key, "is in ns, so give budget_ns.window too, or give it as a part, with _frac")
        if ns > self.window_ns * ROUNDED:
            self.refuse(key, "is longer than budget_ns.window")
        return min(WINDOW_NS, round(ns / self.window_ns * WINDOW_NS))

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
    return Fields(source, "", value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
