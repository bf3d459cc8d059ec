"""Checked values of a document, each named by its path, so that an error says which one it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from traces.errors import NotAResult


class Node:
    """A value of a document and its path. Integers stay integers: a time in ns does not fit a float."""

    def __init__(self, value: Any, path: str = "") -> None:
        self.value, self.path = value, path

    def wrong(self, need: str) -> NoReturn:
        """Raise `NotAResult`: the value is not what it has to be."""
        raise NotAResult(f"{self.path or 'the document'} {need}. Make the result again: moe-diag analyze")

    def under(self, key: str) -> Node:
        """The value at `key` of an object; null where it is absent."""
        return Node(self.mapping().get(key), f"{self.path}.{key}" if self.path else key)

    def each(self) -> Iterator[Node]:
        """The values of a list; none of null."""
        if self.value is None:
            return
        if not isinstance(self.value, list):
            self.wrong("is to be a list")
        for place, value in enumerate(self.value):
            yield Node(value, f"{self.path}[{place}]")

    def mapping(self) -> Mapping[str, Any]:
        """An object; an empty one of null."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            self.wrong("is to be an object")
        return self.value

    def integer(self) -> int:
        """A whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.wrong("is to be a whole number")
        return self.value

    def length_ns(self) -> int:
        """A whole number, 0 or more."""
        if self.integer() < 0:
            self.wrong("is to be 0 or more")
        return self.integer()

    def number(self) -> float:
        """A number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.wrong("is to be a number")
        return self.value

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            self.wrong("is to be text")
        return self.value

    def lengths_ns(self) -> tuple[int, ...]:
        """A list of whole numbers, 0 or more."""
        return tuple(one.length_ns() for one in self.each())

    def texts(self) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(one.text() for one in self.each())

    @property
    def told(self) -> bool:
        """Whether it is there and not null."""
        return self.value is not None
