"""Walls and verdict of an earlier result, taken as they stand: its trace is not looked at again."""

from typing import TypeVar

import msgspec

from heuristics.evidence.symptoms.fields import Fields
from heuristics.result.judged import Verdict, Wall
from heuristics.run.run import WALL_IDS
from heuristics.walls.price import unmeasurable
from traces.errors import InputError
from traces.missing import Missing

T = TypeVar("T")
_GAP = Missing("", "the earlier result does not name it", "run analyze again")


def read_walls(document: Fields) -> tuple[Wall, ...]:
    """All four walls in the order of the workflow, those not named unmeasurable; none where none is named."""
    listed = _section(document, "walls", tuple[Wall, ...])
    found = {wall.id: _open(wall) for wall in listed or ()}
    return tuple(found.get(wall) or unmeasurable(wall, _GAP) for wall in WALL_IDS) if found else ()


def read_verdict(document: Fields) -> Verdict | None:
    """What the result makes of its walls; which of them it is follows from the walls."""
    return _section(document, "verdict", Verdict)


def _section(document: Fields, key: str, kind: type[T]) -> T | None:
    value = document.values.get(key)
    try:
        return None if value is None else msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{document.source}: {key} is to be as a result has it: {error}") from None


def _open(wall: Wall) -> Wall:
    """The wall with its gaps as it words them; room in memory is the new run's."""
    gap = Missing("", "; ".join(wall.missing), wall.cure)
    none: Missing | dict[str, int] = gap if wall.outcome == "unmeasurable" else {}
    return Wall(
        wall.id,
        wall.outcome,
        gap if wall.cost_ns is None else wall.cost_ns,
        gap if wall.cost_frac is None else wall.cost_frac,
        none if wall.cost_by_kind_ns is None else wall.cost_by_kind_ns,
        gap if wall.at_most_frac is None else wall.at_most_frac,
        wall.evidence,
        wall.missing,
        wall.cure,
    )
