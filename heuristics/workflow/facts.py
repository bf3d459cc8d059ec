"""What the workflow asks of a run and says of it, by the names that its table uses; how a run is cut."""

from collections.abc import Callable, Mapping
from typing import Final

from heuristics.config.facts import Fact
from heuristics.fixes.needs import head_room
from heuristics.guides.facts import GUIDE_FACTS, ep_share
from heuristics.guides.memory_use import (
    ASK_MEMORY,
    HEAD_ROOM,
    fits,
    has_room_to_halve,
    is_tight,
    memory_use,
    too_large,
)
from heuristics.guides.modules import MODULES
from heuristics.guides.parallel import is_far, sequence_length
from heuristics.run.run import Run
from heuristics.words import say
from traces.limits import MOST, WALL
from traces.spelling import chosen, gigabytes, percent

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


def expert_ranks(run: Run) -> int | None:
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


def _shortage(run: Run) -> str:
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


def _share(frac: float | None) -> str | None:
    return None if frac is None else percent(frac)


def _part(run: Run, of: Callable[[float], float]) -> str | None:
    """A part of the GPU's memory, with who counted it where nobody measured it."""
    if (use := memory_use(run)) is None:
        return None
    said = percent(max(0.0, of(use.frac)))
    return say("workflow.by-estimate", part=said) if use.is_estimated else said


def _labels(run: Run) -> tuple[str, ...]:
    names = run.config.recompute_modules() or ()
    return tuple(name if name in MODULES else say("workflow.unknown-label") for name in names)


def _on_cpu(run: Run) -> str | None:
    on = " and ".join(what for knob, what in OFFLOADS.items() if run.config.on(knob))
    return None if not on and any(run.config.on(knob) is None for knob in OFFLOADS) else on


def _recomputes(run: Run) -> bool | None:
    knob, shown = "recompute_granularity", run.active.recompute_modules
    if run.config.word(knob) or shown:
        return True
    return False if run.config.known(knob) or shown == () else None


def _in_domains(run: Run) -> str:
    tp, domain = run.config.tp or "?", run.config.nvlink_domain
    if run.config.moe() is False:
        return say("workflow.in-domains-dense", tp=tp, domain=domain)
    return say("workflow.in-domains", tp=tp, experts=expert_ranks(run) or "?", domain=domain)


def _leaves_domains(run: Run) -> bool:
    """Whether the dispatcher is made for exchanges across domains; on B200 and B300 HybridEP fails there.

    Source: Megatron-Bridge, pull request 6043.
    """
    if run.active.dispatcher == "hybridep":
        return run.config.hardware_class != "blackwell_nvl8"
    return run.active.dispatcher in ("deepep", "ncclep")


def _cp_is_far(run: Run) -> bool | None:
    length, cp = sequence_length(run), run.config.cp
    return None if length is None or cp is None else is_far(cp, length)


def widest_expert_parallel(run: Run) -> int | None:
    """Largest EP that experts, ranks and one NVLink domain allow with ETP1; None where one is unknown."""
    c, experts = run.config, run.config.positive("num_moe_experts")
    if not c.world or not c.pp or not experts or not c.nvlink_domain:
        return None
    ranks, domain = c.world // c.pp, c.nvlink_domain
    return max(size for size in range(1, min(experts, domain) + 1) if not experts % size and not ranks % size)


def _graph_room(run: Run) -> bool | None:
    if (tight := is_tight(run)) is not None:
        return not tight
    found = head_room(run, _GRAPHS_BYTES)[0].state
    return True if found == "met" else False if fits(run) is False else None


def _takes_memory(run: Run) -> str:
    graphs = ("CUDA graphs",) if run.config.graph_impl not in (None, "none") else ()
    return " and ".join((*graphs, *(("EP overlap",) if run.config.ep_overlap else ())))


def _overlap_accepted(run: Run) -> bool:
    """Whether a log of steps has no line by which EP overlap goes off."""
    log = run.log
    return log is not None and bool(log.iterations) and not {one.id for one in log.messages} & {_OVERLAP_OFF}


def _overlaps(run: Run, state: bool) -> str:
    switches = {
        "EP": run.config.ep_overlap,
        "DP": run.config.on("ddp.overlap_grad_reduce"),
        "TP": run.config.on("tp_comm_overlap"),
    }
    return ", ".join(name for name, on in switches.items() if on is state)


FACTS: Final[Mapping[str, Fact]] = {
    **GUIDE_FACTS,
    # memory
    "fits": Fact(fits),
    "shortage": Fact(_shortage),
    "used": Fact(lambda run: _part(run, lambda frac: frac)),
    "free": Fact(lambda run: _part(run, lambda frac: 1 - frac)),
    "head_room": Fact(lambda run: chosen(HEAD_ROOM.value)),
    "head_room_taken": Fact(
        lambda run: None if (use := memory_use(run)) is None else use.frac > 1 - HEAD_ROOM.value
    ),
    "halved": Fact(lambda run: chosen(MOST.value)),
    "room_to_halve": Fact(has_room_to_halve),
    "memory_short": Fact(is_tight),
    "graph_room": Fact(_graph_room),
    "takes_memory": Fact(_takes_memory),
    "ask_memory": Fact(lambda run: ASK_MEMORY),
    "labels": Fact(_labels),
    "on_cpu": Fact(_on_cpu),
    "offloads": Fact(lambda run: (*OFFLOADS,)),
    "recomputes": Fact(_recomputes),
    # layout
    "sanity_line": Fact(sanity_line),
    "written_for": Fact(lambda run: run.settings.framework),
    "twice_dp": Fact(lambda run: f"DP{run.config.dp * 2}" if run.config.dp else "twice that"),
    "in_domains": Fact(_in_domains),
    "hot_ranks": Fact(lambda run: run.config.tp if run.config.moe() is False else expert_ranks(run)),
    "layer_ranks": Fact(
        lambda run: None if run.config.tp is None else max(run.config.tp, expert_ranks(run) or 1)
    ),
    # exchanges that something carries across domains, as in Megatron-Bridge's recipes
    "leaves_domains": Fact(_leaves_domains),
    "cp_is_far": Fact(_cp_is_far),
    "experts": Fact(lambda run: run.config.positive("num_moe_experts")),
    "widest_ep": Fact(widest_expert_parallel),
    # what shows
    "ep_shown": Fact(lambda run: _share(ep_share(run))),
    "exchanges_show": Fact(lambda run: None if (share := ep_share(run)) is None else share >= WALL.value),
    "wall": Fact(lambda run: chosen(WALL.value)),
    "overlap_accepted": Fact(_overlap_accepted),
    "overlaps_on": Fact(lambda run: _overlaps(run, True)),
    "overlaps_off": Fact(lambda run: _overlaps(run, False)),
    "platform": Fact(lambda run: (run.config.hardware_class or "").replace("_", " ")),
    "steps_logged": Fact(lambda run: run.log is not None and bool(run.log.iterations)),
}
"""By name, as in `heuristics.guides.facts`; some are texts."""
