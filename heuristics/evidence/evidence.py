"""What opinions rest on: walls, verdict and what a run shows, by a trace or by figures that were given.

A trace of a run that does not fit does not exist, and one that barely fits shows no price. So a log or the
user may say of memory what no step shows. Out of memory comes before any larger wall: what does not fit
cannot be tuned. A run that is only tight has the memory wall where no other stands.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, fields, replace
from statistics import median
from typing import Any, Final

from msgspec import structs

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.figures.figures import EXPERT_CLASSES, Ranks, added, figures_of, frac_of
from heuristics.figures.startup import Startup
from heuristics.guides.situation import EP_KINDS
from heuristics.plan.gains import Replayed
from heuristics.result.judged import Bucket, Evidence, Verdict, Wall, Walls
from heuristics.run.repairs import LateRank
from heuristics.run.run import WALL_IDS
from heuristics.walls import judge_walls, replayed_price
from heuristics.walls.bound import Bound, find_bound, largest_bucket, unproven
from heuristics.walls.confidence import with_confidence
from heuristics.walls.memory import without_price
from heuristics.walls.price import Unpriced, costs_of, held
from heuristics.walls.verdict import find_verdict, verdict_of
from heuristics.words import say
from traces.cures import cure
from traces.frozen import frozen
from traces.limits import NEARLY_ALL, WALL, Limit
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.names.frameworks import FRAMEWORKS
from traces.sections.cause import Cause
from traces.sections.run import Run
from traces.sections.tables import WallId
from traces.spelling import counted, spoken
from traces.training_log.log import TrainingLog

OVERLAPPED: Final = Limit(
    0.3,
    "fraction of the communication",
    "ours, below a working overlap's 36.55 %; 0.11 % without (Bridge, skill expert-parallel-overlap)",
)
KERNELS: Final = Limit(
    16,
    "kernels",
    "ours: fewer, without a step, are a test of something; one layer of experts takes 25 to 40, and what "
    "slows it was right in each of four recordings of others",
)
_DATA_PARALLEL: Final = frozenset(("dp_reduce_scatter", "dp_all_gather"))
_REDUCED: Final = _DATA_PARALLEL | {"all_reduce"}
_TRAFFIC: Final[Mapping[str, Collection[str]]] = {
    "ep_active": EP_KINDS,
    "tp_active": ("tp",),
    "pp_active": ("pp_p2p",),
    "cp_active": ("cp",),
    "dp_active": _DATA_PARALLEL,
    "sendrecv_unresolved": ("sendrecv_unresolved",),
}
"""What is observed of a run -> kinds of communication that show it."""


@frozen
class RunEvidence:
    """A run as it was evidence.

    `window_ns`: the windows of the ranks whose costs are known, together; `replayed`: these ranks' costs and
    the changes found in them, none where nothing was replayed. `step_ns`: the median length of the steps
    used, over all ranks; None where no steps were found. `perturbation_frac`: how much longer the profiled
    step is than a step without the profiler, where that is known. `startup`: profiler and start-up time that
    is left out of the windows, where there is much of it. `unproven`: walls whose fixes may help although no
    gain is proven, and why none is. `late`: why ranks wait for each other, by several of them. `idle_frac`:
    the share of the windows in which nothing runs. `grouped_step_ns`: grouped GEMMs of a rank in a mean step,
    None where none ran or no steps were found. `has_unnamed`: much compute is of unknown class.
    """

    bound: Bound
    largest: tuple[Bucket, float] | None
    walls: tuple[Wall, ...]
    verdict: Verdict
    observed: Observed
    window_ns: int
    replayed: tuple[Replayed, ...] = ()
    step_ns: int | None = None
    perturbation_frac: float | None = None
    startup: Startup | None = None
    unproven: Mapping[WallId, Missing] = field(default_factory=dict)
    late: LateRank | None = None
    idle_frac: float | None = None
    grouped_step_ns: int | None = None
    has_unnamed: bool = False


def observe(measurements: Sequence[RankMeasurements], together: Run | None = None) -> RunEvidence:
    """Observe a run by the measurements of all its ranks, at least one; `together`: what several show."""
    ranks, costs, few = figures_of(measurements), costs_of(measurements), too_few(measurements)
    prices = {wall: Unpriced(few) if few is not None else replayed_price(costs, wall) for wall in WALL_IDS}
    walls = judge_walls(ranks, prices)
    replayed = tuple(
        Replayed(one.replays, one.replays.changes, one.start.judged_ns, one.place)
        for one in costs.ranks
        if one.replays is not None
    )
    lengths = [step.end_ns - step.start_ns for rank in measurements for step in rank.steps.used]
    bound, late = _bound(ranks, walls), late_rank(together, ranks) if together else None
    return RunEvidence(
        bound=bound,
        largest=largest_bucket(ranks),
        walls=walls,
        verdict=find_verdict(costs, walls, together),
        observed=_observed(ranks, together, late),
        window_ns=sum(rank.window_ns for rank in replayed),
        replayed=replayed,
        step_ns=round(median(lengths)) if lengths else None,
        startup=costs.startup,
        unproven=unproven(walls, bound),
        late=late,
        idle_frac=frac_of(ranks, "idle_ns"),
        grouped_step_ns=_grouped_step_ns(ranks, sum(len(rank.steps.used) for rank in measurements)),
        has_unnamed=any(one.unnamed_ns for one in costs.ranks),
    )


def _grouped_step_ns(ranks: Ranks, steps: int) -> int | None:
    """Over all ranks and their `steps`; None where a rank tells nothing by class."""
    classes = [rank.by_class_ns for rank in ranks]
    if not steps or any(one is None for one in classes):
        return None
    return sum((one or {}).get("grouped_gemm", 0) for one in classes) // steps or None


def too_few(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why no wall is judged where each rank is one window of few kernels; a window the user gave is judged.

    A graph replay that was recorded whole counts as one kernel.
    """
    most = max(measurements, key=lambda rank: rank.kernel_count + rank.replay_count)
    is_enough = most.kernel_count + most.replay_count >= KERNELS.value
    if is_enough or any(rank.steps.source != "none" for rank in measurements):
        return None
    held = [(most.kernel_count, "kernel"), (most.replay_count, "graph replay")]
    named = ", ".join(counted(count, what) for count, what in held if count)
    return Missing("walls", say("evidence.too-few", work=named), cure("whole_steps", measurements[0].kind))


def _bound(ranks: Ranks, walls: Walls) -> Bound:
    """The bound; none where the partition is of work of which only the host's part was seen."""
    inside = [wall for wall in walls if wall.id != "host_overhead"]
    if all(wall.outcome == "unmeasurable" and known(wall.at_most_frac) is None for wall in inside):
        return Bound(None, inside[0].missing[0], inside[0].cure)
    return find_bound(ranks)


def _observed(ranks: Ranks, together: Run | None, late: LateRank | None) -> Observed:
    """What the ranks show; waiting by several of them, where they separate it, not by what is like it."""
    seen = observed_by(ranks)
    waiting = expert_waiting_frac(together) if together else None
    return replace(
        seen,
        late_cause=late.cause if late else seen.late_cause,
        a2a_waiting_frac=seen.a2a_waiting_frac if waiting is None else waiting,
    )


def late_rank(together: Run, ranks: Ranks) -> LateRank | None:
    """What several ranks found; None where nobody is late, or nobody can tell who."""
    late, without = known(together.late), known(together.without)
    if late is None or late.cause is Cause.NONE:
        return None
    exposed_ns = added(rank.exposed_by_kind_ns for rank in ranks)
    moves = late.cause is Cause.SLOW_LINK  # an overlap hides it; all others wait for a rank to arrive
    waits_ns = {} if moves else together.late_exposed_by_kind_ns
    return LateRank(late.cause, without.saved_frac if without else None, waits_ns, exposed_ns)


def expert_waiting_frac(together: Run) -> float | None:
    waits_ns, moves_ns = (
        sum(ns for kind, ns in by_kind_ns.items() if kind in EP_KINDS)
        for by_kind_ns in (together.wait_by_kind_ns, together.transfer_by_kind_ns)
    )
    is_told = waits_ns + moves_ns and together.clocks.aligned
    if is_told:
        return waits_ns / (waits_ns + moves_ns)
    return None


def without_waits(wall: Wall, late: LateRank | None) -> Wall:
    """The communication wall as fixes of communication can act on it: less the waiting for a late rank.

    A kind costs at most what is exposed of it beside that waiting, whatever the replay of one rank says.
    """
    whole_ns, frac = known(wall.cost_ns), known(wall.cost_frac)
    if wall.id != "communication" or not whole_ns or late is None or not late.waits_ns:
        return wall
    exposed_ns, waits_ns = late.exposed_ns or {}, late.waits_ns
    rest_ns = {kind: max(0, ns - waits_ns.get(kind, 0)) for kind, ns in exposed_ns.items()}
    kinds = known(wall.cost_by_kind_ns) or {}
    cost_ns = min(whole_ns, sum(rest_ns.values()))
    return structs.replace(
        wall,
        cost_ns=cost_ns,
        cost_frac=None if frac is None else frac * cost_ns / whole_ns,
        cost_by_kind_ns={kind: min(ns, rest_ns.get(kind, ns)) for kind, ns in kinds.items()},
    )


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
    if evidence.observed.memory_bytes and used >= NEARLY_ALL.value and given.memory_tight is None:
        peak = held("peak_allocated_frac", used, NEARLY_ALL, unit="fraction of the capacity")
        return _stands(evidence, say("evidence.near-capacity"), False, (peak,))
    return evidence


def _stands(evidence: RunEvidence, why: str, first: bool, more: tuple[Evidence, ...] = ()) -> RunEvidence:
    walls = tuple(_finding(wall, more) if wall.id == "memory" else wall for wall in evidence.walls)
    return replace(evidence, walls=walls, verdict=_verdict(evidence, walls, why, first))


def _finding(wall: Wall, more: tuple[Evidence, ...]) -> Wall:
    found = structs.replace(wall, evidence=(*wall.evidence, *more), missing=(), cure="")
    if wall.outcome == "finding" and known(wall.cost_frac) is not None:
        return found
    return without_price(found)


def _verdict(evidence: RunEvidence, walls: Walls, why: str, first: bool) -> Verdict:
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


def observed_by(ranks: Ranks) -> Observed:
    seen = [rank.observed for rank in ranks]
    kinds = {kind for rank in ranks for kind in rank.comm_kinds}
    classes = {name for rank in ranks for name in rank.by_class_ns or ()}
    dispatcher = _dispatcher(seen)
    found: dict[str, Any] = {
        one.name: _together([getattr(rank, one.name) for rank in seen]) for one in fields(Observed)
    }
    modules = _recomputed(seen)
    is_silent = all(rank.comm_known and rank.hidden_comm_ns is not None for rank in ranks)
    waiting = frac_of(ranks, "a2a_waiting_ns", "a2a_payload_ns")
    found |= {
        "framework": next((one for one in FRAMEWORKS if any(rank.framework == one for rank in seen)), None),
        "moe": _routes_tokens(ranks, classes, kinds, dispatcher),
        "memory_bytes": _together([known(rank.memory.capacity_bytes) for rank in ranks]),
        "peak_bytes": _together([known(rank.memory.peak_bytes) for rank in ranks]),
        "dispatcher": dispatcher,
        **{name: bool(kinds & {*shown_by}) or None for name, shown_by in _TRAFFIC.items()},
        "recompute_modules": modules,
        "offload": _offloads(ranks),
        "grouped_gemm": True if "grouped_gemm" in classes else found["grouped_gemm"],
        "token_count_sync": any((rank.starved_ns or {}).get("token_count_sync") for rank in ranks) or None,
        "a2a_waiting_frac": None if waiting is None else min(1.0, waiting),
        "absent_frac": _absent(ranks),
        "wide_frac": frac_of(ranks, "wide_ns"),
        "in_use": tuple(sorted({name for one in seen for name in one.in_use or ()})),
        "dp_overlapped": _hides(ranks, _REDUCED),
        "layout_frac": frac_of(ranks, "layout_ns"),
        "several_gpus": len(ranks) > 1 or bool(kinds) or (False if is_silent else None),
        "moe_passes": tuple(one for rank in seen for one in rank.moe_passes),
    }
    if found["ep_overlap"] is None:
        found["ep_overlap"] = _overlap(ranks)
    if found["recompute_full"] is None and modules is not None:
        experts = {"moe"} if classes & EXPERT_CLASSES else set()
        found["recompute_full"] = {"core_attn", "layernorm", *experts} <= {*modules}
    return Observed(**found)


def _together(values: Sequence[Any]) -> Any:
    """Of what ranks show one by one: yes of any, the largest number, what all that show any show alike."""
    known = [one for one in values if one is not None]
    if not known:
        return None
    if all(isinstance(one, bool) for one in known):
        return any(known)
    if all(isinstance(one, int | float) for one in known):
        return max(known)
    if all(one == known[0] for one in known):
        return known[0]
    return None


def _routes_tokens(ranks: Ranks, classes: set[str], kinds: set[str], dispatcher: str) -> bool | None:
    if not all(rank.comm_known for rank in ranks):
        return None
    experts = any(rank.observed.expert_gemms_per_layer for rank in ranks)
    if experts or classes & EXPERT_CLASSES or any(kind.startswith("ep_") for kind in kinds):
        return True
    if dispatcher == "unknown":
        return None
    return dispatcher != "none"


def _dispatcher(seen: Sequence[Observed]) -> str:
    """The one dispatcher of all ranks; a rank without experts, such as a first stage, does not count."""
    found = {rank.dispatcher for rank in seen} - {"unknown"}
    named = found - {"none"} or found
    if len(named) == 1:
        return named.pop()
    return "unknown"


def _overlap(ranks: Ranks) -> bool | None:
    """Whether expert all-to-all runs under compute on purpose; None between the limits."""
    share = frac_of(ranks, "a2a_hidden_ns", "a2a_ns")
    if share is None or WALL.value < share < OVERLAPPED.value:
        return None
    return share >= OVERLAPPED.value


def _hides(ranks: Ranks, kinds: Collection[str]) -> bool | None:
    """Whether compute hides, on purpose, each of these kinds that runs; None where nothing shows it."""
    hidden_ns = added(rank.hidden_by_kind_ns for rank in ranks)
    exposed_ns = added(rank.exposed_by_kind_ns for rank in ranks)
    runs = {kind: hidden_ns[kind] + exposed_ns[kind] for kind in kinds}
    shares = [hidden_ns[kind] / whole_ns for kind, whole_ns in runs.items() if whole_ns]
    if shares and min(shares) >= OVERLAPPED.value:
        return True
    return None


def _recomputed(seen: Sequence[Observed]) -> tuple[str, ...] | None:
    told = [rank.recompute_modules for rank in seen]
    if any(modules is None for modules in told):
        return None
    return tuple(sorted({label for modules in told for label in modules or ()}))


def _offloads(ranks: Ranks) -> bool | None:
    counts = [known(rank.memory.offload_copies) for rank in ranks]
    if any(count is not None for count in counts):
        return any(counts)
    return any(known(rank.memory.offload_exposed_ns) for rank in ranks) or None


def _absent(ranks: Ranks) -> dict[str, float] | None:
    told = [rank.starved_ns for rank in ranks]
    if None in told:
        return None
    found = added(told)
    window_ns = sum(rank.window_ns for rank in ranks)
    return {name: found[name] / window_ns for name in sorted(found)}
