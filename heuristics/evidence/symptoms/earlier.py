"""Walls and verdict of an earlier result, taken as they stand: its trace is not looked at again."""

from __future__ import annotations

from typing import Final, get_args

from heuristics.evidence.symptoms.fields import Fields
from heuristics.evidence.symptoms.symptoms import WINDOW_NS, EarlierVerdict
from heuristics.result.judged import Level
from heuristics.run.run import WALL_IDS, WallId
from heuristics.walls.memory import RETRIES
from heuristics.walls.wall import Evidence, Outcome, WallJudgement, unmeasurable
from traces.missing import Missing

_RETRIED: Final = "allocator_retry_frac"


def read_walls(document: Fields) -> tuple[WallJudgement, ...]:
    """All four walls in the order of the workflow, those not named unmeasurable; none where none is named."""
    found: dict[WallId, WallJudgement] = {}
    for fields in document.each("walls"):
        wall = _wall_id(fields, "id")
        if wall is None:
            fields.refuse("id", f"is to be one of {', '.join(WALL_IDS)}")
        found[wall] = _wall(fields, wall)
    if not found:
        return ()
    gap = Missing("", "the earlier result does not name it", "run analyze again")
    return tuple(found.get(wall) or unmeasurable(wall, gap) for wall in WALL_IDS)


def read_verdict(fields: Fields) -> EarlierVerdict:
    """What the result says of its verdict; which wall it is follows from the walls."""
    confidence = fields.text("confidence", get_args(Level))
    return EarlierVerdict(
        bound=_wall_id(fields, "bound"),
        confidence=next((level for level in get_args(Level) if level == confidence), None),
        confidence_because=fields.texts("confidence_because") or (),
        because=fields.texts("because") or (),
        next_wall=_wall_id(fields, "next_wall"),
        next_wall_frac=fields.share("next_wall_frac"),
        next_because=fields.text("next_because") or "",
    )


def _wall_id(fields: Fields, key: str) -> WallId | None:
    told = fields.text(key, WALL_IDS)
    return next((wall for wall in WALL_IDS if wall == told), None)


def _wall(fields: Fields, wall: WallId) -> WallJudgement:
    outcome = fields.text("outcome", get_args(Outcome))
    if outcome is None:
        fields.refuse("outcome", f"is to be one of {', '.join(get_args(Outcome))}")
    told: Outcome = next(one for one in get_args(Outcome) if one == outcome)
    frac, ns = fields.share("cost_frac"), fields.number("cost_ns")
    if told != "unmeasurable" and frac is None:
        fields.refuse("cost_frac", "is missing for a wall that could be measured")
    if ns is None and frac is not None:
        ns = frac * WINDOW_NS
    kinds = fields.under("cost_by_kind_ns")
    by_kind = {kind: round(kinds.number(kind) or 0) for kind in kinds.values}
    evidence = tuple(_evidence(one) for one in fields.each("evidence"))
    retried = [one.value for one in evidence if one.measure == _RETRIED]
    return WallJudgement(
        wall,
        told,
        None if ns is None else round(ns),
        frac,
        by_kind,
        (),
        evidence,
        comes_first=told == "finding" and wall == "memory" and max(retried, default=0.0) >= RETRIES.value,
        missing=fields.texts("missing") or (),
        cure=fields.text("cure") or "",
    )


def _evidence(fields: Fields) -> Evidence:
    measure, value = fields.text("measure"), fields.number("value", least=float("-inf"))
    if measure is None or value is None:
        fields.refuse("value", "is missing, with its measure")
    return Evidence(
        measure,
        value,
        fields.text("unit") or "",
        fields.number("limit", least=float("-inf")),
        fields.text("because") or "",
        fields.count("start_ns"),
        fields.count("end_ns"),
        fields.count("step"),
        fields.count("rank"),
    )
