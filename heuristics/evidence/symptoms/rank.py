"""One rank of a symptoms file, or the whole run given flat, as the figures that a trace would give."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar, get_args

from msgspec import structs

from heuristics.config.hardware import gpu_family
from heuristics.evidence.symptoms.fields import WINDOW_NS, Fields
from heuristics.figures.figures import RECOMPUTE_LABELS, Figures, Parts, compute_again_ns
from heuristics.result.judged import Bucket
from heuristics.run.observed import Observed
from heuristics.walls.verdict import FAMILIES
from traces.account.host import CAUSES
from traces.limits import Limit
from traces.missing import gap
from traces.names.frameworks import FRAMEWORKS
from traces.names.kernels import COMM_KINDS, compute_classes
from traces.sections.rank import A2a, Absent, Detected, Dispatcher, Memory, Rank, Sm
from traces.sections.tables import WallId

SLACK: Final = 0.005
"""How far parts may exceed their whole: figures are given rounded."""
RANK_KEYS: Final = (*Rank.__struct_fields__, "masked_frac", "exposed_copy_by_kind_frac")
"""Keys that a rank of a result has, read or not."""
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
T = TypeVar("T")


def read_rank(fields: Fields) -> Figures:
    """What an object tells of a rank. Raises InputError for what it cannot tell."""
    fields.known |= {*RANK_KEYS}
    fields.window_ns = _window_ns(fields.under("budget_ns"))
    if fields.window_ns == 0:
        fields.refuse("budget_ns.window", "is 0: a window without time cannot be judged")
    name = "absent_ns" if "absent_ns" in fields and "absent_frac" not in fields else "absent_frac"
    absent, sm = fields.under(name, Absent.__struct_fields__), fields.under("sm", Sm.__struct_fields__)
    budget, memory = _budget(fields), _memory(fields)
    exposed, hidden = (_by_kind(fields, f"{name}_comm_by_kind") for name in ("exposed", "hidden"))
    starved = _split(absent, "launch_starved", CAUSES, "launch", fields.part("launch_starved_frac"))
    blocking = _split(absent, "blocking", None, "other_comm", fields.part("blocking_comm_frac"))
    latency = _split(absent, "launch_latency", ("arrival", "kernel_gap"), "arrival") or {}
    if memory.allocator_ns is None and starved is not None:
        memory = structs.replace(memory, allocator_ns=starved.get("allocator", 0))
    under, work_ns = sm.share("under_filled_frac"), budget.get("compute", WINDOW_NS)
    found = Figures(
        window_ns=WINDOW_NS,
        judged_ns=WINDOW_NS,
        memory=memory,
        rank=fields.count("rank"),
        budget_ns=budget,
        comm_kinds=frozenset(
            kind for one in (exposed, hidden, blocking) for kind, ns in (one or {}).items() if ns
        ),
        exposed_by_kind_ns=exposed,
        hidden_comm_ns=_first(fields.time("hidden_comm"), None if hidden is None else sum(hidden.values())),
        by_class_ns=fields.times("compute_by_class", compute_classes()),
        starved_ns=starved,
        split=starved is None or isinstance(absent.values.get("launch_starved"), dict),
        blocking_ns=blocking,
        arrival_ns=latency.get("arrival"),
        opaque_ns=absent.part("graph_opaque"),
        stalled_ns=absent.part("dependency_stalled"),
        masked_ns=fields.time("masked"),
        recomputed_ns=compute_again_ns(memory),
        work_ns=work_ns,
        under_filled_ns=sm.part("under_filled_ns") if under is None else round(under * work_ns),
        fill_frac=sm.share("fill_frac"),
        observed=_observed(fields),
    )
    _check_sums(fields, found)
    return _with_a2a(fields.under("a2a", A2a.__struct_fields__), found, hidden)


def _by_kind(fields: Fields, name: str) -> dict[str, int] | None:
    """Communication by kind; `dp`, as the verdict names both of its kinds, counts as the first of them."""
    found = fields.times(name, (*COMM_KINDS, "dp"))
    if found is None or "dp" not in found:
        return found
    first, both = FAMILIES["dp"][0], found.pop("dp")
    return {**found, first: found.get(first, 0) + both}


def _window_ns(budget: Fields) -> float | None:
    """The window as given, else its buckets together: they add up to it."""
    if "window" in budget:
        return budget.number("window")
    return sum(budget.number(bucket) or 0.0 for bucket in get_args(Bucket)) or None


def _budget(fields: Fields) -> dict[str, int]:
    for unit in ("frac", "ns"):
        if (key := f"budget_{unit}") in fields:
            whole = fields.under(key).parts((*get_args(Bucket), "window"))
            return {bucket: ns for bucket, ns in whole.items() if bucket != "window"}
    alone = {bucket: fields.part(f"{bucket}_frac") for bucket in get_args(Bucket)}
    return {bucket: ns for bucket, ns in alone.items() if ns is not None}


def _split(
    fields: Fields, key: str, known: Collection[str] | None, plain: str, alone_ns: int | None = None
) -> dict[str, int] | None:
    """Parts by key (any key where none is `known`); one figure for all stands under the plainest of them."""
    if isinstance(fields.values.get(key), dict):
        inner = fields.under(key)
        return inner.parts(inner.values if known is None else known)
    whole_ns = _first(fields.part(key), alone_ns)
    return None if whole_ns is None else {plain: whole_ns}


def _with_a2a(fields: Fields, found: Figures, hidden: dict[str, int] | None) -> Figures:
    """Expert all-to-all, as given, else by the kinds of communication; all of it is payload."""
    exposed_ns = _first(fields.time("exposed"), _of_experts(found.exposed_by_kind_ns))
    hidden_ns = _first(fields.time("hidden"), _of_experts(hidden))
    return replace(
        found,
        a2a_exposed_ns=exposed_ns,
        a2a_hidden_ns=hidden_ns,
        a2a_payload_ns=_first(fields.time("payload"), (exposed_ns or 0) + (hidden_ns or 0) or None),
        a2a_waiting_ns=fields.time("waiting_like"),
    )


def _of_experts(kinds: Parts | None) -> int | None:
    return None if kinds is None else sum(ns for kind, ns in kinds.items() if kind.startswith("ep_"))


def _memory(fields: Fields) -> Memory:
    memory = fields.under("memory", Memory.__struct_fields__)
    recompute_ns, offload_ns, resident_ns, allocator_ns = (
        _first(memory.time(name), fields.part(f"{name}_frac"))
        for name in ("recompute", "offload_exposed", "host_resident_exposed", "allocator")
    )
    copies, peak, capacity = (memory.count(key) for key in ("offload_copies", "peak_bytes", "capacity_bytes"))
    retried, calls = fields.share("allocator_retry_frac"), _calls(fields)
    if calls is not None:
        retried = _first(retried, min(1.0, calls / CALLS_OF_A_RETRY.value))
    by_class = None
    if "recompute_modules" in memory and not isinstance(memory.values["recompute_modules"], list):
        inner = memory.under("recompute_modules")
        inner.in_ns = True
        by_class = inner.parts(inner.values)
    return structs.replace(
        _UNKNOWN,
        recompute_ns=_NOT_GIVEN if recompute_ns is None else recompute_ns,
        recompute_modules=by_class,
        offload_exposed_ns=0 if copies == 0 else offload_ns,
        offload_copies=copies,
        host_resident_exposed_ns=resident_ns,
        allocator_ns=allocator_ns,
        allocator_retry_frac=_first(memory.share("allocator_retry_frac"), retried),
        peak_bytes=peak,
        capacity_bytes=capacity,
    )


def _calls(fields: Fields) -> float | None:
    key = "allocator_calls_per_step"
    return _first(fields.under("memory").number(key), fields.number(key))


def _first(one: T | None, other: T | None) -> T | None:
    return other if one is None else one


def _observed(fields: Fields) -> Observed:
    """What an object tells of the run itself."""
    seen, kernels = fields.under("detected", Detected.__struct_fields__), fields.under("kernels")
    modules, full = _recomputed(seen, fields.under("memory"))
    gpu = fields.text("gpu")
    return Observed(
        framework=next((one for one in FRAMEWORKS if one == seen.text("framework", FRAMEWORKS)), None),
        training=seen.flag("training_step"),
        gpu=None if gpu is None else gpu_family(gpu),
        dispatcher=seen.text("dispatcher", get_args(Dispatcher)) or "unknown",
        internode=seen.flag("internode"),
        ep_overlap=seen.flag("ep_overlap"),
        graph_frac=seen.share("graph_share_frac"),
        recompute_modules=modules,
        recompute_full=full,
        allocator_calls_per_step=_calls(fields),
        precision=seen.text("precision"),
        grouped_gemm=seen.flag("grouped_gemm"),
        expert_gemms_per_layer=kernels.number("expert_gemms_per_layer"),
        permute_fused=seen.flag("permute_fused"),
        router_kernels_per_layer=kernels.number("router_kernels_per_layer"),
        short_kernel_frac=_first(kernels.share("short_kernel_frac"), seen.share("short_kernel_frac")),
    )


def _recomputed(seen: Fields, memory: Fields) -> tuple[tuple[str, ...] | None, bool | None]:
    """What runs again: true or false, `none`, `selective` or `full`, labels, or passes by module."""
    listed = memory.values.get("recompute_modules")
    modules = memory.texts("recompute_modules") if isinstance(listed, list) else None
    match seen.values.get("recompute"):
        case None | True | "selective":
            return modules, _is_full(modules)
        case False | "none":
            return modules or (), False
        case "full":
            return modules, True
        case list():
            modules = seen.texts("recompute")
            return modules, _is_full(modules)
        case dict() as passes:
            inner = seen.under("recompute")
            again = {
                RECOMPUTE_LABELS.get(key) for key in passes if inner.under(key).number("recomputed_count")
            }
            return tuple(sorted(label for label in again if label)), None
        case _:
            seen.refuse("recompute", "is to be none, selective, full, true, false or a list of modules")


def _is_full(modules: tuple[str, ...] | None) -> bool | None:
    return None if modules is None else {*modules} >= _FULL


def _check_sums(fields: Fields, found: Figures) -> None:
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
            fields.refuse(name, f"adds up to {frac:.3f}, more than {what} ({whole:.3f})")


NOTHING: Final = read_rank(Fields("", "", {}))
"""A rank of which nothing is given."""
