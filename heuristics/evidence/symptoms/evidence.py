"""Symptoms -> what opinions rest on, as `heuristics.evidence.evidence.observe` makes it of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, cast

from heuristics.evidence.evidence import RunEvidence
from heuristics.evidence.symptoms.judged import blocking_frac, exposed_frac, judge_walls, unusable
from heuristics.evidence.symptoms.observed import observed_by
from heuristics.evidence.symptoms.prices import NOT_HOST, recomputed_frac
from heuristics.evidence.symptoms.symptoms import WINDOW_NS, RankSymptoms, Symptoms, mean_of, parts_of
from heuristics.result.judged import Bucket, Reason
from heuristics.run.run import WallId
from heuristics.walls.bound import Bound, LargestBucket, bound_of_most, bound_of_shares
from heuristics.walls.confidence import Confidence, lowered_by
from heuristics.walls.next_wall import NextWall
from heuristics.walls.verdict import Verdict, verdict_of
from heuristics.walls.wall import WallJudgement
from heuristics.walls.words import wall_words
from traces.missing import Missing
from traces.settings.settings import Settings

_RECORD: Final = "record a run and analyze it"


def observed_from(symptoms: Symptoms, settings: Settings | None = None) -> RunEvidence:
    """A run as its symptoms say it was. What they do not say stays unmeasurable.

    `settings`: its configuration, which tells what is recomputed where the symptoms do not.
    """
    ranks = tuple(_as_configured(rank, settings or Settings()) for rank in symptoms.ranks)
    symptoms = replace(symptoms, ranks=ranks)
    walls = judge_walls(symptoms)
    return RunEvidence(
        bound=_bound(symptoms),
        largest=_largest(symptoms),
        walls=walls,
        verdict=_verdict(symptoms, walls),
        observed=replace(
            observed_by(symptoms.ranks),
            late_cause=symptoms.late.cause if symptoms.late else None,
            out_of_memory=symptoms.out_of_memory,
        ),
        window_ns=_window_ns(walls) if symptoms.ranks or symptoms.walls else 0,
    )


def _as_configured(rank: RankSymptoms, settings: Settings) -> RankSymptoms:
    """The rank, with what the configuration recomputes and leaves unfused where the rank does not say it."""
    if rank.permute_fused is None and settings.value("moe_permute_fusion") is False:
        rank = replace(rank, permute_fused=False)
    if "recompute_granularity" not in settings:
        return rank
    if rank.recompute_modules is not None or rank.recompute_full is not None:
        return rank
    granularity, modules = settings.value("recompute_granularity"), settings.value("recompute_modules")
    if granularity == "full":
        return replace(rank, recompute_full=True)
    if granularity is None:
        return replace(rank, recompute_modules=(), recompute_full=False)
    if not isinstance(modules, tuple):
        return replace(rank, recompute_full=False)
    return replace(rank, recompute_modules=tuple(str(one) for one in modules), recompute_full=False)


def _window_ns(walls: Sequence[WallJudgement]) -> int:
    """The window in which a wall's cost is so much time: an earlier result's own, else the one we give."""
    told = [round(wall.cost_ns / wall.cost_frac) for wall in walls if wall.cost_ns and wall.cost_frac]
    return max(told, default=WINDOW_NS)


def _verdict(symptoms: Symptoms, walls: Sequence[WallJudgement]) -> Verdict:
    verdict, told = verdict_of(walls), symptoms.earlier
    if (gap := unusable(symptoms.capture)) is not None:
        return replace(verdict, because=(f"no wall is known: {gap.reason}", gap.cure))
    seen = tuple(_about_ranks(symptoms))
    if verdict.wall is None:
        return replace(verdict, because=(*verdict.because, *seen))
    if told is not None and told.confidence is not None:
        earlier = tuple(Reason("earlier_result", text) for text in told.confidence_because)
        confidence = Confidence(told.confidence, earlier)
    else:
        confidence = lowered_by(
            (
                Reason("symptoms", "given as symptoms, not measured in a trace"),
                *(Reason("unseen_ranks", text) for text in seen),
                *_about_others(verdict.wall, walls),
            )
        )
    because = told.because if told is not None and told.because else verdict.because
    return replace(verdict, because=because, confidence=confidence, following=_next(symptoms, verdict.wall))


def _about_ranks(symptoms: Symptoms) -> Iterator[str]:
    seen, world = symptoms.capture.ranks_seen, symptoms.capture.world_size
    if seen is not None and world is not None and seen < world:
        known = f"{seen} of {world} ranks were seen"
        yield f"{known}: the late rank is unknown; record more ranks of a group"


def _about_others(wall: WallId, walls: Sequence[WallJudgement]) -> Iterator[Reason]:
    blind = [wall_words(one.id) for one in walls if one.id != wall and one.cost_ns is None]
    if blind:
        yield Reason("unmeasured_walls", f"unknown: what {', '.join(blind)} would cost")


def _next(symptoms: Symptoms, wall: WallId) -> NextWall:
    """An earlier result's, else unknown: what is left without a wall has to be replayed."""
    told = symptoms.earlier
    if told is not None and told.next_because:
        gap = None if told.next_wall else Missing("verdict.next_wall", told.next_because, _RECORD)
        return NextWall(told.next_wall, told.next_wall_frac, told.next_because, gap)
    reason = "symptoms cannot be replayed"
    said = f"what comes after {wall_words(wall)} is not known: {reason}"
    return NextWall(None, None, said, Missing("verdict.next_wall", reason, _RECORD))


def _bound(symptoms: Symptoms) -> Bound:
    """Where most of the time goes; by the walls' own time where all of it is said, else by more than half."""
    if (gap := unusable(symptoms.capture)) is not None:
        return Bound(None, gap.reason, gap.cure)
    if symptoms.walls and symptoms.earlier is not None and symptoms.earlier.bound is not None:
        return Bound(symptoms.earlier.bound, f"the earlier result has {wall_words(symptoms.earlier.bound)}")
    ranks = symptoms.ranks
    busy = mean_of(ranks, lambda rank: (rank.budget_frac or {}).get("compute"))
    again = mean_of(ranks, recomputed_frac)
    exposed = mean_of(ranks, exposed_frac)
    blocking = mean_of(ranks, blocking_frac)
    starved = parts_of(ranks, lambda rank: rank.starved_frac)
    waits = exposed if blocking is None else blocking
    if busy is None and exposed is None:
        why = "the budget of the window is missing"
        return Bound(None, why, "give budget_frac: compute, exposed_comm, exposed_copy, idle")
    if busy is None or again is None or waits is None or starved is None:
        shares: dict[WallId, float] = {"compute": busy or 0.0, "communication": exposed or 0.0}
        return bound_of_most(shares)
    copies = mean_of(ranks, lambda rank: rank.offload_exposed_frac) or 0.0
    copies += mean_of(ranks, lambda rank: rank.host_resident_exposed_frac) or 0.0
    arrival = mean_of(ranks, lambda rank: rank.arrival_frac) or 0.0
    return bound_of_shares(
        {
            "compute": max(0.0, busy - again),
            "communication": waits,
            "host_overhead": sum(part for cause, part in starved.items() if cause not in NOT_HOST) + arrival,
            "memory": again + copies + starved.get("allocator", 0.0),
        }
    )


def _largest(symptoms: Symptoms) -> LargestBucket | None:
    """The largest bucket that is said."""
    budget = parts_of(symptoms.ranks, lambda rank: rank.budget_frac)
    if not budget:
        return None
    name = max(budget, key=lambda bucket: budget[bucket])
    return LargestBucket(cast(Bucket, name), budget[name])
