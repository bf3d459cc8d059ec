"""A document's sections, each as a few letters that change when anything in it does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final

import numpy as np
from msgspec import Struct

UNTOLD: Final = frozenset({"tool", "schema_version", "traces", "command", "log_path"})
"""Sections that say where and by what version a document was made."""
REASON, UNIT = "because", "unit"
"""What has a unit and a reason is a limit, or a value beside one: that reason is for people alone."""


def digests(document: Mapping[str, Any]) -> dict[str, str]:
    """A digest of each section; sections of ranks stand by their own names, all ranks in one."""
    sections = {name: value for name, value in document.items() if name not in UNTOLD}
    ranks: list[Mapping[str, Any]] = sections.pop("ranks", None) or []
    names = {name for rank in ranks for name in rank} - {"trace"}
    sections |= {f"ranks.{name}": [rank.get(name) for rank in ranks] for name in names}
    return {name: _digest(value) for name, value in sorted(sections.items()) if value}


def _digest(value: object) -> str:
    hashed = blake2b(digest_size=3)
    for word in _words(value):
        hashed.update(f"{word}\0".encode())
    return hashed.hexdigest()


def _words(value: object) -> Iterable[str]:
    """All there is in a value, in order; floats by nine digits, which every machine computes alike."""
    if names := _fields(value):
        for name in names:
            yield from _words(getattr(value, name))
    elif isinstance(value, Mapping):
        for key, one in sorted(_named(value), key=itemgetter(0)):
            if key != REASON or UNIT not in value:
                yield key
                yield from _words(one)
    elif isinstance(value, np.ndarray):
        yield from map(str, value.ravel().tolist())
    elif isinstance(value, list | tuple):
        yield f"{len(value)}"
        for one in value:
            yield from _words(one)
    elif isinstance(value, set | frozenset):
        yield from sorted(map(str, value))
    elif isinstance(value, Enum):
        yield value.name
    elif callable(value) or type(value).__repr__ is object.__repr__:
        yield getattr(value, "__qualname__", type(value).__name__)
    else:
        yield f"{value:.9g}" if isinstance(value, float) else str(value)


def _named(value: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    return [(" ".join(_words(key)), one) for key, one in value.items()]


def _fields(value: object) -> tuple[str, ...]:
    names: tuple[str, ...] = value.__struct_fields__ if isinstance(value, Struct) else ()
    if is_dataclass(value):
        names = tuple(one.name for one in fields(value))
    return tuple(name for name in names if name != REASON or UNIT not in names)
