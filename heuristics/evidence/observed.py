"""What all ranks of a run show together, of what each of them shows by itself."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from heuristics.config.observed import Observed
from heuristics.figures.figures import EXPERT_CLASSES, Ranks, added, frac_of
from heuristics.guides.situation import EP_KINDS
from traces.limits import WALL, Limit
from traces.measure.moe.passes import PassCount
from traces.missing import known, of_known, sole
from traces.names.frameworks import FRAMEWORKS

OVERLAPPED: Final = Limit(
    0.3,
    "fraction of the communication",
    "ours, below a working overlap's 36.55 %; 0.11 % without (Bridge, skill "
    "expert-parallel-overlap)",
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


def observed_by(ranks: Ranks) -> Observed:
    kinds, classes, labels, in_use = set[str](), set[str](), set[str](), set[str]()
    frameworks, dispatchers = set[str | None](), set[str]()
    passes, seen = list[tuple[PassCount, ...]](), list[Observed]()
    labels_known = comm_known = is_silent = True
    for rank in ranks:
        shown = rank.observed
        seen.append(shown)
        passes += shown.moe_passes
        kinds |= rank.comm_kinds
        classes.update(rank.by_class_ns or ())
        labels.update(shown.recompute_modules or ())
        in_use.update(shown.in_use or ())
        frameworks.add(shown.framework)
        dispatchers.add(shown.dispatcher)
        labels_known &= shown.recompute_modules is not None
        comm_known &= rank.comm_known
        is_silent &= rank.comm_known and rank.hidden_comm_ns is not None
    observed = {field.name: _together(seen, field.name) for field in fields(Observed)}
    modules = tuple(sorted(labels)) if labels_known else None
    dispatcher = _dispatcher(dispatchers)
    waiting = frac_of(ranks, "a2a_waiting_ns", "a2a_payload_ns")
    observed |= {
        "framework": next((name for name in FRAMEWORKS if name in frameworks), None),
        "moe": _routes_tokens(ranks, classes, kinds, dispatcher) if comm_known else None,
        "memory_bytes": _together(ranks, "memory.capacity_bytes"),
        "peak_bytes": _together(ranks, "memory.peak_bytes"),
        "dispatcher": dispatcher,
        **{name: bool(kinds & {*shown_by}) or None for name, shown_by in _TRAFFIC.items()},
        "recompute_modules": modules,
        "offload": _offloads(ranks),
        "grouped_gemm": True if "grouped_gemm" in classes else observed["grouped_gemm"],
        "token_count_sync": bool(_added(ranks, "starved_ns")["token_count_sync"]) or None,
        "a2a_waiting_frac": of_known(min, 1.0, waiting),
        "absent_frac": _absent(ranks),
        "wide_frac": frac_of(ranks, "wide_ns"),
        "fp32_frac": frac_of(ranks, "fp32_ns"),
        "in_use": tuple(sorted(in_use)),
        "dp_overlapped": _hides(ranks, _REDUCED),
        "layout_frac": frac_of(ranks, "layout_ns"),
        "several_gpus": len(ranks) > 1 or bool(kinds) or (False if is_silent else None),
        "moe_passes": tuple(passes),
    }
    if observed["ep_overlap"] is None:
        observed["ep_overlap"] = _overlap(ranks)
    if observed["recompute_full"] is None and modules is not None:
        experts = {"moe"} if classes & EXPERT_CLASSES else set()
        observed["recompute_full"] = {"core_attn", "layernorm", *experts} <= labels
    return Observed(**observed)


def _together(items: Iterable[object], name: str) -> Any:
    """Of what they show one by one: yes of any, the largest number, what all that show any show
    alike.
    """
    values = []
    for item in items:
        value = known(attrgetter(name)(item))
        if value is not None:
            values.append(value)
    if values and isinstance(values[0], int | float):
        return max(values)
    if values and values.count(values[0]) == len(values):
        return values[0]
    return None


def _added(ranks: Ranks, name: str) -> Counter[str]:
    return added(map(attrgetter(name), ranks))


def _routes_tokens(
    ranks: Ranks, classes: set[str], kinds: set[str], dispatcher: str
) -> bool | None:
    experts = _together(ranks, "observed.expert_gemms_per_layer")
    if experts or classes & EXPERT_CLASSES or kinds & {*EP_KINDS}:
        return True
    if dispatcher == "unknown":
        return None
    return dispatcher != "none"


def _dispatcher(seen: set[str]) -> str:
    """The one dispatcher of all ranks; a rank without experts, such as a first stage, does not
    count.
    """
    known_ones = seen - {"unknown"}
    return sole(known_ones - {"none"} or known_ones) or "unknown"


def _overlap(ranks: Ranks) -> bool | None:
    """Whether expert all-to-all runs under compute on purpose; None between the limits."""
    share = frac_of(ranks, "a2a_hidden_ns", "a2a_ns")
    if share is None or WALL.value < share < OVERLAPPED.value:
        return None
    return share >= OVERLAPPED.value


def _hides(ranks: Ranks, kinds: Collection[str]) -> bool | None:
    """Whether compute hides, on purpose, each of these kinds that runs; None where nothing shows
    it.
    """
    hidden_ns, exposed_ns = _added(ranks, "hidden_by_kind_ns"), _added(ranks, "exposed_by_kind_ns")
    shares = [
        hidden_ns[kind] / whole_ns
        for kind in kinds
        if (whole_ns := hidden_ns[kind] + exposed_ns[kind])
    ]
    if shares and min(shares) >= OVERLAPPED.value:
        return True
    return None


def _offloads(ranks: Ranks) -> bool | None:
    copies = _together(ranks, "memory.offload_copies")
    if copies is not None:
        return bool(copies)
    return bool(_together(ranks, "memory.offload_exposed_ns")) or None


def _absent(ranks: Ranks) -> dict[str, float] | None:
    absent_ns, window_ns = Counter[str](), 0
    for rank in ranks:
        if rank.starved_ns is None:
            return None
        absent_ns.update(rank.starved_ns)
        window_ns += rank.window_ns
    return {name: absent_ns[name] / window_ns for name in sorted(absent_ns)}
