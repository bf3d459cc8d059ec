"""What symptoms say that each wall costs, in place of a replay's price; the walls' own limits judge it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from heuristics.evidence.symptoms.symptoms import WINDOW_NS, Late, RankSymptoms, mean_of, parts_of
from heuristics.run.run import WallId
from heuristics.walls.price import WALL, Price
from traces.cures import cure
from traces.limits import Limit
from traces.missing import Missing
from traces.names.kinds import COMM_KINDS

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
FUSED_ROUTER: Final = Limit(
    31,
    "kernels of a layer",
    "Megatron-LM at 1d9edcf8, DeepSeek-V3 GB200 guide, 2.1.4: what the router fusion leaves of 72",
)
NOT_HOST: Final = ("allocator", "profiler")
"""Causes of a late launch that are memory's, or the recording's own."""
_HOST_LATE: Final = ("slow_host", "data_loader", "rotating_jitter")
"""Why a rank is late, where its host is why."""
_NO_TRANSFER: Final = (*_HOST_LATE, "slow_device")
"""Why a rank is late, where the others' waiting is nothing that communication could win."""

SUMS_ONLY: Final = (
    "only sums of kernel times are given, and kernels overlap: a part of the step needs a union of intervals"
)
FIGURES: Final[Mapping[WallId, tuple[str, ...]]] = {
    "memory": (
        *("memory.recompute_frac", "memory.offload_exposed_frac", "memory.allocator_frac"),
        *("memory.peak_bytes", "memory.capacity_bytes"),
    ),
    "communication": ("exposed_comm_by_kind_frac", "absent_frac.blocking"),
    "host_overhead": ("absent_frac.launch_starved",),
    "compute": ("sm.fill_frac",),
}
"""What has to be given for a wall to be judged by symptoms alone."""
_RECORD: Final = "analyze a trace of the run"


def communication(ranks: Sequence[RankSymptoms], late: Late | None) -> Price | Missing:
    """Exposed communication by kind, at most what blocks; not the waiting for a rank that is late itself."""
    told = [(rank, _exposed(rank)) for rank in ranks]
    known = [(rank, kinds) for rank, kinds in told if kinds is not None]
    if not known:
        return _bounded(ranks, "exposed communication", "communication")
    parts = [_less_waiting(rank, kinds, late) for rank, kinds in known]
    by_kind = {
        kind: sum(one.get(kind, 0.0) for one in parts) / len(parts)
        for kind in dict.fromkeys(kind for one in parts for kind in one)
    }
    stalled = mean_of(ranks, lambda rank: rank.stalled_frac) or 0.0
    return _price(by_kind, stalled, "unexplained waits may be communication", to_give("communication"))


def _exposed(rank: RankSymptoms) -> dict[str, float] | None:
    """Exposed time by kind; with what blocks, where only that is said. What has no kind may be any."""
    blocking = rank.blocking_frac
    blocked = None if blocking is None else {k: v for k, v in blocking.items() if k in COMM_KINDS and v}
    kinds = dict(rank.exposed_by_kind_frac or {})
    whole = (rank.budget_frac or {}).get("exposed_comm")
    if rank.exposed_by_kind_frac is None:
        if whole is None and rank.a2a_exposed_frac is None and blocked is None:
            return None
        if rank.a2a_exposed_frac is not None:
            kinds["ep_a2a"] = rank.a2a_exposed_frac
        if blocked and not kinds:
            kinds = dict(blocked)
    if (rest := (whole or 0.0) - sum(kinds.values())) > 0.0 and rank.exposed_by_kind_frac is None:
        kinds["sendrecv_unresolved"] = rest
    if blocked is None:
        return kinds
    kinds |= {kind: part for kind, part in blocked.items() if kind not in kinds and kind != "other_comm"}
    return _at_most(kinds, sum(blocked.values()))


def _at_most(kinds: Mapping[str, float], most: float) -> dict[str, float]:
    whole = sum(kinds.values())
    return {kind: part * min(1.0, most / whole) for kind, part in kinds.items()} if whole else dict(kinds)


def _less_waiting(rank: RankSymptoms, kinds: dict[str, float], late: Late | None) -> dict[str, float]:
    """Without the wait for a rank that its host or its GPU holds up."""
    waits = _waits(rank, late)
    return _at_most(kinds, max(0.0, sum(kinds.values()) - waits)) if waits else kinds


def _waits(rank: RankSymptoms, late: Late | None) -> float:
    if late is None or late.wait_frac is None or late.cause not in _NO_TRANSFER:
        return 0.0
    return 0.0 if rank.rank is not None and rank.rank == late.rank else late.wait_frac


def host_overhead(ranks: Sequence[RankSymptoms], late: Late | None) -> Price | Missing:
    """Time without compute for want of a launch; with the waiting of others for a rank whose host is late."""
    known = [rank for rank in ranks if rank.starved_frac is not None]
    if not known:
        return _bounded(ranks, "the time in which the GPU had no launch", "host_overhead")
    parts = [_starved(rank) for rank in known]
    if late is not None and late.cause in _HOST_LATE:
        owner = next((rank for rank in known if rank.rank is not None and rank.rank == late.rank), known[0])
        kinds = _starved(owner)
        cause = max(kinds, key=lambda one: kinds[one], default="python")
        for rank, kinds in zip(known, parts, strict=True):
            if waits := _waits(rank, late):
                kinds[cause] = kinds.get(cause, 0.0) + waits
    by_kind = {
        kind: sum(one.get(kind, 0.0) for one in parts) / len(parts)
        for kind in dict.fromkeys(kind for one in parts for kind in one)
    }
    opaque = mean_of(ranks, lambda rank: rank.opaque_frac) or 0.0
    price = _price(
        by_kind, opaque, "graphs recorded whole hide what their launches cost", cure("graphs", None)
    )
    split = any(rank.starved_by_cause for rank in known)
    return price if split else replace(price, by_kind_ns={})  # one figure tells no cause


def _starved(rank: RankSymptoms) -> dict[str, float]:
    kinds = {cause: part for cause, part in (rank.starved_frac or {}).items() if cause not in NOT_HOST}
    if rank.arrival_frac:
        kinds["arrival"] = rank.arrival_frac
    return kinds


def memory(ranks: Sequence[RankSymptoms]) -> Price | Missing:
    """What runs again, with the all-to-all it sends again; exposed copies; the allocator."""
    recompute = mean_of(ranks, _recomputed)
    offload = mean_of(ranks, lambda rank: 0.0 if rank.offload_copies == 0 else rank.offload_exposed_frac)
    allocator = mean_of(ranks, _allocated)
    resident = mean_of(ranks, lambda rank: rank.host_resident_exposed_frac)
    told = {"recompute": recompute, "offload": offload, "host_resident": resident, "allocator": allocator}
    by_kind = {kind: part for kind, part in told.items() if part}
    if recompute is None:
        if sum(by_kind.values()) >= WALL.value:
            return _price(by_kind)
        return _missing_figures(ranks, "the time of recompute", "memory")
    open_frac = _unbounded(ranks) if offload is None or allocator is None else 0.0
    what = " and ".join(kind for kind in ("offload", "allocator") if told[kind] is None)
    return _price(by_kind, open_frac, f"the cost of {what} is unknown", to_give("memory"))


def recomputed_frac(rank: RankSymptoms) -> float | None:
    """Compute that is done a second time; none of it where nothing is said to be."""
    if rank.recompute_frac is None and rank.recompute_modules == () and not rank.recompute_full:
        return 0.0
    return rank.recompute_frac


def _recomputed(rank: RankSymptoms) -> float | None:
    """The same, with the all-to-all that is sent again for it."""
    frac, modules = recomputed_frac(rank), rank.recompute_modules
    if frac is None:
        return None
    whole = rank.recompute_full or "moe" in (modules or ())
    if rank.recompute_holds_comm or not whole or not frac:
        return frac
    kinds = _exposed(rank) or {}
    return frac + REPLAYED.value * sum(part for kind, part in kinds.items() if kind.startswith("ep_"))


def _allocated(rank: RankSymptoms) -> float | None:
    if rank.allocator_frac is not None:
        return rank.allocator_frac
    return None if rank.starved_frac is None else rank.starved_frac.get("allocator", 0.0)


def _unbounded(ranks: Sequence[RankSymptoms]) -> float:
    """The part of the window that no compute, communication or late launch fills."""
    filled = [
        sum((rank.budget_frac or {}).get(bucket, 0.0) for bucket in ("compute", "exposed_comm"))
        + sum(_starved(rank).values())
        for rank in ranks
    ]
    return max(0.0, 1.0 - min(filled, default=0.0))


def compute(ranks: Sequence[RankSymptoms]) -> Price | Missing:
    """What kernels that leave SMs empty could lose, and unfused ones; else what one GEMM per expert could."""
    known = [(rank, lost) for rank in ranks if (lost := _unfilled(rank)) is not None]
    unfused = parts_of(ranks, _unfused) or {}
    if not known and sum(unfused.values()) < WALL.value:
        return _missing_figures(ranks, "the fill of the SMs", "compute")
    lost = sum(one for _, one in known) / len(known) if known else 0.0
    serial = any((rank.expert_gemms_per_layer or 0) > ONE_BY_ONE.value for rank, _ in known)
    classes = parts_of(ranks, lambda rank: rank.compute_by_class_frac) or {}
    classes = {} if serial else {name: part for name, part in classes.items() if name != "grouped_gemm"}
    whole = sum(classes.values())
    by_class = {name: lost * part / whole for name, part in classes.items()} if whole else {"gemm": lost}
    by_class |= {name: max(part, by_class.get(name, 0.0)) for name, part in unfused.items()}
    return _price({name: part for name, part in by_class.items() if part})


def _unfused(rank: RankSymptoms) -> dict[str, float]:
    """Routing and permutation where their parts run one by one: a fused kernel moves their data once."""
    apart = {
        "router": (rank.router_kernels_per_layer or 0) > FUSED_ROUTER.value,
        "permute": rank.permute_fused is False,
    }
    classes = rank.compute_by_class_frac or {}
    return {name: classes[name] for name, is_apart in apart.items() if is_apart and name in classes}


def _unfilled(rank: RankSymptoms) -> float | None:
    busy, fill = (rank.budget_frac or {}).get("compute", 1.0), rank.fill_frac
    if rank.under_filled_frac is not None:
        return busy * rank.under_filled_frac * (1.0 if fill is None else 1.0 - fill)
    if fill is not None:
        return 0.0 if fill >= FILLED.value else busy * (1.0 - fill)
    if (rank.expert_gemms_per_layer or 0) <= ONE_BY_ONE.value:
        return None
    return (rank.compute_by_class_frac or {}).get("gemm", busy)


PRICES: Final[Mapping[WallId, Callable[[Sequence[RankSymptoms], Late | None], Price | Missing]]] = {
    "memory": lambda ranks, late: memory(ranks),
    "communication": communication,
    "host_overhead": host_overhead,
    "compute": lambda ranks, late: compute(ranks),
}
"""What each wall costs a run, by its symptoms."""


def to_give(wall: WallId) -> str:
    """The figures that a wall is judged by, or what measures them."""
    return f"give {', '.join(FIGURES[wall])}; or {_RECORD}"


def _price(by_kind: Mapping[str, float], open_frac: float = 0.0, why: str = "", cure: str = "") -> Price:
    """The price of its parts; `open_frac` more may belong to it, which matters where that makes it a wall."""
    frac = min(1.0, sum(by_kind.values()))
    doubt = Missing("symptoms", why, cure) if frac + open_frac >= WALL.value and open_frac else None
    in_ns = {kind: round(part * WINDOW_NS) for kind, part in by_kind.items() if part > 0}
    return Price(round(frac * WINDOW_NS), frac, None, in_ns, (), 0, doubt)


def _bounded(ranks: Sequence[RankSymptoms], what: str, wall: WallId) -> Price | Missing:
    """A wall of which nothing is given costs at most the time without compute; a wall may hide in more."""
    busy = [(rank.budget_frac or {}).get("compute") for rank in ranks]
    given = [part for part in busy if part is not None]
    if not given or 1.0 - min(given) >= WALL.value:
        return _missing_figures(ranks, what, wall)
    frac = 1.0 - min(given)
    return replace(_price({}), ns=round(frac * WINDOW_NS), frac=frac)


def _missing_figures(ranks: Sequence[RankSymptoms], what: str, wall: WallId) -> Missing:
    summed = any(rank.summed_frac for rank in ranks)
    return Missing("symptoms", SUMS_ONLY if summed else f"{what} is unknown", to_give(wall))
