"""What the workflow asks of a run and says of it, by the names that its table uses; how a run is
cut.
"""

from functools import partial
from math import gcd
from typing import Final

from heuristics.config.sizes import divisors
from heuristics.facts.dictionary import enter, fact
from heuristics.guides.modules import MODULES
from heuristics.run.run import Run
from heuristics.words import say
from traces.texts import Texts

OFFLOADS: Final = {
    "cpu_offloading": "layers",
    "fine_grained_activation_offloading": "activations",
    "optimizer.optimizer_cpu_offload": "optimizer state",
}
"""Knob -> what it moves to the CPU."""


@fact
def memory_errors(run: Run) -> str | None:
    """How many out-of-memory errors the log holds."""
    errors = run.memory_errors
    if not errors:
        return None
    return f"{len(errors)} out-of-memory error{'s' if len(errors) > 1 else ''}"


@fact
def memory_stage(run: Run) -> str | None:
    """The stage of training of the first of them."""
    if errors := run.memory_errors:
        return errors[0].stage.replace("_", " ")
    return None


@fact
def labels(run: Run) -> Texts:
    """Modules that are recomputed, by labels that we know."""
    names = run.config.recompute_modules() or ()
    return tuple(name if name in MODULES else say("workflow.unknown-label") for name in names)


@fact
def on_cpu(run: Run) -> str | None:
    """What is moved to the CPU."""
    moved, is_open = [], False
    for knob, what in OFFLOADS.items():
        is_on = run.config.on(knob)
        is_open |= is_on is None
        if is_on:
            moved.append(what)
    if is_open and not moved:
        return None
    return " and ".join(moved)


@fact
def widest_ep(run: Run) -> int | None:
    """Largest EP that experts, ranks and one NVLink domain allow with ETP1; None where one is
    unknown.
    """
    c, experts = run.config, run.config.positive("num_moe_experts")
    if not c.world or not c.pp or not experts or not c.nvlink_domain:
        return None
    return divisors(gcd(experts, c.world // c.pp), c.nvlink_domain)[-1]


def _overlaps(state: bool, run: Run) -> str:
    switches = {
        "EP": run.config.ep_overlap,
        "DP": run.config.on("ddp.overlap_grad_reduce"),
        "TP": run.config.on("tp_comm_overlap"),
    }
    return ", ".join(name for name, on in switches.items() if on is state)


# overlaps that are known to be on, and to be off


enter("overlaps_on", partial(_overlaps, True), Run)
enter("overlaps_off", partial(_overlaps, False), Run)
