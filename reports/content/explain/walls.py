"""A wall in words: its definition from its judge, the limits it is held against, the fixes in their
order.

Limits are read from the one home each of them has.
"""

import inspect
from collections.abc import Iterable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.run.run import WALL_IDS
from heuristics.walls import JUDGES
from reports.content.blocks import Blocks, Code, Items, items, words
from reports.content.explain.topic import Topic, paragraphs, sentence, sentences
from reports.content.names import name_of, optional
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
    """Places of all limits that have their home in a module, in its order; one only imported has
    another.
    """
    loaded = import_module(module)
    own = inspect.get_annotations(loaded)
    return [f"{module}:{name}" for name in own if isinstance(getattr(loaded, name, None), Limit)]


def limit_items(places: Iterable[str], title: str = "Limits") -> Iterator[Items]:
    """Each limit once: value, unit, why, and where it lives; nothing where there are none."""
    listed = []
    for place in dict.fromkeys(places):
        limit = limit_at(place)
        listed.append(
            words(f"{_value(limit)}: {limit.because} (", Code(place.replace(":", ".")), ")")
        )
    yield from items(title, listed)


def limit_topics(topic: str) -> Iterator[Topic]:
    place_match = _PLACE.fullmatch(topic.strip())
    if place_match and find_spec(place_match[1].rpartition(".")[0]) and find_spec(place_match[1]):
        place = f"{place_match[1]}:{place_match[2]}"
        if place in limits_in(place_match[1]):
            limit = limit_at(place)
            labelled = ("", f"{_value(limit)}."), ("Why", f"{limit.because.rstrip('.')}.")
            yield Topic(place.replace(":", "."), "limit", partial(sentences, *labelled))


def _value(limit: Limit) -> str:
    value = f"{limit.value:,.0f}" if float(limit.value).is_integer() else f"{limit.value:.3g}"
    return f"{value} {limit.unit}"


_JUDGE: Final = dict(zip(WALL_IDS, JUDGES, strict=True))
_EVERY_WALL: Final = (
    "traces.limits:WALL",
    "traces.limits:HALF_A_WALL",
    "traces.limits:LITTLE",
    "traces.limits:FEWEST",
    "heuristics.walls.verdict:NEAR",
)
"""The limits that every wall is held against."""
_MEASURED: Final[dict[WallId, tuple[str, ...]]] = {
    "memory": ("traces.account.host:LARGE", "traces.measure.host_copies:RECURS"),
    "communication": (),
    "host_overhead": ("traces.account.waits:TOKEN_COUNT", "traces.limits:LATENCY"),
    "compute": ("traces.limits:LATENCY",),
}
"""Limits of measuring that decide what counts as the wall's overhead."""


def wall_topics() -> Iterator[Topic]:
    for wall in WALL_IDS:
        yield Topic(wall, "wall", partial(_wall, wall), name_of(wall))


def _wall(wall: WallId) -> Blocks:
    judge = _JUDGE[wall]
    yield from paragraphs(inspect.getdoc(judge) or "")
    order, levers = [], []
    for number in WALL_ORDER[wall]:
        order.append(words(Code(number), f" {CATALOGUE[number].title}"))
        if CATALOGUE[number].lever:
            levers.append(number)
    yield from items("Fixes, in the order to try; what its evidence favours comes first", order)
    yield from sentence(
        optional("Where there is no wall, {} may still help: levers.", levers, ", ".join)
    )
    yield from limit_items([*_EVERY_WALL, *limits_in(judge.__name__), *_MEASURED[wall]])
    yield from limit_items(
        ["traces.limits:MOST", "traces.limits:HALF_A_WALL"],
        "First what acts on most of the wall's cost; not what acts on less than half a wall of it",
    )
