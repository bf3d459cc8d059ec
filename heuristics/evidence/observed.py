"""What a trace shows of its run, over all ranks; None where it does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from heuristics.config.hardware import gpu_family
from heuristics.run.observed import Observed
from traces.account.account import Account
from traces.limits import Limit
from traces.measure.measurements import RankMeasurements
from traces.measure.moe_ledger import MoeLedger
from traces.names.frameworks import FRAMEWORKS, Framework

OVERLAPPED: Final = Limit(
    0.3,
    "fraction of expert all-to-all",
    "ours, below a working overlap's 36.55 %; 0.11 % without (Bridge, skill expert-parallel-overlap)",
)
EXPOSED: Final = Limit(0.1, "fraction of expert all-to-all", "ours: nothing hides it on purpose")
RECOMPUTE_LABELS: Final = {
    "attention": "core_attn",
    "norm": "layernorm",
    "activation": "moe_act",
    "router": "moe",
    "dispatch": "moe",
}
"""What runs again -> the label in Megatron-Core's recompute_modules that makes it so."""
_ROUTING: Final = ("router", "permute", "grouped_gemm")


def observed_by(measurements: Sequence[RankMeasurements]) -> Observed:
    """What the measurements of a run show; at least one rank."""
    first = measurements[0]
    peaks = [rank.memory.peak_bytes for rank in measurements if rank.memory.peak_bytes is not None]
    precisions = {rank.precision.precision for rank in measurements}
    kinds = {kind for rank in measurements for kind in rank.budget.exposed_comm_by_kind_ns}
    told = all(rank.communication_told for rank in measurements)
    dispatcher = _dispatcher(measurements)
    classes = {name for rank in measurements for name in rank.budget.compute_by_class_ns}
    modules = _recomputed(measurements)
    return Observed(
        framework=_framework(measurements),
        moe=_routes_tokens(classes, dispatcher) if told else None,
        training=first.steps.training,
        gpu=None if first.gpu is None or first.gpu.name is None else gpu_family(first.gpu.name),
        capability=_capability(first),
        memory_bytes=first.gpu.memory_bytes if first.gpu else None,
        peak_bytes=max(peaks, default=None),
        dispatcher=dispatcher,
        ep_overlap=_overlap(measurements),
        tp_active="tp" in kinds or None,
        pp_active="pp_p2p" in kinds or None,
        cp_active="cp" in kinds or None,
        dp_active=bool(kinds & {"dp_reduce_scatter", "dp_all_gather"}) or None,
        gathers_unresolved=any(one.kind == "other_comm" for rank in measurements for one in rank.unresolved),
        graph_frac=max(rank.detected.graph_share_frac for rank in measurements),
        recompute_modules=modules,
        recompute_full=None
        if modules is None
        else {"core_attn", "layernorm", *_experts(classes)} <= set(modules),
        offload=_any(rank.memory.offload_copies for rank in measurements),
        allocator_calls_per_step=_calls_per_step(measurements),
        precision=precisions.pop() if len(precisions) == 1 else None,
        grouped_gemm=True if "grouped_gemm" in classes else None,
        token_count_sync=_cause(measurements, "token_count_sync"),
        short_kernel_frac=max(
            (one for rank in measurements if (one := rank.detected.short_kernel_frac) is not None),
            default=None,
        ),
        a2a_waiting_frac=_waiting(measurements),
        absent_frac=_absent(measurements),
        recorder=first.kind,
        several_gpus=len(measurements) > 1 or (_communicates(measurements) if told else None),
        moe_passes=tuple(
            rank.moe.passes for rank in measurements if isinstance(rank.moe, MoeLedger) and rank.moe.passes
        ),
    )


def _communicates(measurements: Sequence[RankMeasurements]) -> bool:
    budgets = [rank.budget for rank in measurements]
    return any(one.hidden_comm_ns or one.exposed_comm_by_kind_ns for one in budgets)


def _framework(measurements: Sequence[RankMeasurements]) -> Framework:
    """The framework of the run: what any of its ranks shows, in the order of trust."""
    found = {rank.detected.framework for rank in measurements}
    return next(one for one in FRAMEWORKS if one in found)


def _routes_tokens(classes: set[str], dispatcher: str) -> bool | None:
    if classes & set(_ROUTING) or dispatcher not in ("none", "unknown"):
        return True
    return False if dispatcher == "none" else None


def _experts(classes: set[str]) -> tuple[str, ...]:
    """What full recompute repeats beside attention and norms, where there are experts."""
    return ("moe",) if classes & set(_ROUTING) else ()


def _dispatcher(measurements: Sequence[RankMeasurements]) -> str:
    """The one dispatcher of all ranks; a rank without experts, such as a first stage, does not count."""
    found = {rank.a2a.dispatcher for rank in measurements if rank.a2a is not None}
    named = found - {"none"} or found
    return named.pop() if len(named) == 1 else "unknown"


def _capability(rank: RankMeasurements) -> tuple[int, int] | None:
    text = rank.gpu.capability if rank.gpu else None
    major, _, minor = (text or "").partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _overlap(measurements: Sequence[RankMeasurements]) -> bool | None:
    """Whether expert all-to-all runs under compute on purpose; None between the limits."""
    spans = [rank.a2a for rank in measurements if rank.a2a is not None]
    hidden, exposed = sum(one.hidden_ns for one in spans), sum(one.exposed_ns for one in spans)
    if not hidden + exposed:
        return None
    share = hidden / (hidden + exposed)
    return True if share >= OVERLAPPED.value else False if share <= EXPOSED.value else None


def _recomputed(measurements: Sequence[RankMeasurements]) -> tuple[str, ...] | None:
    if any(rank.memory.recompute_ns is None for rank in measurements):
        return None
    again = {
        RECOMPUTE_LABELS[module]
        for rank in measurements
        for module, passes in rank.recompute.modules.items()
        if passes.recomputed_count
    }
    return tuple(sorted(again))


def _any(counts: Iterable[int | None]) -> bool | None:
    known = [count for count in counts if count is not None]
    return any(known) if known else None


def _calls_per_step(measurements: Sequence[RankMeasurements]) -> float | None:
    known = [
        rank.memory.allocator_calls / (len(rank.steps.used) - 1)
        for rank in measurements
        if rank.memory.allocator_calls is not None and len(rank.steps.used) > 1
    ]
    return max(known) if known else None


def _cause(measurements: Sequence[RankMeasurements], cause: str) -> bool | None:
    """Whether the host was ever late for this cause; not seen is not proven absent."""
    accounts = [rank.account for rank in measurements if isinstance(rank.account, Account)]
    return True if any(account.launch_starved_ns.get(cause) for account in accounts) else None


def _waiting(measurements: Sequence[RankMeasurements]) -> float | None:
    known = [
        (rank.a2a.waiting_like_ns, rank.a2a.payload_ns)
        for rank in measurements
        if rank.a2a is not None and rank.a2a.waiting_like_ns is not None and rank.a2a.payload_ns
    ]
    return sum(waiting for waiting, _ in known) / sum(payload for _, payload in known) if known else None


def _absent(measurements: Sequence[RankMeasurements]) -> dict[str, float] | None:
    """Time without compute by cause of a late launch, as part of the windows."""
    accounts = [rank.account for rank in measurements if isinstance(rank.account, Account)]
    if len(accounts) < len(measurements):
        return None
    window_ns = sum(rank.budget.window_ns for rank in measurements)
    causes = {cause for account in accounts for cause in account.launch_starved_ns}
    return {
        cause: sum(account.launch_starved_ns.get(cause, 0) for account in accounts) / window_ns
        for cause in sorted(causes)
    }
