"""What each wall costs by given figures, in place of a replay.

The price of a wall is that of the ranks that tell it, as if the others were like these.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from heuristics.evidence.symptoms.document import Late
from heuristics.evidence.symptoms.given_rank import WINDOW_NS, to_give
from heuristics.evidence.symptoms.symptoms import Symptoms
from heuristics.figures.figures import Figures, Parts, frac_of
from heuristics.fixes.circumstances import ROUTER_KERNELS
from heuristics.guides.situation import of_experts_ns
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
    "of six collectives of a layer and microbatch, two forward and two backward, two are sent "
    "again where moe is recomputed: Megatron-Core's MoE layer",
)
FILLED: Final = Limit(
    0.8,
    "fraction of the SMs",
    "ours: tails and small kernels alone leave 4 to 20 % empty in ordinary dense runs (measured)",
)
ONE_BY_ONE: Final = Limit(
    6,
    "GEMMs of a MoE layer",
    "ours: grouped, forward has two and backward four; more run expert by expert",
)
_HOST_LATE: Final = (Cause.SLOW_HOST, Cause.DATA_LOADER, Cause.ROTATING_JITTER)
"""Why a rank is late, where its host is why."""
_NO_TRANSFER: Final = (*_HOST_LATE, Cause.SLOW_DEVICE)
"""Why a rank is late, where the others' waiting is nothing that communication could win."""


def _communication(symptoms: Symptoms) -> Priced:
    """Exposed communication by kind, at most what blocks; not the waiting for a rank that is late
    itself.
    """

    def beside_waits(rank: Figures) -> Parts | None:
        kinds = _exposed(rank)
        if kinds is None:
            return None
        return _at_most(kinds, max(0, sum(kinds.values()) - _waits_ns(rank, symptoms.late)))

    why = Missing("symptoms", say("evidence.waits"), to_give("communication"))
    unknown = say("evidence.no-exposed")
    return _price(symptoms, "communication", beside_waits, unknown, "stalled_ns", why)


def _exposed(rank: Figures) -> Parts | None:
    """Exposed time by kind; with what blocks, where only that is given. What has no kind may be
    any.
    """
    waits = rank.blocking_ns
    whole_ns = rank.budget_ns.get("exposed_comm")
    a2a_ns = rank.a2a_exposed_ns
    blocked = {kind: ns for kind, ns in (waits or {}).items() if kind in COMM_KINDS and ns}
    kinds = dict(rank.exposed_by_kind_ns or {})
    if rank.exposed_by_kind_ns is None:
        if whole_ns is None and a2a_ns is None and waits is None:
            return None
        kinds = dict(blocked) if a2a_ns is None else {"ep_a2a": a2a_ns}
        if (rest_ns := (whole_ns or 0) - sum(kinds.values())) > 0:
            kinds["sendrecv_unresolved"] = rest_ns
    if waits is None:
        return kinds
    for kind, ns in blocked.items():
        if kind != "other_comm":
            kinds.setdefault(kind, ns)
    return _at_most(kinds, sum(blocked.values()))


def _at_most(kinds: Parts, most_ns: int) -> Parts:
    part = min(1.0, most_ns / max(1, sum(kinds.values())))
    return {kind: round(ns * part) for kind, ns in kinds.items()}


def _waits_ns(rank: Figures, late: Late | None) -> int:
    if late is None or late.cause not in _NO_TRANSFER:
        return 0
    if rank.rank is not None and rank.rank == late.rank:
        return 0
    return round(late.wait_frac * WINDOW_NS)


def _host_overhead(symptoms: Symptoms) -> Priced:
    """Time without compute for want of a launch; with the waiting of others for a rank whose host
    is late.
    """
    telling = [rank for rank in symptoms.ranks if rank.starved_ns is not None]
    late, cause = symptoms.late, ""
    if telling and late is not None and late.cause in _HOST_LATE:
        owners = (rank for rank in telling if rank.rank is not None and rank.rank == late.rank)
        owned = next(owners, telling[0]).host_by_cause_ns or {}
        cause = max(owned, key=owned.__getitem__, default="python")

    def with_waits(rank: Figures) -> Parts | None:
        kinds = rank.host_by_cause_ns
        if kinds is None or not cause:
            return kinds
        return kinds | {cause: kinds.get(cause, 0) + _waits_ns(rank, late)}

    why = Missing("symptoms", say("evidence.opaque"), cure("graphs", None))
    price = _price(
        symptoms, "host_overhead", with_waits, say("evidence.no-launch-time"), "opaque_ns", why
    )
    if isinstance(price, Unpriced) or any(rank.split for rank in telling):
        return price
    return replace(price, by_kind_ns={})  # one figure tells no cause


def _memory(symptoms: Symptoms) -> Priced:
    unknown = [
        kind
        for kind, name in (("offload", "offload_exposed_ns"), ("allocator", "allocator_ns"))
        if frac_of(symptoms.ranks, f"memory.{name}") is None
    ]
    why = Missing(
        "symptoms", say("evidence.parts-unknown", parts=" and ".join(unknown)), to_give("memory")
    )
    return _price(symptoms, "memory", _memory_ns, open_ns="unfilled_ns" if unknown else "", why=why)


def _memory_ns(rank: Figures) -> Parts:
    memory = rank.memory
    return +Counter(
        recompute=_recomputed_ns(rank),
        offload=known(memory.offload_exposed_ns) or 0,
        host_resident=known(memory.host_resident_exposed_ns) or 0,
        allocator=known(memory.allocator_ns) or 0,
    )


def _recomputed_ns(rank: Figures) -> int:
    ns, seen = known(rank.memory.recompute_ns) or 0, rank.observed
    whole = seen.recompute_full or "moe" in (seen.recompute_modules or ())
    if known(rank.memory.recompute_modules) is not None or not whole or not ns:
        return ns
    return ns + round(REPLAYED.value * of_experts_ns(_exposed(rank) or {}))


def _compute(symptoms: Symptoms) -> Priced:
    """What kernels that leave SMs empty could lose, and unfused ones; else what one GEMM per expert
    could.
    """
    unfused_ns, is_filled = 0, False
    for rank in symptoms.ranks:
        unfused_ns += sum(_unfused(rank).values())
        is_filled |= _empty_ns(rank) is not None
    is_told = is_filled or unfused_ns >= WALL.value * WINDOW_NS * len(symptoms.ranks)
    return _price(
        symptoms, "compute", _lost if is_told else lambda _: None, say("evidence.no-fill")
    )


def _lost(rank: Figures) -> Parts | None:
    """What a rank could lose by class: of grouped GEMMs nothing, of one GEMM per expert all of
    it.
    """
    lost_ns, unfused, by_class = _empty_ns(rank), _unfused(rank), dict[str, int]()
    if lost_ns is None and not unfused:
        return None
    if not _one_by_one(rank):
        classes = dict(rank.by_class_ns or {})
        classes.pop("grouped_gemm", None)
        for name, ns in classes.items():
            by_class[name] = round((lost_ns or 0) * ns / sum(classes.values()))
    by_class = by_class or {"gemm": lost_ns or 0}
    for name, ns in unfused.items():
        by_class[name] = max(ns, by_class.get(name, 0))
    return by_class


def _unfused(rank: Figures) -> Parts:
    """Routing and permutation where their parts run one by one: a fused kernel moves their data
    once.
    """
    seen = rank.observed
    apart = {
        "router": (seen.router_kernels_per_layer or 0) > ROUTER_KERNELS.value,
        "permute": seen.permute_fused is False,
    }
    return {name: ns for name, ns in (rank.by_class_ns or {}).items() if apart.get(name)}


def _one_by_one(rank: Figures) -> bool:
    return (rank.observed.expert_gemms_per_layer or 0) > ONE_BY_ONE.value


def _empty_ns(rank: Figures) -> int | None:
    """What the kernels of a rank could lose to empty SMs; None where nothing tells how full they
    are.
    """
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
    wall: WallId,
    of: Callable[[Figures], Parts | None],
    unknown: str = "",
    open_ns: str = "",
    why: Missing | None = None,
) -> Priced:
    """The price of its parts on each rank that tells them, as if the others were like these.

    `unknown`: what to say where none does. `open_ns` more may belong to it, as `why` tells.
    """
    by_kind, ranks = Counter[str](), list[Figures]()
    for rank in symptoms.ranks:
        kinds = of(rank)
        if kinds is not None:
            by_kind.update(kinds)
            ranks.append(rank)
    if not ranks:
        return _unpriced(symptoms, wall, unknown)
    window_ns, scale = WINDOW_NS * len(symptoms.ranks), len(symptoms.ranks) / len(ranks)
    shown = {kind: round(ns * scale) for kind, ns in by_kind.items() if ns}
    total_ns = min(window_ns, sum(shown.values()))
    price = Price(total_ns, total_ns / window_ns, shown)
    more = frac_of(ranks, open_ns) if open_ns else None
    if more:
        return replace(price, at_least=why, at_most_frac=min(1.0, price.frac + more))
    return price


def _unpriced(symptoms: Symptoms, wall: WallId, unknown: str) -> Unpriced:
    """A wall of which nothing is given; but for compute, it costs at most the time without
    compute.
    """
    reason = say("evidence.only-sums") if symptoms.only_sums else unknown
    why = Missing("symptoms", reason, to_give(wall))
    if wall == "compute" or any("compute" not in rank.budget_ns for rank in symptoms.ranks):
        return Unpriced(why)
    if wall == "communication":
        return Unpriced(
            why, max(1.0 - rank.budget_ns["compute"] / WINDOW_NS for rank in symptoms.ranks)
        )
    widest = max(symptoms.ranks, key=_unlaunched_frac)
    most, idle_ns = _unlaunched_frac(widest), widest.idle_ns
    if idle_ns is not None and (rest_frac := most - idle_ns / WINDOW_NS) >= LITTLE.value:
        idle_frac = idle_ns / WINDOW_NS
        because = say(
            "evidence.idle-beside", reason=reason, idle_frac=idle_frac, rest_frac=rest_frac
        )
        why = replace(why, reason=because)
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
