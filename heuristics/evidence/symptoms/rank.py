"""One rank of a symptoms file, or the whole run given flat, as the figures that a trace would give."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar, get_args

from msgspec import structs

from heuristics.config.hardware import gpu_family
from heuristics.config.observed import Observed
from heuristics.evidence.symptoms.document import A2a, Detected, Latency, Rank, no_symptom
from heuristics.figures.figures import RECOMPUTE_LABELS, Figures, Parts, compute_again_ns
from heuristics.result.judged import Bucket
from traces.account.pieces import CAUSES
from traces.errors import InputError
from traces.limits import Limit
from traces.missing import gap
from traces.names.frameworks import FRAMEWORKS
from traces.names.kernels import COMM_KINDS, compute_classes
from traces.sections.rank import Memory
from traces.sections.tables import WallId

T = TypeVar("T")

WINDOW_NS: Final = 1_000_000_000
"""Length of every window, so that a part of it has a length in ns too, and ranks count alike."""
SLACK: Final = 0.005
"""How far parts may exceed their whole: figures are given rounded."""
FIGURES: Final[Mapping[WallId, tuple[str, ...]]] = {
    "memory": (
        *("memory.recompute_frac", "memory.offload_exposed_frac", "memory.allocator_frac"),
        *("memory.peak_bytes", "memory.capacity_bytes"),
    ),
    "communication": ("exposed_comm_by_kind_frac", "absent_frac.blocking"),
    "host_overhead": ("absent_frac.launch_starved",),
    "compute": ("sm.fill_frac",),
}
"""What has to be given for a wall to be judged by figures alone."""


def to_give(wall: WallId) -> str:
    """The figures that a wall is judged by, or what measures them."""
    return f"give {', '.join(FIGURES[wall])}; or analyze a trace of the run"


CALLS_OF_A_RETRY: Final = Limit(2, "allocator calls a step", "memory is freed and allocated again")
_NOT_GIVEN: Final = gap("it is not given", to_give("memory"))
_FIELDS: Final[dict[str, Any]] = dict.fromkeys(Memory.__struct_fields__) | {"allocator_scope": ""}
_UNKNOWN: Final = Memory(**_FIELDS)
_FULL: Final = frozenset(("core_attn", "layernorm", "moe"))
"""Labels of a MoE layer's parts: where all of them run twice, whole layers do."""


def figures_given(told: Rank) -> Figures:
    """What an object tells of a rank. Raises InputError for parts that nobody knows or that are too much."""
    absent, memory = told.absent_frac, _memory(told)
    budget = {
        name: ns for name in get_args(Bucket) if (ns := _ns(getattr(told.budget_frac, name))) is not None
    }
    exposed = _times(told.exposed_comm_by_kind_frac, COMM_KINDS, "exposed_comm_by_kind_frac")
    hidden = _times(told.hidden_comm_by_kind_frac, COMM_KINDS, "hidden_comm_by_kind_frac")
    classes = _times(told.compute_by_class_frac, compute_classes(), "compute_by_class_frac")
    starved = _split(absent.launch_starved, CAUSES, "launch", "absent_frac.launch_starved")
    blocking = _split(absent.blocking, None, "other_comm", "absent_frac.blocking")
    latency = absent.launch_latency
    if memory.allocator_ns is None and starved is not None:
        memory = structs.replace(memory, allocator_ns=starved.get("allocator", 0))
    found = Figures(
        window_ns=WINDOW_NS,
        judged_ns=WINDOW_NS,
        memory=memory,
        rank=told.rank,
        budget_ns=budget,
        comm_kinds=frozenset(
            kind for one in (exposed, hidden, blocking) for kind, ns in (one or {}).items() if ns
        ),
        exposed_by_kind_ns=exposed,
        hidden_comm_ns=_first(_ns(told.hidden_comm_frac), None if hidden is None else sum(hidden.values())),
        by_class_ns=classes,
        starved_ns=starved,
        split=not isinstance(absent.launch_starved, float | int),
        blocking_ns=blocking,
        arrival_ns=_ns(latency.arrival if isinstance(latency, Latency) else latency),
        opaque_ns=_ns(absent.graph_opaque),
        stalled_ns=_ns(absent.dependency_stalled),
        masked_ns=_ns(told.masked_frac),
        recomputed_ns=compute_again_ns(memory),
        work_ns=budget.get("compute", WINDOW_NS),
        under_filled_ns=_ns(told.sm.under_filled_frac),
        fill_frac=told.sm.fill_frac,
        observed=_observed(told),
    )
    _check_sums(found)
    return _with_a2a(told.a2a, found, hidden)


def _ns(part: float | None) -> int | None:
    """A part of the window as a length of `WINDOW_NS`."""
    return None if part is None else round(part * WINDOW_NS)


def _times(told: Mapping[str, float] | None, known: Collection[str], place: str) -> dict[str, int] | None:
    """Lengths by key, those of no time left out."""
    return None if told is None else {key: ns for key, ns in _parts(told, known, place).items() if ns}


def _parts(told: Mapping[str, float], known: Collection[str], place: str) -> dict[str, int]:
    """Lengths by key. Raises InputError for one that is none of `known`: it would change the whole."""
    if unknown := next((key for key in told if key not in known), None):
        raise InputError(no_symptom(unknown, known, f"{place}."))
    return {key: round(part * WINDOW_NS) for key, part in told.items()}


def _split(
    told: float | Mapping[str, float] | None, known: Collection[str] | None, plain: str, place: str
) -> dict[str, int] | None:
    """Parts by key (any key where none is `known`); one figure for all stands under the plainest of them."""
    if isinstance(told, Mapping):
        return _parts(told, told if known is None else known, place)
    return None if told is None else {plain: round(told * WINDOW_NS)}


def _with_a2a(told: A2a, found: Figures, hidden: Parts | None) -> Figures:
    """Expert all-to-all, as given, else by the kinds of communication; all of it is payload."""
    exposed_ns = _first(_ns(told.exposed_frac), _of_experts(found.exposed_by_kind_ns))
    hidden_ns = _first(_ns(told.hidden_frac), _of_experts(hidden))
    return replace(
        found,
        a2a_exposed_ns=exposed_ns,
        a2a_hidden_ns=hidden_ns,
        a2a_payload_ns=_first(_ns(told.payload_frac), (exposed_ns or 0) + (hidden_ns or 0) or None),
        a2a_waiting_ns=_ns(told.waiting_like_frac),
    )


def _of_experts(kinds: Parts | None) -> int | None:
    return None if kinds is None else sum(ns for kind, ns in kinds.items() if kind.startswith("ep_"))


def _memory(told: Rank) -> Memory:
    memory, again = told.memory, told.memory.recompute_modules
    calls, retried = memory.allocator_calls_per_step, memory.allocator_retry_frac
    if retried is None and calls is not None:
        retried = min(1.0, calls / CALLS_OF_A_RETRY.value)
    return structs.replace(
        _UNKNOWN,
        recompute_ns=_NOT_GIVEN if memory.recompute_frac is None else _ns(memory.recompute_frac),
        recompute_modules=_parts(again, again, "") if isinstance(again, Mapping) else None,
        offload_exposed_ns=0 if memory.offload_copies == 0 else _ns(memory.offload_exposed_frac),
        offload_copies=memory.offload_copies,
        host_resident_exposed_ns=_ns(memory.host_resident_exposed_frac),
        allocator_ns=_ns(memory.allocator_frac),
        allocator_retry_frac=retried,
        peak_bytes=None if memory.peak_bytes is None else int(memory.peak_bytes),
        capacity_bytes=None if memory.capacity_bytes is None else int(memory.capacity_bytes),
    )


def _first(one: T | None, other: T | None) -> T | None:
    return other if one is None else one


def _observed(told: Rank) -> Observed:
    """What an object tells of the run itself."""
    seen, kernels = told.detected, told.kernels
    modules, full = _recomputed(seen, told.memory.recompute_modules)
    return Observed(
        framework=next((one for one in FRAMEWORKS if one == seen.framework), None),
        training=seen.training_step,
        gpu=None if told.gpu is None else gpu_family(told.gpu),
        dispatcher=seen.dispatcher or "unknown",
        internode=seen.internode,
        ep_overlap=seen.ep_overlap,
        graph_frac=seen.graph_share_frac,
        recompute_modules=modules,
        recompute_full=full,
        allocator_calls_per_step=told.memory.allocator_calls_per_step,
        precision=seen.precision,
        grouped_gemm=seen.grouped_gemm,
        expert_gemms_per_layer=kernels.expert_gemms_per_layer,
        permute_fused=seen.permute_fused,
        router_kernels_per_layer=kernels.router_kernels_per_layer,
        short_kernel_frac=_first(kernels.short_kernel_frac, seen.short_kernel_frac),
    )


def _recomputed(seen: Detected, modules: object) -> tuple[tuple[str, ...] | None, bool | None]:
    """What runs again: `none`, `selective` or `full`, labels, or passes by module."""
    labels = modules if isinstance(modules, tuple) else None
    match seen.recompute:
        case None | "selective":
            return labels, _is_full(labels)
        case "none":
            return labels or (), False
        case "full":
            return labels, True
        case tuple() as named:
            return named, _is_full(named)
        case passes:
            again = {RECOMPUTE_LABELS.get(key) for key, one in passes.items() if one.recomputed_count}
            return tuple(sorted(label for label in again if label)), None


def _is_full(modules: tuple[str, ...] | None) -> bool | None:
    return None if modules is None else {*modules} >= _FULL


def _check_sums(found: Figures) -> None:
    """Raise InputError where parts are more than their whole."""
    budget, compute_ns = found.budget_ns, found.budget_ns.get("compute", WINDOW_NS)
    absent = [*(found.starved_ns or {}).values(), *(found.blocking_ns or {}).values()]
    absent += [one for one in (found.arrival_ns, found.opaque_ns, found.stalled_ns) if one]
    exposed, classes = (found.exposed_by_kind_ns or {}).values(), (found.by_class_ns or {}).values()
    whole_absent = WINDOW_NS - budget.get("compute", 0)
    checks = (
        ("budget", budget.values(), WINDOW_NS, "the window"),
        ("exposed_comm_by_kind", exposed, budget.get("exposed_comm", WINDOW_NS), "exposed_comm"),
        ("compute_by_class", classes, compute_ns, "compute"),
        ("absent", absent, whole_absent, "the window without compute"),
    )
    for name, parts, whole_ns, what in checks:
        frac, whole = sum(parts) / WINDOW_NS, whole_ns / WINDOW_NS
        if frac > whole + SLACK:
            raise InputError(f"{name} adds up to {frac:.3f}, more than {what} ({whole:.3f})")


NOTHING: Final = figures_given(Rank())
"""A rank of which nothing is given."""
