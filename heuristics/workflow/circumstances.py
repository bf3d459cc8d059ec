"""What the workflow asks of a run and says of it, by the names that its table uses; how a run is cut."""

from typing import Final

from heuristics.facts.dictionary import fact
from heuristics.guides.memory_use import (
    too_large,
)
from heuristics.guides.modules import MODULES
from heuristics.run.run import Run
from heuristics.words import say

OFFLOADS: Final = {
    "cpu_offloading": "layers",
    "fine_grained_activation_offloading": "activations",
    "optimizer.optimizer_cpu_offload": "optimizer state",
}
"""Knob -> what it moves to the CPU."""


@fact
def shortage(run: Run) -> str:
    """What says that memory is short."""
    errors = run.log.out_of_memory if run.log else ()
    if not errors and (estimated := too_large(run)) is not None:
        least, capacity = estimated.least_bytes, estimated.capacity_bytes
        return say("workflow.short-by-estimate", least_bytes=least, capacity_bytes=capacity)
    if not errors:
        return say("workflow.short")
    count = f"{len(errors)} out-of-memory error{'s' if len(errors) > 1 else ''}"
    if errors[0].stage == "unknown":
        return say("workflow.short-in-log", errors=count)
    return say("workflow.short-in-stage", errors=count, stage=errors[0].stage.replace("_", " "))


@fact
def labels(run: Run) -> tuple[str, ...]:
    """Modules that are recomputed, by labels that we know."""
    names = run.config.recompute_modules() or ()
    return tuple(name if name in MODULES else say("workflow.unknown-label") for name in names)


@fact
def on_cpu(run: Run) -> str | None:
    """What is moved to the CPU."""
    on = " and ".join(what for knob, what in OFFLOADS.items() if run.config.on(knob))
    return None if not on and any(run.config.on(knob) is None for knob in OFFLOADS) else on


@fact
def widest_ep(run: Run) -> int | None:
    """Largest EP that experts, ranks and one NVLink domain allow with ETP1; None where one is unknown."""
    c, experts = run.config, run.config.positive("num_moe_experts")
    if not c.world or not c.pp or not experts or not c.nvlink_domain:
        return None
    ranks, domain = c.world // c.pp, c.nvlink_domain
    return max(size for size in range(1, min(experts, domain) + 1) if not experts % size and not ranks % size)


def _overlaps(run: Run, state: bool) -> str:
    switches = {
        "EP": run.config.ep_overlap,
        "DP": run.config.on("ddp.overlap_grad_reduce"),
        "TP": run.config.on("tp_comm_overlap"),
    }
    return ", ".join(name for name, on in switches.items() if on is state)


@fact
def overlaps_on(run: Run) -> str:
    """Overlaps that are known to be on."""
    return _overlaps(run, True)


@fact
def overlaps_off(run: Run) -> str:
    """Overlaps that are known to be off."""
    return _overlaps(run, False)
