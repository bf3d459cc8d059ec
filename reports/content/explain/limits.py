"""Limits in words, read from the one home each of them has."""

import inspect
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from reports.content.blocks import Block, Code, Items, Words, words
from reports.content.explain.topic import Topic, listed, sentence
from traces.limits import Limit

_PLACE: Final = re.compile(r"((?:traces|heuristics)(?:\.[a-z_0-9]+)+)[.:]([A-Z][A-Z_0-9]*)")


def limit_at(place: str) -> Limit:
    """The limit at `module:NAME`. Raises `TypeError` where something else is there."""
    module, _, name = place.partition(":")
    limit = getattr(import_module(module), name)
    if not isinstance(limit, Limit):
        raise TypeError(f"{place} is no limit")
    return limit


def limits_in(module: str) -> list[str]:
    """Places of all limits that have their home in a module, in its order; one only imported has another."""
    held = import_module(module)
    own = inspect.get_annotations(held)
    return [f"{module}:{name}" for name in own if isinstance(getattr(held, name, None), Limit)]


def limit_items(places: Iterable[str], title: str = "Limits") -> Iterator[Items]:
    """Each limit once: value, unit, why, and where it lives; nothing where there are none."""
    yield from listed(title, map(_limit, dict.fromkeys(places)))


def limit_topics(topic: str) -> Iterator[Topic]:
    """The limit that is written out as `traces.module.NAME`."""
    found = _PLACE.fullmatch(topic.strip())
    if found and find_spec(found[1].rpartition(".")[0]) and find_spec(found[1]):
        place = f"{found[1]}:{found[2]}"
        if place in limits_in(found[1]):
            yield Topic(place.replace(":", "."), "limit", lambda: _alone(place))


def _alone(place: str) -> Iterator[Block]:
    limit = limit_at(place)
    yield from sentence(f"{_value(limit)}.")
    yield from sentence(f"{limit.because.rstrip('.')}.", "Why")


def _limit(place: str) -> Words:
    limit = limit_at(place)
    return words(f"{_value(limit)}: {limit.because} (", Code(place.replace(":", ".")), ")")


def _value(limit: Limit) -> str:
    value = f"{limit.value:,.0f}" if float(limit.value).is_integer() else f"{limit.value:.3g}"
    return f"{value} {limit.unit}"
