"""What several ranks show together, as it is written down."""

from collections.abc import Sequence

from heuristics.run.repairs import REPAIRS, comes_first
from reports.result.fill import inside
from reports.result.fill.parts import copied
from traces.missing import Missing, OrMissing, gap
from traces.ranks.peers import Bytes
from traces.ranks.run import Late, RankFigures, RunAnalysis
from traces.sections import run as typed

_NO_STEPS = gap("the ranks share no step", "record whole steps of all ranks at the same time")


def run(found: RunAnalysis, names: Sequence[str]) -> typed.Run:
    """The run. `names`: of the traces that the summaries came from, as they were given to the analysis."""
    late, without = found.late, found.without
    return typed.Run(
        ranks_seen=len(found.ranks),
        world_size=gap(
            "no recording names the number of ranks", "give --world-size N, or the run's --config or --log"
        )
        if found.world_size is None
        else found.world_size,
        world_size_from=found.world_size_from,
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
        late=late if isinstance(late, Missing) else _late(late, found),
        clocks=_clocks(found),
        ranks=tuple(_rank(place, one, late, found.traffic) for place, one in enumerate(found.ranks)),
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
        pipeline=inside.pipeline(found.pipeline),
        experts=inside.experts(found.experts),
        traffic=inside.traffic(found.traffic),
        complete_frac=gap("no communication was recorded", "record ranks that communicate")
        if found.separated.complete_frac is None
        else found.separated.complete_frac,
        late_exposed_by_kind_ns=found.separated.late_exposed_ns,
        transfer_by_kind_ns=found.separated.moving_ns,
        steps_per_column=found.steps_per_column,
    )


def _late(late: Late, found: RunAnalysis) -> typed.Late:
    repair, without = REPAIRS[late.cause], found.without
    waits_ns, exposed_ns = sum(found.separated.late_exposed_ns.values()), found.separated.exposed_ns
    saved_frac = None if isinstance(without, Missing) else without.saved_frac
    return copied(
        late,
        typed.Late,
        index=late.place,
        repair=repair.sentence,
        repair_fixes=repair.fixes,
        repair_first=comes_first(saved_frac),
        exposed_frac=min(1.0, waits_ns / exposed_ns) if exposed_ns else None,
    )


def _clocks(found: RunAnalysis) -> typed.Clocks:
    fits = tuple(
        typed.ClockFit(one.places, one.source, one.fit.base_ns, one.fit.offset_ns, one.fit.drift_ppm + 0.0)
        for one in found.host_clocks
    )
    return typed.Clocks(found.clocks.aligned, _residual(found), fits)


def _residual(found: RunAnalysis) -> OrMissing[int]:
    missing = found.clocks.missing
    return Missing("", missing.reason, missing.cure) if missing else found.clocks.residual_ns


def _rank(place: int, one: RankFigures, late: Late | Missing, traffic: Bytes | Missing) -> typed.RankInRun:
    unknown = late if isinstance(late, Missing) else gap("clocks could not be aligned", "record more steps")
    return typed.RankInRun(
        index=place,
        rank=one.rank,
        group=one.group,
        step_ns=_NO_STEPS if one.step_ns is None else one.step_ns,
        waited_ns=one.waited_ns,
        caused_ns=unknown if one.caused_ns is None else one.caused_ns,
        device_factor=one.device_factor,
        expert_ns=_NO_STEPS if one.expert_ns is None else one.expert_ns,
        given_bytes=inside.given_bytes(traffic, place),
        step_lengths_ns=one.by_step_length_ns,
        waited_by_step_ns=one.by_step_waited_ns,
        caused_by_step_ns=unknown if one.by_step_caused_ns is None else one.by_step_caused_ns,
    )
