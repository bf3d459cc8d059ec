"""A wall in words: its definition from its judge, the limits it is held against, the fixes in their order."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Final

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.plan import LEVERS, WALL_ORDER
from heuristics.run import WALL_IDS, WallId
from heuristics.walls import JUDGES
from reports.explain_limits import item, limit_lines, limits_in
from reports.layout import wrap
from reports.words import wall_words

_JUDGE: Final[Mapping[WallId, ModuleType]] = dict(zip(WALL_IDS, JUDGES, strict=True))
_EVERY_WALL: Final = ("heuristics.walls.price", "heuristics.verdict")
"""Where the limits live that every wall is held against."""
_MEASURED: Final[Mapping[WallId, tuple[str, ...]]] = {
    "memory": (
        "traces.measure.host_copies:LARGE",
        "traces.measure.host_copies:OFFLOAD_PAIRS",
        "traces.measure.host_copies:RECURS",
        "traces.measure.host_copies:FILLS",
        "traces.measure.recompute:TWICE",
    ),
    "communication": ("heuristics.fixes.preconditions:WAITING",),
    "host_overhead": ("traces.account.waits:TOKEN_COUNT", "traces.account.device:LATENCY"),
    "compute": ("traces.measure.sm_launches:SMALL_KERNEL", "traces.measure.sm_launches:PERSISTENT_GRID"),
}
"""Limits of measuring that decide what counts as the wall's handicap."""


def wall_lines(wall: WallId) -> Iterator[str]:
    """Lines of one wall."""
    judge = _JUDGE[wall]
    yield f"{wall_words(wall)} (wall)"
    yield from paragraphs(judge)
    homes = (*_EVERY_WALL, judge.__name__)
    yield from limit_lines([place for home in homes for place in limits_in(home)] + [*_MEASURED[wall]])
    yield from ("", "Fixes, in the order to try; what its evidence favours comes first")
    for number in WALL_ORDER[wall]:
        yield from item(f"{number} {CATALOGUE[number].title}")
    if any(number in LEVERS for number in WALL_ORDER[wall]):
        yield from wrap(f"Where no wall stands, {' and '.join(LEVERS)} still help: levers.", "  ")
    yield from limit_lines(limits_in("heuristics.plan"), "What the order rests on")


def paragraphs(module: ModuleType) -> Iterator[str]:
    """A module's own words, each paragraph wrapped anew."""
    for paragraph in inspect.cleandoc(module.__doc__ or "").split("\n\n"):
        yield ""
        for sentence in _references(" ".join(paragraph.split())):
            yield from wrap(sentence, "  ")


def _references(paragraph: str) -> list[str]:
    """References stand on a line of their own."""
    before, found, after = paragraph.partition("References: ")
    return [part for part in (before.strip(), f"{found}{after}".strip()) if part]
