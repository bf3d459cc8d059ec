"""What the ranks of a run show of it, together; None where none does."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from heuristics.config.observed import Observed
from heuristics.figures.figures import Figures, frac_of
from traces.limits import Limit
from traces.missing import known
from traces.names.frameworks import FRAMEWORKS

OVERLAPPED: Final = Limit(
    0.3,
    "fraction of expert all-to-all",
    "ours, below a working overlap's 36.55 %; 0.11 % without (Bridge, skill expert-parallel-overlap)",
)
EXPOSED: Final = Limit(0.1, "fraction of expert all-to-all", "ours: nothing hides it on purpose")
_ROUTING: Final = frozenset(("router", "permute", "grouped_gemm"))
_DATA_PARALLEL: Final = frozenset(("dp_reduce_scatter", "dp_all_gather"))


def observed_by(ranks: Sequence[Figures]) -> Observed:
    seen = [rank.observed for rank in ranks]
    kinds = {kind for rank in ranks for kind in rank.comm_kinds}
    classes = {name for rank in ranks for name in rank.by_class_ns or ()}
    dispatcher = _dispatcher(seen)
    found: dict[str, Any] = {
        one.name: _together([getattr(rank, one.name) for rank in seen]) for one in fields(Observed)
    }
    modules = _recomputed(seen)
    waiting = frac_of(ranks, lambda rank: rank.a2a_waiting_ns, lambda rank: rank.a2a_payload_ns)
    found |= {
        "framework": next((one for one in FRAMEWORKS if any(rank.framework == one for rank in seen)), None),
        "moe": _routes_tokens(ranks, classes, kinds, dispatcher),
        "memory_bytes": _together([known(rank.memory.capacity_bytes) for rank in ranks]),
        "peak_bytes": _together([known(rank.memory.peak_bytes) for rank in ranks]),
        "dispatcher": dispatcher,
        "tp_active": "tp" in kinds or None,
        "pp_active": "pp_p2p" in kinds or None,
        "cp_active": "cp" in kinds or None,
        "dp_active": bool(kinds & _DATA_PARALLEL) or None,
        "recompute_modules": modules,
        "offload": _offloads(ranks),
        "grouped_gemm": True if "grouped_gemm" in classes else found["grouped_gemm"],
        "token_count_sync": any((rank.starved_ns or {}).get("token_count_sync") for rank in ranks) or None,
        "a2a_waiting_frac": None if waiting is None else min(1.0, waiting),
        "absent_frac": _absent(ranks),
        "wide_frac": frac_of(ranks, _wide_ns),
        "layout_frac": frac_of(ranks, lambda rank: (rank.by_class_ns or {}).get("layout", 0)),
        "several_gpus": len(ranks) > 1 or bool(kinds) or _none_runs(ranks),
        "moe_passes": tuple(one for rank in seen for one in rank.moe_passes),
    }
    if found["ep_overlap"] is None:
        found["ep_overlap"] = _overlap(ranks)
    if found["recompute_full"] is None and modules is not None:
        experts = {"moe"} if classes & _ROUTING else set()
        found["recompute_full"] = {"core_attn", "layernorm", *experts} <= {*modules}
    return Observed(**found)


def _none_runs(ranks: Sequence[Figures]) -> bool | None:
    whole = all(rank.comm_known and rank.hidden_comm_ns is not None for rank in ranks)
    return False if whole else None


def _together(values: Sequence[Any]) -> Any:
    """Of what ranks show one by one: yes of any, the largest number, what all that show any show alike."""
    known = [one for one in values if one is not None]
    if not known:
        return None
    if all(isinstance(one, bool) for one in known):
        return any(known)
    if all(isinstance(one, int | float) for one in known):
        return max(known)
    return known[0] if all(one == known[0] for one in known) else None


def _routes_tokens(
    ranks: Sequence[Figures], classes: set[str], kinds: set[str], dispatcher: str
) -> bool | None:
    if not all(rank.comm_known for rank in ranks):
        return None
    experts = any(rank.observed.expert_gemms_per_layer for rank in ranks)
    if experts or classes & _ROUTING or any(kind.startswith("ep_") for kind in kinds):
        return True
    return None if dispatcher == "unknown" else dispatcher != "none"


def _dispatcher(seen: Sequence[Observed]) -> str:
    """The one dispatcher of all ranks; a rank without experts, such as a first stage, does not count."""
    found = {rank.dispatcher for rank in seen} - {"unknown"}
    named = found - {"none"} or found
    return named.pop() if len(named) == 1 else "unknown"


def _overlap(ranks: Sequence[Figures]) -> bool | None:
    """Whether expert all-to-all runs under compute on purpose; None between the limits."""
    share = frac_of(ranks, lambda rank: rank.a2a_hidden_ns, _a2a_ns)
    if share is None or EXPOSED.value < share < OVERLAPPED.value:
        return None
    return share >= OVERLAPPED.value


def _a2a_ns(rank: Figures) -> int | None:
    return None if rank.a2a_exposed_ns is None else rank.a2a_exposed_ns + (rank.a2a_hidden_ns or 0)


def _recomputed(seen: Sequence[Observed]) -> tuple[str, ...] | None:
    told = [rank.recompute_modules for rank in seen]
    if any(modules is None for modules in told):
        return None
    return tuple(sorted({label for modules in told for label in modules or ()}))


def _offloads(ranks: Sequence[Figures]) -> bool | None:
    counts = [known(rank.memory.offload_copies) for rank in ranks]
    if any(count is not None for count in counts):
        return any(counts)
    return any(known(rank.memory.offload_exposed_ns) for rank in ranks) or None


def _wide_ns(rank: Figures) -> int | None:
    """Matrix work that 16 bits may do faster; None where no matrix work is known."""
    cores = rank.tensor_cores
    if cores is None or not cores.matrix_ns:
        return None
    return 0 if cores.half is False else cores.lengths_ns[1]


def _absent(ranks: Sequence[Figures]) -> dict[str, float] | None:
    found = Counter[str]()
    for rank in ranks:
        if rank.starved_ns is None:
            return None
        found.update(rank.starved_ns)
    window_ns = sum(rank.window_ns for rank in ranks)
    return {name: found[name] / window_ns for name in sorted(found)}
