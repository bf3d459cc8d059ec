"""A wall in words: its definition from its judge, the limits it is held against, the fixes in their order."""

import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Final

from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.run.run import WALL_IDS
from heuristics.walls import JUDGES
from reports.content.blocks import Block, Code, words
from reports.content.explain.limits import limit_items, limits_in
from reports.content.explain.topic import Topic, listed, paragraphs, sentence
from reports.content.names import name_of
from traces.sections.tables import WallId

_JUDGE: Final[Mapping[WallId, ModuleType]] = dict(zip(WALL_IDS, JUDGES, strict=True))
_ORDER: Final = ["heuristics.plan.gains:DIRECT", "heuristics.plan.refusals:TOUCHED"]
_EVERY_WALL: Final = ("heuristics.walls.price", "heuristics.walls.verdict")
"""Where the limits live that every wall is held against."""
_MEASURED: Final[Mapping[WallId, tuple[str, ...]]] = {
    "memory": (
        "traces.measure.host_copies:LARGE",
        "traces.measure.host_copies:OFFLOAD_PAIRS",
        "traces.measure.host_copies:RECURS",
        "traces.measure.host_copies:FILLS",
        "traces.measure.recompute:TWICE",
    ),
    "communication": ("heuristics.fixes.needs:WAITING",),
    "host_overhead": ("traces.account.waits:TOKEN_COUNT", "traces.account.device:LATENCY"),
    "compute": ("traces.measure.sm_launches:SMALL_KERNEL", "traces.measure.sm_launches:PERSISTENT_GRID"),
}
"""Limits of measuring that decide what counts as the wall's overhead."""


def wall_topics() -> Iterator[Topic]:
    """The four walls."""
    for wall in WALL_IDS:
        yield Topic(wall, "wall", partial(_wall, wall), name_of(wall))


def _wall(wall: WallId) -> Iterator[Block]:
    judge = _JUDGE[wall]
    yield from paragraphs(inspect.getdoc(judge) or "")
    homes = (*_EVERY_WALL, judge.__name__)
    yield from limit_items([place for home in homes for place in limits_in(home)] + [*_MEASURED[wall]])
    order = (words(Code(number), f" {CATALOGUE[number].title}") for number in WALL_ORDER[wall])
    yield from listed("Fixes, in the order to try; what its evidence favours comes first", order)
    if levers := [number for number in WALL_ORDER[wall] if CATALOGUE[number].lever]:
        yield from sentence(f"Where there is no wall, {', '.join(levers)} may still help: levers.")
    yield from limit_items(_ORDER, "What the order rests on")
