"""`ranks[].a2a`, `ranks[].moe` and `ranks[].detected`: expert traffic, and what kind of run is seen."""

from typing import Final

from reports.result.fill.memory import recompute
from reports.result.fill.parts import all_copied, because, copied, each
from traces.account.account import Account
from traces.cures import cure
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing, OrMissing, gap
from traces.resolve.resolution import CONTROL_KIND, PAYLOAD_KINDS
from traces.sections import rank as typed
from traces.sections.rank import Detected

_EXPERT_KINDS: Final = (*PAYLOAD_KINDS, CONTROL_KIND)


def a2a(rank: RankMeasurements) -> OrMissing[typed.A2a]:
    """Expert all-to-all. Without any of it nothing in it waits."""
    found = rank.a2a
    if found is None:
        return gap("no single kernel was recorded", cure("graphs", rank.kind))
    reason = "no all-to-all has another of its kind, layer and size to compare with"
    alone = gap(reason, "record several steps") if found.instances else None
    why = {
        "step": gap("no step holds it", "record with step ranges"),
        "layer": gap(
            "its place in the sequence of layers is not clear",
            cure("layer_ranges", rank.kind),
        ),
        "phase": gap("forward and backward cannot be separated here", cure("ranges", rank.kind)),
    }
    return copied(
        found,
        typed.A2a,
        waiting_like_ns=alone if found.waiting_like_ns is None else found.waiting_like_ns,
        blocking_ns=_blocking_ns(rank.account),
        spans=tuple(because(copied(span, typed.Span), why) for span in found.spans),
    )


def _blocking_ns(account: Account | Missing) -> int | Missing:
    if isinstance(account, Missing):
        return account
    return sum(ns for kind, ns in account.blocking_ns.items() if kind in _EXPERT_KINDS)


def moe(rank: RankMeasurements) -> OrMissing[typed.Moe]:
    """What each module of the MoE layers takes."""
    found = rank.moe
    if isinstance(found, Missing):
        return found
    gaps = {one.path.removeprefix("moe."): one for one in found.missing}
    unseen = rank.account if isinstance(rank.account, Missing) else None
    why = each(("blocking_ns", "host_wait_ns"), unseen)
    filled = copied(
        found,
        typed.Moe,
        rows=tuple(because(copied(row, typed.MoeRow), why) for row in found.rows),
        by_layer=tuple(all_copied(row, typed.LayerRow) for row in found.by_layer),
    )
    return because(filled, {**each(("tax_ns", "tax_frac"), gaps.get("tax_ns")), "layers": gaps.get("layers")})


def detected(rank: RankMeasurements, ep_overlap: bool | None) -> Detected:
    """What kind of run the trace shows. `ep_overlap`: of the whole run."""
    either = "there is no expert all-to-all, or it is hidden more than by chance and less than on purpose"
    training = gap(rank.steps.training_evidence, "record whole steps, with the optimizer")
    filled = copied(
        rank.detected,
        Detected,
        dispatcher=rank.a2a.dispatcher if rank.a2a else "unknown",
        ep_overlap=ep_overlap,
        training_step=rank.steps.training,
        training_evidence=rank.steps.training_evidence,
        precision=rank.precision.precision,
        precision_shares_frac=rank.precision.shares,
        recompute=recompute(rank.recompute),
    )
    return because(
        filled,
        {
            "ep_overlap": gap(either, "--config FILE"),
            "short_kernel_frac": gap("no single kernel was recorded", cure("graphs", rank.kind)),
            "kernels_per_launch": gap("no launch of a kernel was recorded", cure("launches", rank.kind)),
            "training_step": training,
            "precision": rank.precision.missing,
        },
    )
