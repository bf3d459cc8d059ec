"""Symptoms -> what opinions rest on, as `heuristics.evidence.evidence.observe` makes it of a trace.

Each wall costs what the given figures say, in place of a replay; the walls' own limits judge it.
"""

from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.config.view import Config
from heuristics.evidence.evidence import RunEvidence
from heuristics.evidence.observed import observed_by
from heuristics.evidence.symptoms.document import Recorded
from heuristics.evidence.symptoms.given_rank import NOTHING, WINDOW_NS
from heuristics.evidence.symptoms.prices import prices_of
from heuristics.evidence.symptoms.symptoms import Symptoms
from heuristics.figures.figures import Figures, compute_again_ns, frac_of
from heuristics.result.judged import Level, Reason, Verdict, Walls
from heuristics.run.run import WALL_IDS
from heuristics.walls import judge_walls
from heuristics.walls.bound import Bound, find_bound, largest_bucket, unproven_by_figures
from heuristics.walls.confidence import about_others, with_confidence
from heuristics.walls.next_wall import with_next
from heuristics.walls.price import unmeasurable
from heuristics.walls.verdict import verdict_of
from heuristics.words import say
from traces.limits import WALL
from traces.missing import Missing, known
from traces.sections.tables import WallId
from traces.settings.settings import Settings
from traces.spelling import spoken


def observed_from(symptoms: Symptoms, settings: Settings | None = None) -> RunEvidence:
    """A run as its symptoms show it. What they do not give stays unmeasurable.

    `settings`: its configuration, which tells what is recomputed where the symptoms do not.
    """
    config = Config(Given(), Observed(), settings or Settings())
    ranks = tuple(_as_configured(rank, config) for rank in symptoms.ranks) or (NOTHING,)
    is_told = bool(symptoms.ranks or symptoms.walls)
    symptoms, gap = replace(symptoms, ranks=ranks), _unusable(symptoms.capture)
    if gap is not None:
        walls = tuple(unmeasurable(wall, gap) for wall in WALL_IDS)
    else:
        walls = symptoms.walls or judge_walls(ranks, prices_of(symptoms))
    bound = _bound(symptoms, gap)
    return RunEvidence(
        bound=bound,
        largest=largest_bucket(ranks),
        walls=walls,
        verdict=_verdict(symptoms, walls, gap),
        observed=replace(
            observed_by(ranks),
            late_cause=symptoms.late.cause if symptoms.late else None,
            out_of_memory=symptoms.out_of_memory,
        ),
        window_ns=_window_ns(walls) if is_told else 0,
        unproven=unproven_by_figures(ranks, walls, bound) if gap is None else {},
        idle_frac=frac_of(ranks, "idle_ns"),
    )


def _as_configured(rank: Figures, config: Config) -> Figures:
    """The rank, with what the configuration recomputes and leaves unfused where the rank does not
    show it.
    """
    seen, memory = rank.observed, rank.memory
    if seen.permute_fused is None and config.on("moe_permute_fusion") is False:
        seen = replace(seen, permute_fused=False)
    if seen.recompute_modules is None and seen.recompute_full is None:
        full = config.full_recompute
        modules = None if full else config.recompute_modules()
        seen = replace(seen, recompute_full=full, recompute_modules=modules)
    if (
        known(memory.recompute_ns) is None
        and seen.recompute_modules == ()
        and not seen.recompute_full
    ):
        memory = structs.replace(memory, recompute_ns=0)
    return replace(rank, observed=seen, memory=memory, recomputed_ns=compute_again_ns(memory))


def _unusable(capture: Recorded) -> Missing | None:
    """Why nothing recorded so can tell a wall, and what to record; None where it can."""
    perturbed = capture.perturbation_frac
    if perturbed is not None and perturbed > WALL.value:
        reason = say("evidence.perturbed", longer_frac=perturbed)
        return Missing("symptoms.capture.perturbation_frac", reason, say("evidence.record-less"))
    if capture.missing_events:
        reason, cure = say("evidence.missing-events"), say("evidence.fewer-steps")
        return Missing("symptoms.capture.missing_events", reason, cure)
    return None


def _window_ns(walls: Walls) -> int:
    """The windows in which a wall's cost is so much time: an earlier result's own, else those we
    give.
    """
    windows_ns = []
    for wall in walls:
        ns, frac = known(wall.cost_ns), known(wall.cost_frac)
        if ns and frac:
            windows_ns.append(round(ns / frac))
    return max(windows_ns, default=WINDOW_NS)


def _bound(symptoms: Symptoms, gap: Missing | None) -> Bound:
    if gap is not None:
        return Bound(None, gap.reason, gap.cure)
    earlier: WallId | None = known(symptoms.verdict.bound) if symptoms.verdict else None
    if earlier is not None:
        return Bound(earlier, say("evidence.earlier-bound", wall=spoken(earlier)))
    return find_bound(symptoms.ranks)


def _verdict(symptoms: Symptoms, walls: Walls, gap: Missing | None) -> Verdict:
    earlier = symptoms.verdict
    short = bool(symptoms.walls) and earlier is not None and earlier.does_not_fit
    verdict = verdict_of(walls, out_of_memory=short)
    wall: WallId | None = known(verdict.wall)
    if gap is not None:
        return structs.replace(
            verdict, because=(say("evidence.no-wall", reason=gap.reason), gap.cure)
        )
    seen = tuple(_about_ranks(symptoms.capture))
    if wall is None:
        return structs.replace(verdict, because=(*verdict.because, *(row.text for row in seen)))
    verdict = _next(verdict, symptoms, wall)
    level: Level | None = known(earlier.confidence) if earlier else None
    if earlier is not None and level is not None:
        earlier_ones = tuple(Reason("earlier_result", text) for text in earlier.confidence_because)
        return with_confidence(
            structs.replace(verdict, because=earlier.because), earlier_ones, level
        )
    given = Reason("symptoms", say("evidence.given"))
    return with_confidence(verdict, (given, *seen, *about_others(wall, walls)))


def _about_ranks(capture: Recorded) -> Iterator[Reason]:
    seen, world = capture.ranks_seen, capture.world_size
    if seen is not None and world is not None and seen < world:
        yield Reason("unseen_ranks", say("evidence.unseen-ranks", seen=seen, world=world))


def _next(verdict: Verdict, symptoms: Symptoms, wall: WallId) -> Verdict:
    """An earlier result's, else unknown: what is left without a wall has to be replayed."""
    earlier, record = symptoms.verdict, say("evidence.record")
    if earlier is not None and earlier.next_because:
        after: WallId | None = known(earlier.next_wall)
        gap = Missing("", earlier.next_because, record)
        return with_next(verdict, after or gap, known(earlier.next_wall_frac), earlier.next_because)
    gap = Missing("", say("evidence.not-replayed"), record)
    return with_next(verdict, gap, None, say("evidence.next-unknown", wall=spoken(wall)))
