"""Limits in words, read from the one home each of them has."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module

from reports.layout import wrap
from traces.limits import Limit


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


def limit_lines(places: Iterable[str], title: str = "Limits") -> Iterator[str]:
    """Title, then each limit once: value, unit, why, and where it lives; nothing where there are none."""
    unique = list(dict.fromkeys(places))
    if unique:
        yield from ("", title)
    for place in unique:
        limit = limit_at(place)
        value = f"{limit.value:,.0f}" if float(limit.value).is_integer() else f"{limit.value:.3g}"
        yield from item(f"{value} {limit.unit}: {limit.because} ({place.replace(':', '.')})")


def item(text: str) -> list[str]:
    """A wrapped entry of a list."""
    return wrap(f"- {text}", "  ", "    ")
