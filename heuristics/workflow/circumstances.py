"""What the workflow asks of a run and says of it, by the names that its table uses; how a run is cut."""

from collections.abc import Mapping
from typing import Final

from heuristics.config.view import Config
from heuristics.facts.dictionary import fact
from heuristics.guides.memory_use import (
    too_large,
)
from heuristics.guides.modules import MODULES
from heuristics.guides.parallel import is_far, sequence_length
from heuristics.run.run import Run
from heuristics.words import say
from traces.spelling import gigabytes

_OVERLAP_OFF: Final = "overlap-energon-off"
"""The line of a log by which Megatron-Bridge leaves it off."""
GIB: Final = 1 << 30
_GRAPHS_BYTES: Final = 7 * GIB
"""About 7 GB on DeepSeek-V3, GB200 (arXiv 2603.07685)."""
OFFLOADS: Final = {
    "cpu_offloading": "layers",
    "fine_grained_activation_offloading": "activations",
    "optimizer.optimizer_cpu_offload": "optimizer state",
}
"""Knob -> what it moves to the CPU."""


def _expert_ranks(run: Run) -> int | None:
    """Ranks that one set of all experts takes: EP x ETP."""
    ep, etp = run.config.ep, run.config.expert_tensor_size
    return None if ep is None or etp is None else ep * etp


def meshes(run: Run) -> tuple[str, str]:
    """The ranks of attention and of experts in numbers: TP x CP x DP x PP, and ETP x EP x EDP x PP."""
    c = run.config
    attention = {"TP": c.tp, "CP": c.cp, "DP": c.dp, "PP": c.pp}
    experts = {"ETP": c.expert_tensor_size, "EP": c.ep, "EDP": c.edp, "PP": c.pp}
    return _mesh(attention), _mesh(experts)


def _mesh(axes: Mapping[str, int | None]) -> str:
    return " x ".join(f"{name}{'?' if size is None else size}" for name, size in axes.items())


@fact
def sanity_line(run: Run) -> str:
    """Command that builds and steps one rank of the layout on one GPU, without its peers.

    The guides write --fake-init-process-group; the parser, from core_v0.16.0 on, takes --fake-process-group.

    The flag cannot be combined with the flex dispatcher (arguments.py asserts it), so the line says alltoall.
    What is unknown stands as a capital letter to fill in.
    """
    c = run.config
    sizes = {
        "--tensor-model-parallel-size": c.tp or "TP",
        "--context-parallel-size": c.cp or "CP",
        "--pipeline-model-parallel-size": c.pp or "PP",
    }
    if c.moe() is not False:
        sizes["--expert-model-parallel-size"] = c.ep or "EP"
        sizes["--expert-tensor-parallel-size"] = c.expert_tensor_size or "ETP"
        sizes["--moe-token-dispatcher-type"] = "alltoall"
    flags = " ".join(f"{name} {size}" for name, size in sizes.items())
    return say("workflow.sanity-line", world=c.world or "N", flags=flags)


@fact
def shortage(run: Run) -> str:
    """What says that memory is short."""
    errors = run.log.out_of_memory if run.log else ()
    if not errors and (estimated := too_large(run)) is not None:
        least, capacity = gigabytes(estimated.least_bytes), gigabytes(estimated.capacity_bytes)
        return say("workflow.short-by-estimate", least=least, capacity=capacity)
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
def layer_ranks(run: Run) -> int | None:
    """Ranks that a layer is spread over."""
    return None if run.config.tp is None else max(run.config.tp, _expert_ranks(run) or 1)


@fact
def cp_is_far(run: Run) -> bool | None:
    """Whether CP is far from where the guide starts."""
    length, cp = sequence_length(run), run.config.cp
    return None if length is None or cp is None else is_far(cp, length)


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


@fact
def platform(config: Config) -> str:
    """How guides call the GPU."""
    return (config.hardware_class or "").replace("_", " ")
