"""One rank of a symptoms file, or the whole run said flat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from heuristics.evidence.observed import RECOMPUTE_LABELS
from heuristics.evidence.symptoms.fields import Fields
from heuristics.evidence.symptoms.symptoms import RankSymptoms
from heuristics.result.rank import Detected, Memory, Rank
from heuristics.walls.verdict import FAMILIES
from traces.account.host import CAUSES
from traces.names.kinds import COMM_KINDS, compute_classes

SLACK: Final = 0.005
"""How far parts may exceed their whole: figures are said rounded."""

BUCKETS: Final = ("compute", "exposed_comm", "exposed_copy", "idle")
DISPATCHERS: Final = ("alltoall", "deepep", "hybridep", "ncclep", "allgather", "none", "unknown")
PRODUCERS: Final = (*COMM_KINDS, "copy", "memset", "graph_replay", "other")

_LONE: Final[Mapping[str, str]] = {
    "launch_starved_frac": "launch",
    "blocking_comm_frac": "other_comm",
    "exposed_comm_frac": "exposed_comm",
    "compute_frac": "compute",
    "idle_frac": "idle",
}
"""Single figures, as the evidence of the walls names them, and the part each is of its family."""
_MEMORY_ALONE: Final = (
    *("recompute_frac", "offload_exposed_frac", "host_resident_exposed_frac"),
    *("allocator_frac", "allocator_retry_frac"),
    "allocator_calls_per_step",
)
_DP: Final = "dp"
_TIMED: Final = ("exposed_comm_by_kind", "hidden_comm_by_kind", "hidden_comm", "compute_by_class")
RANK_KEYS: Final = (
    *Rank.__struct_fields__,
    *("kernels", "masked_frac", "exposed_copy_by_kind_frac"),
    *_LONE,
    *_MEMORY_ALONE,
    *(f"{name}_{unit}" for name in ("budget", "absent", *_TIMED) for unit in ("ns", "frac")),
)
"""Every key a rank may have: those of a result, read or not, and some of them as shares."""

_ABSENT_KEYS: Final = (
    *("launch_starved", "blocking", "launch_latency", "graph_opaque", "dependency_stalled", "trailing"),
)
_MEMORY_KEYS: Final = (
    *Memory.__struct_fields__,
    *("recompute_frac", "offload_exposed_frac", "host_resident_exposed_frac", "allocator_frac"),
    "allocator_calls_per_step",
)
_DETECTED_KEYS: Final = (
    *Detected.__struct_fields__,
    *("internode", "grouped_gemm", "permute_fused"),
)
_KERNEL_KEYS: Final = (
    *("short_kernel_frac", "expert_gemms_per_layer", "router_kernels_per_layer", "sum_by_class_frac"),
)
_A2A_TIMES: Final = ("payload", "control", "waiting_like", "exposed", "hidden", "blocking", "unresolved")
_A2A_KEYS: Final = (
    *("instances", "spans"),
    *(f"{name}_{unit}" for name in _A2A_TIMES for unit in ("ns", "frac")),
)
_FULL: Final = frozenset(("core_attn", "layernorm", "moe"))
"""Labels of a MoE layer's parts: where all of them run twice, whole layers do."""


def read_rank(fields: Fields, strict: bool) -> RankSymptoms:
    """What an object says of a rank. Raises InputError for what it cannot say.

    `strict`: for unknown keys under its own, too; the caller knows which keys may stand beside them.
    """
    window_ns = _window_ns(fields.under("budget_ns"))
    if window_ns == 0:
        fields.refuse("budget_ns.window", "is 0: a window without time cannot be judged")
    fields = fields.timed(window_ns)
    found = RankSymptoms(
        rank=fields.count("rank"),
        gpu=fields.text("gpu"),
        window_ns=None if window_ns is None else int(window_ns),
        budget_frac=_budget(fields),
        exposed_by_kind_frac=_by_kind(fields, "exposed_comm_by_kind"),
        hidden_by_kind_frac=_by_kind(fields, "hidden_comm_by_kind"),
        hidden_frac=fields.time("hidden_comm"),
        compute_by_class_frac=fields.times("compute_by_class", compute_classes()),
    )
    found = _with_absent(fields, found, strict)
    found = _with_a2a(fields.under("a2a"), found, strict)
    found = _with_memory(fields, found, strict)
    found = _with_detected(fields.under("detected"), fields.under("kernels"), found, strict)
    sm = fields.under("sm")
    found = replace(found, fill_frac=sm.share("fill_frac"), under_filled_frac=_under_filled(sm, found))
    _check_sums(fields, found)
    return found


def _by_kind(fields: Fields, name: str) -> dict[str, float] | None:
    """Communication by kind; `dp`, as the verdict names both of its kinds, counts as the first of them."""
    found = fields.times(name, (*COMM_KINDS, _DP))
    if found is None or _DP not in found:
        return found
    first, both = FAMILIES[_DP][0], found.pop(_DP)
    return {**found, first: found.get(first, 0.0) + both}


def _window_ns(budget: Fields) -> float | None:
    """The window as said, else its buckets together: they add up to it."""
    if "window" in budget:
        return budget.number("window")
    return sum(budget.number(bucket) or 0.0 for bucket in BUCKETS) or None


def _budget(fields: Fields) -> dict[str, float] | None:
    for key in ("budget_frac", "budget_ns"):
        if key in fields:
            budget = fields.under(key).parts((*BUCKETS, "window"), in_ns=key == "budget_ns")
            return {name: part for name, part in budget.items() if name != "window"} or None
    alone = {"exposed_comm_frac": "exposed_comm", "compute_frac": "compute", "idle_frac": "idle"}
    told = {bucket: fields.share(key) for key, bucket in alone.items()}
    return {bucket: part for bucket, part in told.items() if part is not None} or None


def _with_absent(fields: Fields, found: RankSymptoms, strict: bool) -> RankSymptoms:
    """Why no compute ran. A figure that is not split stands under the plainest of its parts."""
    key = "absent_ns" if "absent_ns" in fields and "absent_frac" not in fields else "absent_frac"
    absent, in_ns = fields.under(key), key == "absent_ns"
    if strict:
        absent.note(_ABSENT_KEYS)
    starved = _split(absent, "launch_starved", CAUSES, "launch", in_ns)
    by_cause = isinstance(absent.values.get("launch_starved"), dict)
    if starved is None and (alone := fields.share("launch_starved_frac")) is not None:
        starved = {"launch": alone}
    blocking = _split(absent, "blocking", PRODUCERS, "other_comm", in_ns, open_keys=True)
    if blocking is None and (alone := fields.share("blocking_comm_frac")) is not None:
        blocking = {"other_comm": alone}
    latency = _split(absent, "launch_latency", ("arrival", "kernel_gap"), "arrival", in_ns) or {}
    return replace(
        found,
        starved_frac=starved,
        starved_by_cause=by_cause or starved is None,
        blocking_frac=blocking,
        arrival_frac=latency.get("arrival"),
        opaque_frac=_part(absent, "graph_opaque", in_ns),
        stalled_frac=_part(absent, "dependency_stalled", in_ns),
    )


def _split(
    fields: Fields, key: str, known: Iterable[str], plain: str, in_ns: bool, open_keys: bool = False
) -> dict[str, float] | None:
    """Parts by key, or one figure for all of them."""
    if key not in fields:
        return None
    if isinstance(fields.values[key], dict):
        inner = fields.under(key)
        return inner.parts(tuple(inner.values) if open_keys else tuple(known), in_ns)
    whole = _part(fields, key, in_ns)
    return None if whole is None else {plain: whole}


def _part(fields: Fields, key: str, in_ns: bool) -> float | None:
    if key not in fields:
        return None
    alone = Fields(fields.source, fields.path, {key: fields.values[key]}, fields.window_ns)
    return alone.parts((key,), in_ns)[key]


def _with_a2a(fields: Fields, found: RankSymptoms, strict: bool) -> RankSymptoms:
    if strict:
        fields.note(_A2A_KEYS)
    return replace(
        found,
        a2a_exposed_frac=fields.time("exposed"),
        a2a_hidden_frac=fields.time("hidden"),
        a2a_payload_frac=fields.time("payload"),
        a2a_waiting_frac=fields.time("waiting_like"),
    )


def _with_memory(fields: Fields, found: RankSymptoms, strict: bool) -> RankSymptoms:
    memory = fields.under("memory")
    if strict:
        memory.note(_MEMORY_KEYS)
    alone = Fields(fields.source, fields.path, {key: fields.values.get(key) for key in _MEMORY_ALONE})
    modules, holds_comm = _modules(memory)
    return replace(
        found,
        recompute_frac=_either(memory.time("recompute"), alone.share("recompute_frac")),
        recompute_modules=modules,
        recompute_full=None if modules is None else True if set(modules) >= _FULL else None,
        recompute_holds_comm=holds_comm,
        offload_exposed_frac=_either(memory.time("offload_exposed"), alone.share("offload_exposed_frac")),
        offload_copies=memory.number("offload_copies"),
        host_resident_exposed_frac=_either(
            memory.time("host_resident_exposed"), alone.share("host_resident_exposed_frac")
        ),
        allocator_frac=_either(memory.time("allocator"), alone.share("allocator_frac")),
        allocator_retry_frac=_either(
            memory.share("allocator_retry_frac"), alone.share("allocator_retry_frac")
        ),
        allocator_calls_per_step=_either(
            memory.number("allocator_calls_per_step"), alone.number("allocator_calls_per_step")
        ),
        peak_bytes=memory.number("peak_bytes"),
        capacity_bytes=memory.number("capacity_bytes"),
    )


def _either(first: float | None, second: float | None) -> float | None:
    return second if first is None else first


def _modules(memory: Fields) -> tuple[tuple[str, ...] | None, bool]:
    """Labels of a list; of the contract's map only whether the price counts what is sent again."""
    fields = memory.values.get("recompute_modules")
    if fields is None or isinstance(fields, list):
        return memory.texts("recompute_modules"), False
    inner = memory.under("recompute_modules")
    for key in inner.values:
        inner.number(key)
    return None, True


def _with_detected(fields: Fields, kernels: Fields, found: RankSymptoms, strict: bool) -> RankSymptoms:
    if strict:
        fields.note(_DETECTED_KEYS)
        kernels.note(_KERNEL_KEYS)
    modules, full = _recompute(fields, found)
    return replace(
        found,
        recompute_modules=modules,
        recompute_full=full,
        dispatcher=fields.text("dispatcher", DISPATCHERS),
        internode=fields.flag("internode"),
        precision=fields.text("precision"),
        graph_frac=fields.share("graph_share_frac"),
        ep_overlap=fields.flag("ep_overlap"),
        training=fields.flag("training_step"),
        grouped_gemm=fields.flag("grouped_gemm"),
        permute_fused=fields.flag("permute_fused"),
        short_kernel_frac=_either(kernels.share("short_kernel_frac"), fields.share("short_kernel_frac")),
        expert_gemms_per_layer=kernels.number("expert_gemms_per_layer"),
        router_kernels_per_layer=kernels.number("router_kernels_per_layer"),
        summed_frac=kernels.under("sum_by_class_frac").parts(
            tuple(kernels.under("sum_by_class_frac").values), in_ns=False
        )
        or None,
    )


def _recompute(fields: Fields, found: RankSymptoms) -> tuple[tuple[str, ...] | None, bool | None]:
    """What runs again: true or false, `none`, `selective` or `full`, labels, or passes by module."""
    modules, full, value = found.recompute_modules, found.recompute_full, fields.values.get("recompute")
    if value is None or value is True or value == "selective":
        return modules, full
    if value is False or value == "none":
        return (modules or ()), False
    if value == "full":
        return modules, True
    if isinstance(value, list):
        return fields.texts("recompute"), full
    if isinstance(value, dict):
        inner = fields.under("recompute")
        again = {RECOMPUTE_LABELS.get(key) for key in value if inner.under(key).number("recomputed_count")}
        labels = tuple(sorted(label for label in again if label))
        return labels, set(labels) >= _FULL or None
    fields.refuse("recompute", "is to be none, selective, full, true, false or a list of modules")


def _under_filled(sm: Fields, found: RankSymptoms) -> float | None:
    """Part of the compute work in kernels with fewer blocks than SMs."""
    if "under_filled_frac" in sm:
        return sm.share("under_filled_frac")
    part, compute = sm.time("under_filled"), (found.budget_frac or {}).get("compute")
    return min(1.0, part / compute) if part is not None and compute else None


def _check_sums(fields: Fields, found: RankSymptoms) -> None:
    """Raise InputError where parts are more than their whole."""
    budget = found.budget_frac or {}
    exposed = budget.get("exposed_comm", 1.0)
    absent = [*(found.starved_frac or {}).values(), *(found.blocking_frac or {}).values()]
    absent += [one for one in (found.arrival_frac, found.opaque_frac, found.stalled_frac) if one]
    checks = (
        ("budget", budget.values(), 1.0, "the window"),
        ("exposed_comm_by_kind", (found.exposed_by_kind_frac or {}).values(), exposed, "exposed_comm"),
        (
            "compute_by_class",
            (found.compute_by_class_frac or {}).values(),
            budget.get("compute", 1.0),
            "compute",
        ),
        ("absent", absent, 1.0 - budget.get("compute", 0.0), "the window without compute"),
    )
    for name, parts, whole, what in checks:
        if sum(parts) > whole + SLACK:
            fields.refuse(name, f"adds up to {sum(parts):.3f}, more than {what} ({whole:.3f})")
