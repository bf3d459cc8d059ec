"""What symptoms show of a run, as a trace would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from heuristics.config.hardware import gpu_family
from heuristics.evidence.observed import EXPOSED, OVERLAPPED
from heuristics.evidence.symptoms.symptoms import Parts, RankSymptoms, any_of, most_of, parts_of, text_of
from heuristics.run.observed import Observed

_ROUTING: Final = ("router", "permute", "grouped_gemm")
_EXPERT: Final = "ep_"


def observed_by(ranks: Sequence[RankSymptoms]) -> Observed:
    """What the ranks of a run show; what none of them says is None."""
    if not ranks:
        return Observed()
    kinds = _kinds(ranks)
    dispatcher = _dispatcher(ranks)
    peak, capacity = (
        most_of(ranks, lambda rank: rank.peak_bytes),
        most_of(ranks, lambda rank: rank.capacity_bytes),
    )
    gpu = text_of(ranks, lambda rank: rank.gpu)
    starved = parts_of(ranks, lambda rank: rank.starved_frac)
    return Observed(
        moe=_moe(ranks, dispatcher, kinds),
        training=any_of(ranks, lambda rank: rank.training),
        gpu=None if gpu is None else gpu_family(gpu),
        memory_bytes=None if capacity is None else int(capacity),
        peak_bytes=None if peak is None else int(peak),
        dispatcher=dispatcher,
        internode=any_of(ranks, lambda rank: rank.internode),
        ep_overlap=_overlap(ranks),
        tp_active="tp" in kinds or None,
        pp_active="pp_p2p" in kinds or None,
        cp_active="cp" in kinds or None,
        dp_active=bool(kinds & {"dp_reduce_scatter", "dp_all_gather"}) or None,
        graph_frac=most_of(ranks, lambda rank: rank.graph_frac),
        recompute_modules=_recomputed(ranks),
        recompute_full=any_of(ranks, lambda rank: rank.recompute_full),
        offload=_offload(ranks),
        allocator_calls_per_step=most_of(ranks, lambda rank: rank.allocator_calls_per_step),
        precision=text_of(ranks, lambda rank: rank.precision),
        grouped_gemm=_grouped(ranks),
        expert_gemms_per_layer=most_of(ranks, lambda rank: rank.expert_gemms_per_layer),
        permute_fused=any_of(ranks, lambda rank: rank.permute_fused),
        router_kernels_per_layer=most_of(ranks, lambda rank: rank.router_kernels_per_layer),
        token_count_sync=bool((starved or {}).get("token_count_sync")) or None,
        a2a_waiting_frac=_waiting(ranks),
        short_kernel_frac=most_of(ranks, lambda rank: rank.short_kernel_frac),
        absent_frac=starved,
        several_gpus=len(ranks) > 1 or bool(kinds) or None,
    )


def _kinds(ranks: Sequence[RankSymptoms]) -> set[str]:
    """Kinds of communication that run at all."""
    said: list[Parts | None] = []
    for rank in ranks:
        said += [rank.exposed_by_kind_frac, rank.hidden_by_kind_frac, rank.blocking_frac]
    return {kind for parts in said for kind, part in (parts or {}).items() if part}


def _dispatcher(ranks: Sequence[RankSymptoms]) -> str:
    """The one dispatcher of all ranks; a rank without experts does not count."""
    found = {rank.dispatcher for rank in ranks if rank.dispatcher is not None}
    named = found - {"none"} or found
    return named.pop() if len(named) == 1 else "unknown"


def _moe(ranks: Sequence[RankSymptoms], dispatcher: str, kinds: set[str]) -> bool | None:
    classes = {name for rank in ranks for name, part in (rank.compute_by_class_frac or {}).items() if part}
    experts = any(rank.expert_gemms_per_layer for rank in ranks)
    if experts or classes & set(_ROUTING) or any(kind.startswith(_EXPERT) for kind in kinds):
        return True
    return None if dispatcher == "unknown" else dispatcher != "none"


def _overlap(ranks: Sequence[RankSymptoms]) -> bool | None:
    """As said, else by how much of the expert all-to-all is hidden; None between the limits."""
    if (told := any_of(ranks, lambda rank: rank.ep_overlap)) is not None:
        return told
    hidden = exposed = 0.0
    for rank in ranks:
        hidden_part = _expert_part(rank.a2a_hidden_frac, rank.hidden_by_kind_frac)
        exposed_part = _expert_part(rank.a2a_exposed_frac, rank.exposed_by_kind_frac)
        if hidden_part is None or exposed_part is None:
            continue
        hidden, exposed = hidden + hidden_part, exposed + exposed_part
    if not hidden + exposed:
        return None
    share = hidden / (hidden + exposed)
    return True if share >= OVERLAPPED.value else False if share <= EXPOSED.value else None


def _expert_part(told: float | None, kinds: Parts | None) -> float | None:
    if told is not None or kinds is None:
        return told
    return sum(part for kind, part in kinds.items() if kind.startswith(_EXPERT))


def _recomputed(ranks: Sequence[RankSymptoms]) -> tuple[str, ...] | None:
    told = [rank.recompute_modules for rank in ranks if rank.recompute_modules is not None]
    return tuple(sorted({label for labels in told for label in labels})) if told else None


def _offload(ranks: Sequence[RankSymptoms]) -> bool | None:
    copies = most_of(ranks, lambda rank: rank.offload_copies)
    if copies is not None:
        return copies > 0
    return True if most_of(ranks, lambda rank: rank.offload_exposed_frac) else None


def _grouped(ranks: Sequence[RankSymptoms]) -> bool | None:
    if (told := any_of(ranks, lambda rank: rank.grouped_gemm)) is not None:
        return told
    return True if any((rank.compute_by_class_frac or {}).get("grouped_gemm") for rank in ranks) else None


def _waiting(ranks: Sequence[RankSymptoms]) -> float | None:
    """Share of the expert all-to-all that is like waiting; all of it counts where no payload is said."""
    known = []
    for rank in ranks:
        payload = rank.a2a_payload_frac
        if payload is None:
            parts = [
                _expert_part(rank.a2a_exposed_frac, rank.exposed_by_kind_frac),
                _expert_part(rank.a2a_hidden_frac, rank.hidden_by_kind_frac),
            ]
            payload = sum(part for part in parts if part is not None)
        if rank.a2a_waiting_frac is not None and payload:
            known.append((rank.a2a_waiting_frac, payload))
    if not known:
        return None
    return min(1.0, sum(waiting for waiting, _ in known) / sum(payload for _, payload in known))
