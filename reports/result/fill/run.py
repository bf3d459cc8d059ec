"""What several ranks show together, as it is written down."""

from __future__ import annotations

from collections.abc import Sequence

from heuristics.result import run as typed
from heuristics.result.known import OrMissing
from heuristics.run.repairs import REPAIRS
from reports.result.fill.parts import copied, gap
from traces.missing import Missing
from traces.ranks.run import Late, RankFigures, RunAnalysis

_NO_STEPS = gap("the ranks share no step", "record whole steps of all ranks at the same time")


def run(found: RunAnalysis, names: Sequence[str]) -> typed.Run:
    """The run. `names`: of the traces that the summaries came from, as they were given to the analysis."""
    late, without = found.late, found.without
    return typed.Run(
        ranks_seen=len(found.ranks),
        world_size=gap(
            "no recording names the number of ranks", "record with --trace=nvtx of NCCL 2.25 or later"
        )
        if found.world_size is None
        else found.world_size,
        groups=tuple(
            typed.LikeRanks(
                ranks=one.places,
                attention_kernels=one.fingerprint.attention,
                router_kernels=one.fingerprint.routers,
                has_experts=one.fingerprint.has_experts,
                has_embedding=one.fingerprint.has_embedding,
                has_loss=one.fingerprint.has_loss,
                step_ns=_NO_STEPS if one.step_ns is None else one.step_ns,
            )
            for one in found.groups
        ),
        late=late if isinstance(late, Missing) else _late(late),
        clocks=typed.Clocks(found.clocks.aligned, _residual(found)),
        ranks=tuple(_rank(place, one, late) for place, one in enumerate(found.ranks)),
        wait_ns=found.wait_ns,
        wait_by_kind_ns=found.wait_by_kind_ns,
        transfer_ns=found.transfer_ns,
        collectives=found.instance_count,
        steps=found.step_count,
        imbalance=found.imbalance,
        without=without
        if isinstance(without, Missing)
        else typed.RunWithout(without.step_ns, without.without_ns, min(1.0, max(0.0, without.saved_frac))),
        problems=tuple(
            typed.RunProblem(
                kind=one.kind,
                traces=tuple(dict.fromkeys(names[index] for index in one.indices)),
                reason=one.reason,
                left_out=one.left_out,
                ranks=one.ranks,
            )
            for one in found.problems
        ),
    )


def _late(found: Late) -> typed.Late:
    return copied(found, typed.Late, index=found.place, cause=found.cause.value, repair=REPAIRS[found.cause])


def _residual(found: RunAnalysis) -> OrMissing[int]:
    missing = found.clocks.missing
    return Missing("", missing.reason, missing.cure) if missing else found.clocks.residual_ns


def _rank(place: int, one: RankFigures, late: Late | Missing) -> typed.RankInRun:
    unknown = late if isinstance(late, Missing) else gap("clocks could not be aligned", "record more steps")
    return typed.RankInRun(
        index=place,
        rank=one.rank,
        group=one.group,
        step_ns=_NO_STEPS if one.step_ns is None else one.step_ns,
        waited_ns=one.waited_ns,
        caused_ns=unknown if one.caused_ns is None else one.caused_ns,
        device_factor=one.device_factor,
    )
