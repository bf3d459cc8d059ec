"""What is true of a run of several ranks, as numbers and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.simulate.ranks.causes import jittered_rank
from bench.simulate.ranks.described import Cause, Extent, Hot, RanksRun
from bench.simulate.ranks.happened import RanksDone, waited_for

_OF_ONE_RANK = (Cause.SLOW_DEVICE, Cause.SLOW_HOST, Cause.SLOW_LINK, Cause.DATA_LOADER)


@dataclass(frozen=True, slots=True)
class Truth:
    """The known cause and what it costs.

    `ranks`: all whom the cause makes late: one, a whole stage, or none where they change or there are none.
    `late_rank`: the one of them, or None. `by_step`: whom rotating jitter disturbs in each step.
    """

    done: RanksDone
    mended: RanksDone

    @property
    def run(self) -> RanksRun:
        """The run."""
        return self.done.run

    @property
    def ranks(self) -> tuple[int, ...]:
        """Whom the cause makes late."""
        run = self.run
        if run.cause is Cause.PIPELINE_IMBALANCE and run.stage is not None:
            return run.layout.ranks_of_stage(run.stage)
        lasting = run.cause is Cause.ROUTING_IMBALANCE and run.hot is Hot.RANK
        return run.late_ranks if lasting or run.cause in _OF_ONE_RANK else ()

    @property
    def late_rank(self) -> int | None:
        """The one late rank, or None."""
        return self.ranks[0] if len(self.ranks) == 1 else None

    @property
    def by_step(self) -> tuple[int, ...]:
        """Whom rotating jitter disturbs, by step."""
        if self.run.cause is not Cause.ROTATING_JITTER or self.run.extent is Extent.PAUSES:
            return ()
        return tuple(jittered_rank(self.run, step) for step in range(self.run.knobs.step_count))

    @property
    def wait_by_last_ns(self) -> Mapping[int, int]:
        """All waits, by the rank that arrived last."""
        return waited_for(self.done.instances())

    @property
    def wait_ns(self) -> int:
        """Waits for the late ranks; where there are none, all waits."""
        by_last = self.wait_by_last_ns
        return sum(by_last[rank] for rank in self.ranks or by_last)

    @property
    def caused_wait_ns(self) -> int:
        """What the cause adds to all waits, whoever arrived last: those that are handed on are in it."""
        return sum(self.wait_by_last_ns.values()) - sum(waited_for(self.mended.instances()).values())

    @property
    def effect_frac(self) -> float:
        """How much longer the whole run is than without its cause."""
        return self.done.whole_ns / self.mended.whole_ns - 1


def as_json(truth: Truth) -> dict[str, object]:
    """The truth for a file: times in whole ns of the one true clock, lists by rank or by place in `group`."""
    return _of_cause(truth) | _of_waits(truth) | _of_run(truth) | {"instances": _instances(truth.done)}


def _of_cause(truth: Truth) -> dict[str, object]:
    run = truth.run
    return {
        "cause": run.cause.value,
        "rank": truth.late_rank,
        "ranks": list(truth.ranks),
        "rank_by_step": list(truth.by_step),
        "stage": run.stage,
        "hot": run.hot.value if run.cause is Cause.ROUTING_IMBALANCE else None,
        "jitter": run.jitter.value if run.cause is Cause.ROTATING_JITTER else None,
        "every": run.every,
        "extent": run.extent.value,
        "strength": run.strength,
        "effect_frac": truth.effect_frac,
    }


def _of_waits(truth: Truth) -> dict[str, object]:
    by_last = truth.wait_by_last_ns
    return {
        "wait_ns": truth.wait_ns,
        "wait_by_last_ns": {str(rank): by_last[rank] for rank in sorted(by_last)},
        "all_waits_ns": sum(by_last.values()),
        "caused_wait_ns": truth.caused_wait_ns,
    }


def _of_run(truth: Truth) -> dict[str, object]:
    run, layout = truth.run, truth.run.layout
    return {
        "seed": run.seed,
        "layout": {
            "tensor": layout.tensor,
            "expert": layout.expert,
            "pipeline": layout.pipeline,
            "data": layout.data,
            "ranks_per_host": layout.ranks_per_host,
        },
        "dispatcher": run.knobs.dispatcher,
        "layers_of_stage": [run.layers_of(stage) for stage in range(layout.pipeline)],
        "microbatches": run.knobs.microbatch_count,
        "steps": run.knobs.step_count,
        "step_ns": truth.done.steps_ns,
        "borders_ns": [done.borders_ns for done in truth.done.ranks],
        "mended": {"step_ns": truth.mended.steps_ns, "whole_ns": truth.mended.whole_ns},
        "whole_ns": truth.done.whole_ns,
    }


def _instances(done: RanksDone) -> list[dict[str, object]]:
    return [
        {
            "group": instance.group,
            "name": instance.name,
            "sequence": instance.sequence,
            "step": instance.step,
            "operation": instance.operation,
            "kernel": instance.kernel,
            "late": instance.late,
            "arrival_ns": [instance.parts[rank].arrival_ns for rank in instance.group],
            "transfer_ns": [instance.parts[rank].transfer_ns for rank in instance.group],
            "end_ns": [instance.parts[rank].end_ns for rank in instance.group],
        }
        for instance in done.instances()
    ]
