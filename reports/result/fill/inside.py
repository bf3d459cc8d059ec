"""What a run of several ranks shows inside, as it is written down: its pipeline, its experts, its bytes."""

from reports.result.fill.parts import copied
from traces.missing import Missing, OrMissing, gap
from traces.ranks.bubbles import Pipeline, StageFigures
from traces.ranks.experts import Experts, LayerWork, WorstWork
from traces.ranks.peers import Bytes, Speed
from traces.sections import run as typed

_NO_STEPS = gap("the ranks share no step", "record whole steps of all ranks at the same time")
_NO_TIME = gap("their transfers took no time that was recorded", "none")
_NO_KIND = gap("no sizes of this rank's collectives are recorded", "as for traffic")


def pipeline(found: Pipeline | Missing | None) -> OrMissing[typed.Pipeline]:
    """The pipeline and its bubbles."""
    if found is None or isinstance(found, Missing):
        return found
    return copied(
        found,
        typed.Pipeline,
        stages=tuple(map(_stage, found.stages)),
        bubble_frac=_NO_STEPS if found.bubble_frac is None else min(1.0, found.bubble_frac),
        stage_imbalance=_NO_STEPS if found.imbalance is None else found.imbalance,
        with_more_chunks=tuple(copied(one, typed.VirtualStages) for one in found.with_more),
    )


def _stage(found: StageFigures) -> typed.PipelineStage:
    phases = found.by_phase_ns
    warm_up, steady, cool_down = (phases,) * 3 if isinstance(phases, Missing) else phases
    return typed.PipelineStage(
        ranks=found.places,
        step_ns=_NO_STEPS if found.step_ns is None else found.step_ns,
        own_work_ns=_NO_STEPS if found.work_ns is None else found.work_ns,
        bubble_ns=found.bubble_ns,
        warm_up_ns=warm_up,
        steady_ns=steady,
        cool_down_ns=cool_down,
    )


def experts(found: Experts | Missing | None) -> OrMissing[typed.ExpertGroups]:
    """Expert work by layer."""
    if found is None or isinstance(found, Missing):
        return found
    return copied(
        found, typed.ExpertGroups, uneven_layers=tuple(map(_layer, found.by_layer)), worst=_worst(found.worst)
    )


def _layer(found: LayerWork) -> typed.LayerOfExperts:
    return copied(found, typed.LayerOfExperts, expert_group=found.group, hot_index=found.place)


def _worst(found: WorstWork) -> typed.WorstOfExperts:
    return copied(found, typed.WorstOfExperts, expert_group=found.group, hot_index=found.place)


def traffic(found: Bytes | Missing) -> OrMissing[typed.Traffic]:
    """Bytes and how fast they move."""
    if isinstance(found, Missing):
        return found
    speeds = found.speeds if isinstance(found.speeds, Missing) else tuple(map(_speed, found.speeds))
    return typed.Traffic(speeds, largest_pairs=tuple(copied(one, typed.PeerBytes) for one in found.pairs))


def _speed(found: Speed) -> typed.CollectiveSpeed:
    return copied(
        found, typed.CollectiveSpeed, bytes_per_s=_NO_TIME if found.bytes_per_s is None else found.bytes_per_s
    )


def given_bytes(found: Bytes | Missing, place: int) -> OrMissing[dict[str, int]]:
    """What one rank gives in a mean step, by kind."""
    if isinstance(found, Missing):
        return found
    return dict(found.by_rank[place]) or _NO_KIND
