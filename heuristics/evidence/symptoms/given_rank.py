"""One rank as a user gives it -> the figures that a trace of it would give."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final, get_args

from msgspec import structs

from heuristics.config.hardware import gpu_named
from heuristics.config.logic import first_known
from heuristics.config.observed import Observed
from heuristics.evidence.symptoms.document import Detected, Latency, Rank, no_symptom
from heuristics.figures.figures import (
    RECOMPUTE_LABELS,
    Figures,
    added,
    compute_again_ns,
    sum_ns,
)
from heuristics.guides.situation import of_experts_ns
from heuristics.result.judged import Bucket
from heuristics.words import say
from traces.account.pieces import CAUSES
from traces.errors import InputError
from traces.limits import Limit
from traces.missing import gap, of_known
from traces.names.frameworks import FRAMEWORKS
from traces.names.kernels import COMM_KINDS, compute_classes
from traces.sections.rank import Memory
from traces.sections.section import copied
from traces.sections.tables import WallId
from traces.texts import Texts

WINDOW_NS: Final = 1_000_000_000
"""Length of every window, so that a part of it has a length in ns too, and ranks count alike."""
SLACK: Final = 0.005
"""How far parts may exceed their whole: figures are given rounded."""


def to_give(wall: WallId) -> str:
    return say("evidence.to-give", figures=say(f"evidence.figures-{wall}"))


CALLS_OF_A_RETRY: Final = Limit(2, "allocator calls a step", "memory is freed and allocated again")
_NOT_GIVEN: Final = gap(say("evidence.not-given"), to_give("memory"))
_UNKNOWN: Final = Memory(**{**dict.fromkeys(Memory.__struct_fields__), "allocator_scope": ""})  # type: ignore[arg-type]
_FULL: Final = frozenset(("core_attn", "layernorm", "moe"))
"""Labels of a MoE layer's parts: where all of them run twice, whole layers do."""


def figures_given(given: Rank) -> Figures:
    """What an object tells of a rank. Raises InputError for parts that nobody knows or that are too
    much.
    """
    absent, memory, budget = given.absent_frac, _memory(given), dict[str, int]()
    for name in get_args(Bucket):
        if (ns := _ns(getattr(given.budget_frac, name))) is not None:
            budget[name] = ns
    exposed = _times(given.exposed_comm_by_kind_frac, COMM_KINDS, "exposed_comm_by_kind_frac")
    hidden = _times(given.hidden_comm_by_kind_frac, COMM_KINDS, "hidden_comm_by_kind_frac")
    classes = _times(given.compute_by_class_frac, compute_classes(), "compute_by_class_frac")
    starved = _split(absent.launch_starved, CAUSES, "launch", "absent_frac.launch_starved")
    blocking = _split(absent.blocking, None, "other_comm", "absent_frac.blocking")
    latency = absent.launch_latency
    if memory.allocator_ns is None and starved is not None:
        memory = structs.replace(memory, allocator_ns=starved.get("allocator", 0))
    a2a_exposed_ns = first_known(_ns(given.a2a.exposed_frac), of_known(of_experts_ns, exposed))
    a2a_hidden_ns = first_known(_ns(given.a2a.hidden_frac), of_known(of_experts_ns, hidden))
    figures = Figures(
        window_ns=WINDOW_NS,
        judged_ns=WINDOW_NS,
        memory=memory,
        rank=given.rank,
        budget_ns=budget,
        comm_kinds=frozenset(+added((exposed, hidden, blocking))),
        exposed_by_kind_ns=exposed,
        hidden_comm_ns=first_known(_ns(given.hidden_comm_frac), sum_ns(hidden)),
        by_class_ns=classes,
        starved_ns=starved,
        split=not isinstance(absent.launch_starved, float | int),
        blocking_ns=blocking,
        arrival_ns=_ns(latency.arrival if isinstance(latency, Latency) else latency),
        opaque_ns=_ns(absent.graph_opaque),
        stalled_ns=_ns(absent.dependency_stalled),
        masked_ns=_ns(given.masked_frac),
        recomputed_ns=compute_again_ns(memory),
        a2a_exposed_ns=a2a_exposed_ns,
        a2a_hidden_ns=a2a_hidden_ns,
        a2a_payload_ns=first_known(
            _ns(given.a2a.payload_frac), (a2a_exposed_ns or 0) + (a2a_hidden_ns or 0) or None
        ),
        a2a_waiting_ns=_ns(given.a2a.waiting_like_frac),
        work_ns=budget.get("compute", WINDOW_NS),
        under_filled_ns=_ns(given.sm.under_filled_frac),
        fill_frac=given.sm.fill_frac,
        observed=_observed(given),
    )
    _check_sums(figures)
    return figures


def _ns(part: float | None) -> int | None:
    if part is None:
        return None
    return round(part * WINDOW_NS)


def _times(
    parts: Mapping[str, float] | None, known: Collection[str], place: str
) -> dict[str, int] | None:
    if parts is None:
        return None
    return +Counter(_parts(parts, known, place))


def _parts(parts: Mapping[str, float], known: Collection[str], place: str) -> dict[str, int]:
    """Lengths by key. Raises InputError for one that is none of `known`: it would change the
    whole.
    """
    if unknown := next((key for key in parts if key not in known), None):
        raise InputError(no_symptom(unknown, known, f"{place}."))
    return {key: round(part * WINDOW_NS) for key, part in parts.items()}


def _split(
    given: float | Mapping[str, float] | None, known: Collection[str] | None, plain: str, place: str
) -> dict[str, int] | None:
    """Parts by key (any key where none is `known`); one figure for all stands under the plainest of
    them.
    """
    if isinstance(given, Mapping):
        return _parts(given, given if known is None else known, place)
    if given is None:
        return None
    return {plain: round(given * WINDOW_NS)}


def _memory(given: Rank) -> Memory:
    memory, again = given.memory, given.memory.recompute_modules
    calls, retried = memory.allocator_calls_per_step, memory.allocator_retry_frac
    if retried is None and calls is not None:
        retried = min(1.0, calls / CALLS_OF_A_RETRY.value)
    return structs.replace(
        _UNKNOWN,
        recompute_ns=first_known(_ns(memory.recompute_frac), _NOT_GIVEN),
        recompute_modules=_parts(again, again, "") if isinstance(again, Mapping) else None,
        offload_exposed_ns=0 if memory.offload_copies == 0 else _ns(memory.offload_exposed_frac),
        offload_copies=memory.offload_copies,
        host_resident_exposed_ns=_ns(memory.host_resident_exposed_frac),
        allocator_ns=_ns(memory.allocator_frac),
        allocator_retry_frac=retried,
        peak_bytes=of_known(int, memory.peak_bytes),
        capacity_bytes=of_known(int, memory.capacity_bytes),
    )


def _observed(given: Rank) -> Observed:
    seen, kernels = given.detected, given.kernels
    modules, full = _recomputed(seen, given.memory.recompute_modules)
    return copied(
        Observed,
        seen,
        kernels,
        framework=next((name for name in FRAMEWORKS if name == seen.framework), None),
        training=seen.training_step,
        gpu=of_known(gpu_named, given.gpu),
        dispatcher=seen.dispatcher or "unknown",
        graph_frac=seen.graph_share_frac,
        recompute_modules=modules,
        recompute_full=full,
        allocator_calls_per_step=given.memory.allocator_calls_per_step,
        short_kernel_frac=first_known(kernels.short_kernel_frac, seen.short_kernel_frac),
    )


def _recomputed(seen: Detected, modules: object) -> tuple[Texts | None, bool | None]:
    labels = modules if isinstance(modules, tuple) else None
    match seen.recompute:
        case None | "selective":
            return labels, of_known(_FULL.issubset, labels)
        case "none":
            return labels or (), False
        case "full":
            return labels, True
        case tuple() as named:
            return named, _FULL.issubset(named)
        case passes:
            again = {
                RECOMPUTE_LABELS.get(key) for key, often in passes.items() if often.recomputed_count
            }
            return tuple(sorted(filter(None, again))), None


def _check_sums(figures: Figures) -> None:
    budget, absent = figures.budget_ns, added((figures.starved_ns, figures.blocking_ns)).total()
    for ns in (figures.arrival_ns, figures.opaque_ns, figures.stalled_ns):
        absent += ns or 0
    exposed = added((figures.exposed_by_kind_ns,)).total()
    classes = added((figures.by_class_ns,)).total()
    without = WINDOW_NS - budget.get("compute", 0)
    checks = (
        ("budget", sum(budget.values()), WINDOW_NS, "the window"),
        ("exposed_comm_by_kind", exposed, budget.get("exposed_comm", WINDOW_NS), "exposed_comm"),
        ("compute_by_class", classes, budget.get("compute", WINDOW_NS), "compute"),
        ("absent", absent, without, "the window without compute"),
    )
    for name, parts_ns, whole_ns, what in checks:
        frac, whole = parts_ns / WINDOW_NS, whole_ns / WINDOW_NS
        if frac > whole + SLACK:
            raise InputError(f"{name} adds up to {frac:.3f}, more than {what} ({whole:.3f})")


NOTHING: Final = figures_given(Rank())
"""A rank of which nothing is given."""
