"""What a log or the user says of memory: a run that ran out of it, or is known to be tight, meets that wall.

A trace of a run that does not fit does not exist, and one that barely fits shows no price. Out of memory
comes before any larger wall: what does not fit cannot be tuned. A run that is only tight has the memory wall
where no other stands.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from heuristics.config.about import Given
from heuristics.evidence.evidence import RunEvidence
from heuristics.result.judged import Evidence, Verdict, Wall
from heuristics.walls.bound import TIGHT
from heuristics.walls.confidence import with_confidence
from heuristics.walls.price import held
from heuristics.walls.verdict import verdict_of
from heuristics.words import say
from traces.missing import Missing, known
from traces.sections.tables import WallId
from traces.spelling import spoken
from traces.training_log.log import TrainingLog

_NO_ROOM: Final = Missing("", say("evidence.no-room"), say("evidence.compare-with-room"))


def with_fit(evidence: RunEvidence, given: Given, log: TrainingLog | None = None) -> RunEvidence:
    """The run with its memory wall as log, options and symptoms tell it; as it was where none does."""
    stages = [one.stage for one in log.out_of_memory] if log else []
    if evidence.observed.out_of_memory is not None:
        stages.append(evidence.observed.out_of_memory)
    if stages:
        where = "" if stages[0] == "unknown" else f" in {stages[0].replace('_', ' ')}"
        return _stands(evidence, say("evidence.ran-out", where=where), first=True)
    if given.memory_tight:
        return _stands(evidence, say("evidence.given-tight"), first=False)
    peaks = [one.peak_allocated_bytes or 0 for one in log.memory] if log else []
    used = max(peaks, default=0) / (evidence.observed.memory_bytes or 1)
    if evidence.observed.memory_bytes and used >= TIGHT.value and given.memory_tight is None:
        peak = held("peak_allocated_frac", used, TIGHT)
        return _stands(evidence, say("evidence.near-capacity"), False, (peak,))
    return evidence


def _stands(evidence: RunEvidence, why: str, first: bool, more: tuple[Evidence, ...] = ()) -> RunEvidence:
    walls = tuple(_finding(wall, more) if wall.id == "memory" else wall for wall in evidence.walls)
    return replace(evidence, walls=walls, verdict=_verdict(evidence, walls, why, first))


def _finding(wall: Wall, more: tuple[Evidence, ...]) -> Wall:
    """A finding, whatever its price; a price under a wall's is not what it costs to have no room."""
    found = structs.replace(wall, outcome="finding", evidence=(*wall.evidence, *more), missing=(), cure="")
    if wall.outcome == "finding" and known(wall.cost_frac) is not None:
        return found
    return structs.replace(
        found,
        cost_ns=_NO_ROOM,
        cost_frac=_NO_ROOM,
        cost_by_kind_ns={},
        at_most_frac=_NO_ROOM if known(wall.at_most_frac) is None else wall.at_most_frac,
        missing=(_NO_ROOM.reason,),
        cure=_NO_ROOM.cure,
    )


def _verdict(evidence: RunEvidence, walls: Sequence[Wall], why: str, first: bool) -> Verdict:
    """The old verdict where it still stands, else memory's."""
    found = verdict_of(walls, out_of_memory=first or evidence.verdict.does_not_fit)
    if found.wall != "memory":
        return structs.replace(evidence.verdict, because=(*evidence.verdict.because, why))
    if evidence.verdict.wall == "memory":
        because, short = (why, *evidence.verdict.because), found.does_not_fit
        return structs.replace(evidence.verdict, because=because, does_not_fit=short)
    before: WallId | None = known(evidence.verdict.wall)
    costs = [] if before is None else [say("evidence.when-room", wall=spoken(before))]
    return with_confidence(structs.replace(found, because=(why, *costs), runner_up=before), (), "high")
