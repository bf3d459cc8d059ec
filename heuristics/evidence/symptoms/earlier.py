"""Walls and verdict of an earlier result, taken as they stand: its trace is not looked at again."""

from typing import TypeVar

import msgspec

from heuristics.evidence.symptoms.fields import Fields
from heuristics.result.judged import Verdict, Wall
from heuristics.run.run import WALL_IDS
from heuristics.walls.wall import Evidence, WallJudgement, unmeasurable
from traces.errors import InputError
from traces.missing import Missing, known

T = TypeVar("T")
_GAP = Missing("", "the earlier result does not name it", "run analyze again")


def read_walls(document: Fields) -> tuple[WallJudgement, ...]:
    """All four walls in the order of the workflow, those not named unmeasurable; none where none is named."""
    listed = _section(document, "walls", tuple[Wall, ...])
    verdict = read_verdict(document)
    does_not_fit = verdict is not None and verdict.does_not_fit
    found = {wall.id: _wall(wall, does_not_fit) for wall in listed or ()}
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


def _wall(wall: Wall, does_not_fit: bool) -> WallJudgement:
    return WallJudgement(
        wall.id,
        wall.outcome,
        known(wall.cost_ns),
        known(wall.cost_frac),
        known(wall.cost_by_kind_ns) or {},
        (),
        tuple(msgspec.convert(one, Evidence, from_attributes=True) for one in wall.evidence),
        comes_first=does_not_fit and wall.id == "memory",
        missing=wall.missing,
        cure=wall.cure,
        at_most_frac=known(wall.at_most_frac),
    )
