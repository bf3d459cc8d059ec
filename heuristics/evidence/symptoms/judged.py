"""Each wall by its symptoms: the price they say, against the wall's own limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from heuristics.evidence.symptoms.prices import PRICES, to_give
from heuristics.evidence.symptoms.symptoms import Capture, RankSymptoms, Symptoms, mean_of, most_of
from heuristics.run.run import WALL_IDS, WallId
from heuristics.walls.memory import RETRIES
from heuristics.walls.wall import Evidence, WallJudgement, judged, unmeasurable
from heuristics.walls.words import percent
from traces.limits import Limit
from traces.missing import Missing
from traces.names.kinds import COMM_KINDS

PERTURBED: Final = Limit(
    0.10,
    "of the step without a profiler",
    "ours: as much as a wall, so any wall may be the profiler's making",
)
CALLS_OF_A_RETRY: Final = Limit(2, "allocator calls a step", "memory is freed and allocated again")
_UNIT: Final = "fraction of the windows"


def judge_walls(symptoms: Symptoms) -> tuple[WallJudgement, ...]:
    """Every wall of a run, in the order of the workflow; an earlier result's as they stand."""
    if (gap := unusable(symptoms.capture)) is not None:
        return tuple(unmeasurable(wall, gap) for wall in WALL_IDS)
    if symptoms.walls:
        return symptoms.walls
    return tuple(_judge(wall, symptoms) for wall in WALL_IDS)


def unusable(capture: Capture) -> Missing | None:
    """Why nothing recorded so can tell a wall, and what to record; None where it can."""
    perturbed = capture.perturbation_frac
    if perturbed is not None and perturbed > PERTURBED.value:
        reason = f"the capture is perturbed: the profiler made the step {percent(perturbed)} longer"
        cure = "record again with less: -s none -t nvtx,cuda, few steps, and compare with the log's step time"
        return Missing("symptoms.capture.perturbation_frac", reason, cure)
    if capture.missing_events:
        reason = "events are missing from the capture, so what seems idle or exposed may be work"
        return Missing("symptoms.capture.missing_events", reason, "record again, fewer steps at a time")
    return None


def _judge(wall: WallId, symptoms: Symptoms) -> WallJudgement:
    price = PRICES[wall](symptoms.ranks, symptoms.late)
    evidence = [one for one in _EVIDENCE[wall](symptoms.ranks) if one is not None]
    if isinstance(price, Missing):
        found = unmeasurable(wall, price, evidence)
    else:
        found = judged(wall, price, evidence)
        found = replace(found, evidence=tuple(replace(one, rank=None) for one in found.evidence))
    return _with_capacity(found, symptoms) if wall == "memory" else found


def _with_capacity(found: WallJudgement, symptoms: Symptoms) -> WallJudgement:
    """Hard evidence that the run does not fit comes first; below the limit, room has to be known."""
    retried = most_of(symptoms.ranks, _retried)
    if retried is not None:
        shown = Evidence("allocator_retry_frac", retried, RETRIES.unit, RETRIES.value, RETRIES.because)
        found = replace(found, evidence=(*found.evidence, shown))
    if retried is not None and retried >= RETRIES.value:
        return replace(found, outcome="finding", comes_first=True, missing=(), cure="")
    used = [rank.peak_bytes is not None and rank.capacity_bytes is not None for rank in symptoms.ranks]
    if found.outcome == "clear" and not any(used):
        reason = "free GPU memory is unknown: peak and capacity are missing"
        return replace(found, outcome="unmeasurable", missing=(reason,), cure=to_give("memory"))
    return found


def _retried(rank: RankSymptoms) -> float | None:
    """Part of the steps in which memory is given back and taken again; by its calls, at most so many."""
    if rank.allocator_retry_frac is not None or rank.allocator_calls_per_step is None:
        return rank.allocator_retry_frac
    return min(1.0, rank.allocator_calls_per_step / CALLS_OF_A_RETRY.value)


def _memory(ranks: Sequence[RankSymptoms]) -> Iterator[Evidence | None]:
    again = "what is computed a second time"
    yield _context("recompute_frac", mean_of(ranks, lambda rank: rank.recompute_frac), again)
    offload = mean_of(ranks, lambda rank: rank.offload_exposed_frac)
    yield _context("offload_exposed_frac", offload, "exposed offload copies")
    resident = mean_of(ranks, lambda rank: rank.host_resident_exposed_frac)
    yield _context("host_resident_exposed_frac", resident, "exposed copies of what lives in host memory")
    allocator = mean_of(ranks, lambda rank: rank.allocator_frac)
    yield _context("allocator_frac", allocator, "host time in allocator calls")


def _communication(ranks: Sequence[RankSymptoms]) -> Iterator[Evidence | None]:
    yield _context("exposed_comm_frac", mean_of(ranks, exposed_frac), "an upper bound of its cost")
    why = "what a fix could recover while the host stays ahead"
    yield _context("blocking_comm_frac", mean_of(ranks, blocking_frac), why)
    yield _context("hidden_comm_frac", mean_of(ranks, hidden_frac), "runs under compute")


def _host(ranks: Sequence[RankSymptoms]) -> Iterator[Evidence | None]:
    starved = mean_of(
        ranks, lambda rank: None if rank.starved_frac is None else sum(rank.starved_frac.values())
    )
    yield _context("launch_starved_frac", starved, "no compute ran and none was launched")
    graphs = most_of(ranks, lambda rank: rank.graph_frac)
    why = "kernel work inside CUDA graphs, which the host launches at once"
    yield _context("graph_share_frac", graphs, why, "fraction of kernel work")


def _compute(ranks: Sequence[RankSymptoms]) -> Iterator[Evidence | None]:
    told = [rank.fill_frac for rank in ranks if rank.fill_frac is not None]
    why = "blocks against what the SMs hold, of the rank that fills least; persistent kernels apart"
    yield _context("fill_frac", min(told, default=None), why, "fraction of the SMs")
    under = most_of(ranks, lambda rank: rank.under_filled_frac)
    yield _context(
        "under_filled_frac", under, "kernels with fewer blocks than SMs", "fraction of compute work"
    )


_EVIDENCE: Final[dict[WallId, Callable[[Sequence[RankSymptoms]], Iterator[Evidence | None]]]] = {
    "memory": _memory,
    "communication": _communication,
    "host_overhead": _host,
    "compute": _compute,
}


def _context(measure: str, value: float | None, why: str, unit: str = _UNIT) -> Evidence | None:
    return None if value is None else Evidence(measure, value, unit, None, why)


def exposed_frac(rank: RankSymptoms) -> float | None:
    """Exposed communication of a rank, by whatever says it."""
    whole = (rank.budget_frac or {}).get("exposed_comm")
    if whole is not None or rank.exposed_by_kind_frac is None:
        return whole
    return sum(rank.exposed_by_kind_frac.values())


def blocking_frac(rank: RankSymptoms) -> float | None:
    """Communication that compute waits for."""
    if rank.blocking_frac is None:
        return None
    return sum(part for kind, part in rank.blocking_frac.items() if kind in COMM_KINDS)


def hidden_frac(rank: RankSymptoms) -> float | None:
    """Communication that runs under compute."""
    if rank.hidden_frac is not None or rank.hidden_by_kind_frac is None:
        return rank.hidden_frac
    return sum(rank.hidden_by_kind_frac.values())
