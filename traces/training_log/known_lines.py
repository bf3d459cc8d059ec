"""The lines that we know, from `known_lines.toml`: what they are, and which of them a line is."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, TypedDict, cast

from traces.training_log.log import Message

RAISED: Final = "Error: "
"""Stands before the message of every exception."""


@dataclass(frozen=True, slots=True)
class KnownLine:
    """A line by its texts, of which one stands in it, and the files and versions that print it.

    `key`: a literal in each such line, searched for first. Groups of `says` match numbers or listed words.
    """

    id: str
    key: str
    texts: tuple[str, ...]
    says: re.Pattern[str] | None
    source: str


class _Row(TypedDict, total=False):
    id: str
    key: str
    texts: list[str]
    says: str
    source: str


@cache
def known_lines() -> Mapping[str, KnownLine]:
    """Every known line by its id, in the file's order."""
    text = files("traces.training_log").joinpath("known_lines.toml").read_text(encoding="utf-8")
    rows = cast("list[_Row]", tomllib.loads(text)["line"])
    return {
        row["id"]: KnownLine(
            id=row["id"],
            key=row.get("key", RAISED),
            texts=tuple(row["texts"]),
            says=re.compile(row["says"]) if "says" in row else None,
            source=row["source"],
        )
        for row in rows
    }


@cache
def _by_key() -> Mapping[str, tuple[tuple[str, KnownLine], ...]]:
    """Each key: the texts to look for where it was found, and whose they are."""
    lines = known_lines().values()
    return {
        key: tuple((text, known) for known in lines if known.key == key for text in known.texts)
        for key in dict.fromkeys(known.key for known in lines)
    }


def is_raised(line: str) -> bool:
    """Whether a known line is an exception's."""
    return known_lines()[line].key == RAISED


def words() -> tuple[bytes, ...]:
    """The keys, to be searched for in a log."""
    return tuple(key.encode() for key in _by_key())


def message(number: int, text: str) -> Message | None:
    """The line as the first known one; None where it is none."""
    for key, texts in _by_key().items():
        if key not in text:
            continue
        tail = text[text.index(key) :] if key == RAISED else text
        for words, known in texts:
            if words in tail:
                return Message(known.id, number, _said(known, text))
    return None


def _said(known: KnownLine, text: str) -> dict[str, str]:
    found = known.says.search(text) if known.says else None
    return {} if found is None else {name: word for name, word in found.groupdict().items() if word}
