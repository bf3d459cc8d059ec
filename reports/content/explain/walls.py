"""A wall in words: its definition from its judge, the limits it is held against, the fixes in their order.

Limits are read from the one home each of them has.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final

from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.run.run import WALL_IDS
from heuristics.walls import JUDGES
from reports.content.blocks import Block, Code, Items, Words, items, words
from reports.content.explain.topic import Topic, paragraphs, sentence
from reports.content.names import name_of
from traces import limits
from traces.limits import Limit
from traces.patterns import compiled
from traces.sections.tables import WallId

_PLACE: Final = compiled(r"((?:traces|heuristics)(?:\.[a-z_0-9]+)+)[.:]([A-Z][A-Z_0-9]*)")


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


def shared_by(module: str) -> list[str]:
    """Places of the limits that a module shares with others."""
    held = vars(import_module(module))
    return [place for place in limits_in(limits.__name__) if place.rpartition(":")[2] in held]


def limit_items(places: Iterable[str], title: str = "Limits") -> Iterator[Items]:
    """Each limit once: value, unit, why, and where it lives; nothing where there are none."""
    yield from items(title, map(_limit, dict.fromkeys(places)))


def limit_topics(topic: str) -> Iterator[Topic]:
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


_JUDGE: Final[Mapping[WallId, ModuleType]] = dict(zip(WALL_IDS, JUDGES, strict=True))
_ORDER: Final = ["traces.limits:MOST", "traces.limits:HALF_A_WALL"]
_EVERY_WALL: Final = ("heuristics.walls.price", "heuristics.walls.verdict")
"""Where the limits live that every wall is held against."""
_MEASURED: Final[Mapping[WallId, tuple[str, ...]]] = {
    "memory": (
        "traces.account.host:LARGE",
        "traces.measure.host_copies:RECURS",
    ),
    "communication": (),
    "host_overhead": ("traces.account.waits:TOKEN_COUNT", "traces.limits:LATENCY"),
    "compute": ("traces.limits:LATENCY",),
}
"""Limits of measuring that decide what counts as the wall's overhead."""


def wall_topics() -> Iterator[Topic]:
    for wall in WALL_IDS:
        yield Topic(wall, "wall", partial(_wall, wall), name_of(wall))


def _wall(wall: WallId) -> Iterator[Block]:
    judge = _JUDGE[wall]
    yield from paragraphs(inspect.getdoc(judge) or "")
    order = (words(Code(number), f" {CATALOGUE[number].title}") for number in WALL_ORDER[wall])
    yield from items("Fixes, in the order to try; what its evidence favours comes first", order)
    if levers := [number for number in WALL_ORDER[wall] if CATALOGUE[number].lever]:
        yield from sentence(f"Where there is no wall, {', '.join(levers)} may still help: levers.")
    homes = (*_EVERY_WALL, judge.__name__)
    shared = [place for home in homes for place in shared_by(home)]
    own = [place for home in homes for place in limits_in(home)]
    yield from limit_items([*shared, *own, *_MEASURED[wall]])
    yield from limit_items(_ORDER, "What the order rests on")
