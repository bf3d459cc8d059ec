"""What each wall costs by given figures, in place of a replay.

The price of a wall is that of the ranks that tell it, as if the others were like these.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from heuristics.evidence.symptoms.document import Late
from heuristics.evidence.symptoms.given_rank import WINDOW_NS, to_give
from heuristics.evidence.symptoms.symptoms import Symptoms
from heuristics.figures.figures import Figures, Parts, added, frac_of
from heuristics.fixes.circumstances import ROUTER_KERNELS
from heuristics.walls.price import Price, Priced, Unpriced
from heuristics.words import say
from traces.cures import cure
from traces.limits import LITTLE, WALL, Limit
from traces.missing import Missing, known
from traces.names.kernels import COMM_KINDS
from traces.sections.cause import Cause
from traces.sections.tables import WallId

REPLAYED: Final = Limit(
    1 / 3,
    "fraction of expert all-to-all",
    "of six collectives of a layer and microbatch, two forward and two backward, two are sent again where "
    "moe is recomputed: Megatron-Core's MoE layer",
)


FILLED: Final = Limit(
    0.8,
    "fraction of the SMs",
    "ours: tails and small kernels alone leave 4 to 20 % empty in ordinary dense runs (measured)",
)


ONE_BY_ONE: Final = Limit(
    6, "GEMMs of a MoE layer", "ours: grouped, forward has two and backward four; more run expert by expert"
)


_HOST_LATE: Final = (Cause.SLOW_HOST, Cause.DATA_LOADER, Cause.ROTATING_JITTER)
"""Why a rank is late, where its host is why."""


_NO_TRANSFER: Final = (*_HOST_LATE, Cause.SLOW_DEVICE)
"""Why a rank is late, where the others' waiting is nothing that communication could win."""


def _communication(symptoms: Symptoms) -> Priced:
    """Exposed communication by kind, at most what blocks; not the waiting for a rank that is late itself."""
    parts = [
        (rank, _at_most(kinds, max(0, sum(kinds.values()) - _waits_ns(rank, symptoms.late))))
        for rank in symptoms.ranks
        if (kinds := _exposed(rank)) is not None
    ]
    if not parts:
        return _unpriced(symptoms, say("evidence.no-exposed"), "communication", True)
    why = Missing("symptoms", say("evidence.waits"), to_give("communication"))
    return _price(symptoms, parts, "stalled_ns", why)


def _exposed(rank: Figures) -> Parts | None:
    """Exposed time by kind; with what blocks, where only that is given. What has no kind may be any."""
    waits, whole_ns = rank.blocking_ns, rank.budget_ns.get("exposed_comm")
    blocked = {kind: ns for kind, ns in (waits or {}).items() if kind in COMM_KINDS and ns}
    kinds = dict(rank.exposed_by_kind_ns or {})
    if rank.exposed_by_kind_ns is None:
        if whole_ns is None and rank.a2a_exposed_ns is None and waits is None:
            return None
        kinds = dict(blocked) if rank.a2a_exposed_ns is None else {"ep_a2a": rank.a2a_exposed_ns}
        if (rest := (whole_ns or 0) - sum(kinds.values())) > 0:
            kinds["sendrecv_unresolved"] = rest
    if waits is None:
        return kinds
    kinds |= {kind: ns for kind, ns in blocked.items() if kind not in kinds and kind != "other_comm"}
    return _at_most(kinds, sum(blocked.values()))


def _at_most(kinds: Parts, most_ns: int) -> Parts:
    whole_ns = sum(kinds.values())
    if whole_ns:
        return {kind: round(ns * min(1.0, most_ns / whole_ns)) for kind, ns in kinds.items()}
    return kinds


def _waits_ns(rank: Figures, late: Late | None) -> int:
    if late is None or late.cause not in _NO_TRANSFER:
        return 0
    if rank.rank is not None and rank.rank == late.rank:
        return 0
    return round(late.wait_frac * WINDOW_NS)


def _host_overhead(symptoms: Symptoms) -> Priced:
    """Time without compute for want of a launch; with the waiting of others for a rank whose host is late."""
    counted = [(rank, kinds) for rank in symptoms.ranks if (kinds := rank.host_by_cause_ns) is not None]
    late = symptoms.late
    if not counted:
        return _unpriced(symptoms, say("evidence.no-launch-time"), "host_overhead", True)
    if late is not None and late.cause in _HOST_LATE:
        owners = (kinds for rank, kinds in counted if rank.rank is not None and rank.rank == late.rank)
        owner = next(owners, counted[0][1])
        cause = max(owner, key=lambda one: owner[one], default="python")
        for rank, kinds in counted:
            kinds[cause] = kinds.get(cause, 0) + _waits_ns(rank, late)
    why = Missing("symptoms", say("evidence.opaque"), cure("graphs", None))
    split = any(rank.split for rank, _ in counted)  # one figure tells no cause
    return _price(symptoms, counted, "opaque_ns", why, split)


def _memory(symptoms: Symptoms) -> Price:
    costs = [(rank, _memory_ns(rank)) for rank in symptoms.ranks]
    parts = [(rank, {kind: ns for kind, ns in one.items() if ns}) for rank, one in costs]
    unknown = [kind for kind in ("offload", "allocator") if all(one[kind] is None for _, one in costs)]
    why = Missing("symptoms", say("evidence.parts-unknown", parts=" and ".join(unknown)), to_give("memory"))
    if unknown:
        return _price(symptoms, parts, "unfilled_ns", why)
    return _price(symptoms, parts)


def _memory_ns(rank: Figures) -> dict[str, int | None]:
    return {
        "recompute": _recomputed_ns(rank),
        "offload": known(rank.memory.offload_exposed_ns),
        "host_resident": known(rank.memory.host_resident_exposed_ns),
        "allocator": known(rank.memory.allocator_ns),
    }


def _recomputed_ns(rank: Figures) -> int:
    ns, seen = known(rank.memory.recompute_ns) or 0, rank.observed
    whole = seen.recompute_full or "moe" in (seen.recompute_modules or ())
    if known(rank.memory.recompute_modules) is not None or not whole or not ns:
        return ns
    kinds = _exposed(rank) or {}
    return ns + round(REPLAYED.value * sum(part for kind, part in kinds.items() if kind.startswith("ep_")))


def _compute(symptoms: Symptoms) -> Priced:
    """What kernels that leave SMs empty could lose, and unfused ones; else what one GEMM per expert could."""
    ranks = symptoms.ranks
    if all(_empty_ns(rank) is None for rank in ranks):
        unfused_ns = sum(sum(_unfused(rank).values()) for rank in ranks)
        if unfused_ns < WALL.value * sum(rank.window_ns for rank in ranks):
            return _unpriced(symptoms, say("evidence.no-fill"), "compute")
    counted = [rank for rank in ranks if _empty_ns(rank) is not None or _unfused(rank)]
    return _price(symptoms, [(rank, _lost(rank)) for rank in counted])


def _lost(rank: Figures) -> Parts:
    """What a rank could lose by class: of grouped GEMMs nothing, of one GEMM per expert all of it."""
    lost_ns, unfused = _empty_ns(rank) or 0, _unfused(rank)
    classes = {name: ns for name, ns in (rank.by_class_ns or {}).items() if name != "grouped_gemm"}
    whole_ns = 0 if _one_by_one(rank) else sum(classes.values())
    by_class = {name: round(lost_ns * ns / whole_ns) for name, ns in classes.items()} if whole_ns else {}
    by_class = by_class or {"gemm": lost_ns}
    return by_class | {name: max(ns, by_class.get(name, 0)) for name, ns in unfused.items()}


def _unfused(rank: Figures) -> Parts:
    """Routing and permutation where their parts run one by one: a fused kernel moves their data once."""
    seen = rank.observed
    apart = {
        "router": (seen.router_kernels_per_layer or 0) > ROUTER_KERNELS.value,
        "permute": seen.permute_fused is False,
    }
    return {name: ns for name, ns in (rank.by_class_ns or {}).items() if apart.get(name)}


def _one_by_one(rank: Figures) -> bool:
    return (rank.observed.expert_gemms_per_layer or 0) > ONE_BY_ONE.value


def _empty_ns(rank: Figures) -> int | None:
    """What the kernels of a rank could lose to empty SMs; None where nothing tells how full they are."""
    busy_ns, fill = rank.budget_ns.get("compute", rank.window_ns), rank.fill_frac
    if rank.under_filled_ns is not None:
        return round(rank.under_filled_ns * (1.0 if fill is None else 1.0 - fill))
    if fill is not None:
        if fill >= FILLED.value:
            return 0
        return round(busy_ns * (1.0 - fill))
    if _one_by_one(rank):
        return (rank.by_class_ns or {}).get("gemm", busy_ns)
    return None


def _price(
    symptoms: Symptoms,
    parts: Sequence[tuple[Figures, Parts]],
    open_ns: str = "",
    why: Missing | None = None,
    split: bool = True,
) -> Price:
    """The price of its parts on each rank that tells them, as if the others were like these.

    `open_ns` more may belong to it, as `why` tells.
    """
    by_kind = added(kinds for _, kinds in parts)
    window_ns, ranks = sum(rank.window_ns for rank in symptoms.ranks), [rank for rank, _ in parts]
    scale = window_ns / sum(rank.window_ns for rank in ranks)
    more = frac_of(ranks, open_ns) if open_ns else None
    shown = {kind: round(ns * scale) for kind, ns in by_kind.items() if ns}
    total_ns = min(window_ns, sum(shown.values()))
    price = Price(total_ns, total_ns / window_ns, shown if split else {})
    if more:
        return replace(price, at_least=why, at_most_frac=min(1.0, price.frac + more))
    return price


def _unpriced(symptoms: Symptoms, unknown: str, wall: WallId, absent: bool = False) -> Unpriced:
    """A wall of which nothing is given. `absent`: it costs at most the time without compute."""
    reason = say("evidence.only-sums") if symptoms.only_sums else unknown
    why = Missing("symptoms", reason, to_give(wall))
    if not absent or any("compute" not in rank.budget_ns for rank in symptoms.ranks):
        return Unpriced(why)
    if wall != "host_overhead":
        return Unpriced(why, max(1.0 - rank.budget_ns["compute"] / rank.window_ns for rank in symptoms.ranks))
    widest = max(symptoms.ranks, key=_unlaunched_frac)
    most, idle_ns = _unlaunched_frac(widest), widest.budget_ns.get("idle")
    idle = None if idle_ns is None else idle_ns / widest.window_ns
    if idle is not None and most - idle >= LITTLE.value:
        said = say("evidence.idle-beside", reason=reason, idle_frac=idle, rest_frac=most - idle)
        why = replace(why, reason=said)
    return Unpriced(why, most)


def _unlaunched_frac(rank: Figures) -> float:
    """The time without compute of which no other reason is given: each nanosecond has one."""
    other_ns = sum((rank.blocking_ns or {}).values()) + (rank.stalled_ns or 0)
    return max(0, rank.window_ns - rank.budget_ns["compute"] - other_ns) / rank.window_ns


def prices_of(symptoms: Symptoms) -> dict[WallId, Priced]:
    return {
        "memory": _memory(symptoms),
        "communication": _communication(symptoms),
        "host_overhead": _host_overhead(symptoms),
        "compute": _compute(symptoms),
    }
