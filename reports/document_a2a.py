"""Expert all-to-all and what was detected, in `ranks[]`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from traces.account.account import Account
from traces.cures import cure
from traces.measure.a2a import A2a
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing
from traces.resolve.resolution import CONTROL_KIND, PAYLOAD_KINDS

_EXPERT_KINDS: Final = (*PAYLOAD_KINDS, CONTROL_KIND)


def a2a_section(rank: RankMeasurements) -> dict[str, Any] | None:
    """The contract's `a2a`; None where no single kernel was recorded."""
    if rank.a2a is None:
        return None
    a2a = rank.a2a
    return {
        "instances": a2a.instances,
        "payload_ns": a2a.payload_ns,
        "control_ns": a2a.control_ns,
        "waiting_like_ns": a2a.waiting_like_ns,
        "exposed_ns": a2a.exposed_ns,
        "hidden_ns": a2a.hidden_ns,
        "blocking_ns": _blocking_ns(rank.account),
        "unresolved_ns": a2a.unresolved_ns,
        "spans": [asdict(span) for span in a2a.spans],
    }


def detected_section(rank: RankMeasurements, ep_overlap: bool | None) -> dict[str, Any]:
    """The contract's `detected`. `ep_overlap`: of the whole run."""
    return {
        "dispatcher": rank.a2a.dispatcher if rank.a2a else "unknown",
        "graph_share_frac": rank.detected.graph_share_frac,
        "short_kernel_frac": rank.detected.short_kernel_frac,
        "ep_overlap": ep_overlap,
        "framework": rank.detected.framework,
        "training_step": rank.steps.training,
        "training_evidence": rank.steps.training_evidence,
    }


def communication_gaps(path: str, rank: RankMeasurements, ep_overlap: bool | None) -> list[Missing]:
    """Entries for what is None in both sections, and for communication whose purpose could not be told."""
    gaps = []
    if ep_overlap is None:
        why = "there is no expert all-to-all, or it is hidden more than by chance and less than on purpose"
        gaps.append(Missing(f"{path}.detected.ep_overlap", why, "--config FILE"))
    if rank.detected.short_kernel_frac is None:
        how = cure("graphs", rank.kind)
        gaps.append(Missing(f"{path}.detected.short_kernel_frac", "no single kernel was recorded", how))
    if rank.steps.training is None:
        how = "record whole steps, with the optimizer"
        gaps.append(Missing(f"{path}.detected.training_step", rank.steps.training_evidence, how))
    for open_ in rank.unresolved:
        place = f"{path}.exposed_comm_by_kind_ns.{open_.kind}"
        gaps.append(Missing(place, open_.reason, open_.cure))
    if rank.a2a is None:
        gaps.append(Missing(f"{path}.a2a", "no single kernel was recorded", cure("graphs", rank.kind)))
        return gaps
    if rank.a2a.waiting_like_ns is None:
        reason = "no all-to-all has another of its kind, layer and size to compare with"
        gaps.append(Missing(f"{path}.a2a.waiting_like_ns", reason, "record several steps"))
    if isinstance(rank.account, Missing):
        gaps.append(Missing(f"{path}.a2a.blocking_ns", rank.account.reason, rank.account.cure))
    gaps += _span_gaps(path, rank.a2a, rank.kind)
    return gaps


def _span_gaps(path: str, a2a: A2a, kind: str) -> list[Missing]:
    """One entry per kind of gap in the spans, not one per span."""
    why = {
        "step": ("no step holds it", "record with step ranges"),
        "layer": ("its place in the sequence of layers is not clear", cure("layer_ranges", kind)),
        "phase": ("nothing tells forward from backward here", cure("ranges", kind)),
    }
    return [
        Missing(f"{path}.a2a.spans[*].{key}", reason, how)
        for key, (reason, how) in why.items()
        if any(getattr(span, key) is None for span in a2a.spans)
    ]


def _blocking_ns(account: Account | Missing) -> int | None:
    if isinstance(account, Missing):
        return None
    return sum(ns for kind, ns in account.blocking_ns.items() if kind in _EXPERT_KINDS)
