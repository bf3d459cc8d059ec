"""Verdict, walls and fixes in the document, and what could not be told of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heuristics import Judgement
from heuristics.choosers.choices import Choice
from heuristics.planned import Planned, Refused
from heuristics.verdict import Verdict
from heuristics.walls.wall import WallJudgement
from reports.document_config import checked_section
from traces.missing import Missing

if TYPE_CHECKING:
    from heuristics.room import Room


def judged_sections(judgement: Judgement) -> dict[str, Any]:
    """Verdict, walls, and what to try."""
    plan = judgement.plan
    return {
        "verdict": verdict_section(judgement),
        "walls": [wall_section(wall) for wall in judgement.walls],
        "fixes": _fix_sections(judgement, plan.fixes),
        "levers": _fix_sections(judgement, plan.levers),
        "combined": [{"ids": list(one.ids), "gain_frac": list(one.gain_frac)} for one in judgement.combined],
        "refused": [refused_section(one) for one in plan.refused],
        "choices": [choice_section(choice) for choice in judgement.choices],
        "forced_routing": judgement.forced_routing,
    }


def verdict_section(judgement: Judgement) -> dict[str, Any]:
    """The contract's `verdict`."""
    verdict = judgement.verdict
    confidence = verdict.confidence
    return {
        "wall": verdict.wall,
        "kind": verdict.kind,
        "bound": judgement.bound.bucket,
        "tied_with": list(verdict.tied_with),
        "runner_up": verdict.runner_up,
        "confidence": confidence.level if confidence else None,
        "confidence_because": list(confidence.because) if confidence else [],
        "because": [*verdict.because, judgement.bound.because],
        "next_wall": verdict.following.wall if verdict.following else None,
        "next_wall_frac": verdict.following.frac if verdict.following else None,
        "next_because": verdict.following.because if verdict.following else "",
        "startup_ns": judgement.startup.left_out_ns if judgement.startup else 0,
        "largest_bucket": judgement.largest.bucket,
        "largest_bucket_frac": judgement.largest.frac,
        "confidence_reasons": [
            {"id": one.id, "text": one.text} for one in (confidence.reasons if confidence else ())
        ],
        "does_not_fit": judgement.run.does_not_fit,
    }


def wall_section(wall: WallJudgement) -> dict[str, Any]:
    """One of the contract's `walls`; an unmeasurable one has neither cost nor kinds."""
    told = wall.outcome != "unmeasurable"
    return {
        "id": wall.id,
        "outcome": wall.outcome,
        "cost_ns": wall.cost_ns if told else None,
        "cost_frac": wall.cost_frac if told else None,
        "cost_by_kind_ns": dict(wall.cost_by_kind_ns) if told else None,
        "at_most_frac": wall.cost_frac if wall.at_most_frac is None else wall.at_most_frac,
        "evidence": [asdict(one) for one in wall.evidence],
        "missing": list(wall.missing),
        "cure": wall.cure,
    }


def _fix_sections(judgement: Judgement, several: Sequence[Planned]) -> list[dict[str, Any]]:
    rooms = judgement.told.rooms if judgement.told else {}
    return [fix_section(one, checked_section(judgement, one), rooms.get(one.fix.id)) for one in several]


def fix_section(
    planned: Planned, checked: Sequence[Mapping[str, str]] = (), room: Room | None = None
) -> dict[str, Any]:
    """One of the contract's `fixes`. The gain's lower end is None where the fix itself was not replayed.

    `checked`: what each tier says of it; `room`: whether it fits the memory.
    """
    fix, ceiling = planned.fix, planned.ceiling_frac
    return {
        "id": fix.id,
        "wall": fix.wall,
        "title": fix.title,
        "knobs": {key: list(value) for key, value in asdict(planned.knobs).items()},
        "versions": fix.versions,
        "preconditions": [asdict(one) for one in planned.preconditions],
        "checked": [dict(one) for one in checked],
        "after": list(planned.after),
        "room": asdict(room) if room else None,
        "gain_frac": None if ceiling is None else [planned.low_frac, ceiling],
        "gain_source": "; ".join(f"{gain.text} ({gain.source})" for gain in fix.gains) or None,
        "shares_with": list(planned.shares_with),
        "side_effects": list(fix.side_effects),
        "verify": fix.verify,
        "sources": list(fix.sources),
    }


def refused_section(refused: Refused) -> dict[str, Any]:
    """One of the contract's `refused`."""
    fix = refused.fix
    return {
        "id": fix.id,
        "wall": fix.wall,
        "title": fix.title,
        "because": refused.because,
        "unlocked_by": refused.unlocked_by,
        "source": refused.source or "; ".join(fix.sources),
        "kind": refused.kind,
    }


def choice_section(choice: Choice) -> dict[str, Any]:
    """What the guides choose: `about`, `answer`, the `rule` that fired, and what their other edition says."""
    values = asdict(choice)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def verdict_gaps(judgement: Judgement) -> Iterator[Missing]:
    """An entry for every None above."""
    verdict: Verdict = judgement.verdict
    cure = next((wall.cure for wall in judgement.walls if wall.cure), "none is needed")
    yield from _next_gaps(verdict)
    if verdict.wall is None:
        for key in ("wall", "confidence"):
            yield Missing(f"verdict.{key}", verdict.because[0], cure)
    if verdict.kind is None:
        yield Missing(
            "verdict.kind", "no wall, so it has no kind" if verdict.wall is None else "not split", cure
        )
    if verdict.runner_up is None:
        yield Missing("verdict.runner_up", "no other wall costs anything that could be measured", cure)
    for place, wall in enumerate(judgement.walls):
        if wall.outcome == "unmeasurable" or wall.cost_ns is None:
            yield Missing(f"walls[{place}]", "; ".join(wall.missing), wall.cure)
        yield from _evidence_gaps(f"walls[{place}].evidence", wall)
    rooms = judgement.told.rooms if judgement.told else {}
    for name, plan in (("fixes", judgement.plan.fixes), ("levers", judgement.plan.levers)):
        for place, planned in enumerate(plan):
            if planned.low_frac is None:
                cure = "compare with a recording that has the change"
                yield Missing(f"{name}[{place}].gain_frac", planned.low_because, cure)
            if planned.fix.id not in rooms:
                why = "it moves no memory that an estimate tells, or no configuration was given"
                yield Missing(f"{name}[{place}].room", why, "--config FILE and --log FILE")
            if not planned.fix.gains:
                none = "no measurement of this change is published with its shape"
                yield Missing(f"{name}[{place}].gain_source", none, "measure it on one run of your own")


def _next_gaps(verdict: Verdict) -> Iterator[Missing]:
    """Why no next wall is named: there is none, or it cannot be seen."""
    following = verdict.following
    if following is None:
        gap = Missing("", "no wall, so none comes after it", "none is needed")
    elif following.wall is None:
        gap = following.missing or Missing("", following.because, "none is needed")
    else:
        return
    for key in ("next_wall", "next_wall_frac"):
        yield Missing(f"verdict.{key}", gap.reason, gap.cure)


def _evidence_gaps(path: str, wall: WallJudgement) -> Iterator[Missing]:
    for place, one in enumerate(wall.evidence):
        if any(value is None for value in asdict(one).values()):
            why = "no limit is held against it, or no single place shows it"
            yield Missing(f"{path}[{place}]", why, "none is needed")
