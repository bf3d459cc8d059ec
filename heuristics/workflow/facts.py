"""What the workflow asks of a run and says of it, by the names that its table uses; how a run is cut."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from heuristics.config.facts import Fact
from heuristics.fixes.needs import head_room
from heuristics.guides.facts import GUIDE_FACTS, ep_share
from heuristics.guides.memory_use import (
    ASK_MEMORY,
    HEAD_ROOM,
    ROOM_TO_HALVE,
    fits,
    has_room_to_halve,
    is_tight,
    too_large,
    used_frac,
)
from heuristics.guides.modules import MODULES
from heuristics.guides.parallel import is_far, sequence_length
from heuristics.run.run import Run
from heuristics.walls.price import WALL
from traces.spelling import chosen, gigabytes, percent

GIB: Final = 1 << 30
_GRAPHS_BYTES: Final = 7 * GIB
"""About 7 GB on DeepSeek-V3, GB200 (arXiv 2603.07685)."""
OFFLOADS: Final = {
    "cpu_offloading": "layers",
    "fine_grained_activation_offloading": "activations",
    "optimizer.optimizer_cpu_offload": "optimizer state",
}
"""Knob -> what it moves to the CPU."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Counts of ranks, None where unknown; `vpp`: virtual stages of a rank, 1 without.

    `world`: all ranks. `dp` and `edp`: copies of a dense and of an expert layer, None where the others do not
    divide the world.
    """

    tp: int | None
    cp: int | None
    pp: int | None
    vpp: int | None
    ep: int | None
    etp: int | None
    world: int | None
    dp: int | None
    edp: int | None

    @property
    def expert_ranks(self) -> int | None:
        """Ranks that one set of all experts takes: EP x ETP."""
        return None if self.ep is None or self.etp is None else self.ep * self.etp

    @property
    def attention(self) -> str:
        """TP x CP x DP x PP in numbers."""
        return _mesh((("TP", self.tp), ("CP", self.cp), ("DP", self.dp), ("PP", self.pp)))

    @property
    def experts(self) -> str:
        """ETP x EP x EDP x PP in numbers."""
        return _mesh((("ETP", self.etp), ("EP", self.ep), ("EDP", self.edp), ("PP", self.pp)))


def layout_of(run: Run) -> Layout:
    """The configured layout; ETP is TP where nobody sets it, as in Megatron-Core (parallel_state)."""
    c = run.config
    return Layout(c.tp, c.cp, c.pp, c.vpp, c.ep, c.expert_tensor_size, c.world, c.dp, c.edp)


def _mesh(axes: tuple[tuple[str, int | None], ...]) -> str:
    return " x ".join(f"{name}{'?' if size is None else size}" for name, size in axes)


def sanity_line(run: Run) -> str:
    """Command that builds and steps one rank of the layout on one GPU, without its peers.

    The guides write --fake-init-process-group; the parser, from core_v0.16.0 on, takes --fake-process-group.

    The flag cannot be combined with the flex dispatcher (arguments.py asserts it), so the line says alltoall.
    What is unknown stands as a capital letter to fill in.
    """
    layout = layout_of(run)
    sizes: tuple[tuple[str, int | None, str], ...] = (
        ("--tensor-model-parallel-size", layout.tp, "TP"),
        ("--context-parallel-size", layout.cp, "CP"),
        ("--pipeline-model-parallel-size", layout.pp, "PP"),
    )
    if is_moe := run.config.moe() is not False:
        sizes += (("--expert-model-parallel-size", layout.ep, "EP"),)
        sizes += (("--expert-tensor-parallel-size", layout.etp, "ETP"),)
    words = [f"WORLD_SIZE={layout.world or 'N'} RANK=0 python pretrain_gpt.py --fake-process-group"]
    words += [f"{name} {size or unknown_size}" for name, size, unknown_size in sizes]
    return " ".join([*words, "--moe-token-dispatcher-type alltoall"] if is_moe else words)


def _shortage(run: Run) -> str:
    errors = run.log.out_of_memory if run.log else ()
    if not errors and (estimated := too_large(run)) is not None:
        has = gigabytes(estimated.capacity_bytes)
        return f"at least {gigabytes(estimated.least_bytes)} are needed by the estimate, of {has}"
    if not errors:
        return "memory is too small for it"
    stage = errors[0].stage.replace("_", " ")
    where = "" if stage == "unknown" else f", the first in {stage}"
    return f"the log holds {len(errors)} out-of-memory error{'s' if len(errors) > 1 else ''}{where}"


def _share(frac: float | None) -> str | None:
    return None if frac is None else percent(frac)


def _free(run: Run) -> str | None:
    used = used_frac(run)
    return None if used is None else percent(1 - used)


def _half(run: Run) -> str | None:
    tp, pp = run.config.tp, run.config.pp
    if tp is None or pp is None:
        return None
    return f"TP (TP{tp // 2})" if tp > 1 else f"PP (PP{pp // 2})"


def _labels(run: Run) -> tuple[str, ...]:
    names = run.config.recompute_modules() or ()
    return tuple(name if name in MODULES else "an unknown label" for name in names)


def _on_cpu(run: Run) -> str | None:
    on = " and ".join(what for knob, what in OFFLOADS.items() if run.config.on(knob))
    return None if not on and any(run.config.on(knob) is None for knob in OFFLOADS) else on


def _recomputes(run: Run) -> bool | None:
    knob, shown = "recompute_granularity", run.active.recompute_modules
    if run.config.word(knob) or shown:
        return True
    return False if run.config.known(knob) or shown == () else None


def _in_domains(run: Run) -> str:
    layout, domain = layout_of(run), run.config.nvlink_domain
    experts = "" if run.config.moe() is False else f" and EP x ETP = {layout.expert_ranks or '?'}"
    return f"TP{layout.tp or '?'}{experts}, in NVLink domains of {domain}"


def _beyond(run: Run) -> str:
    """What carries expert exchanges across domains, where something does, as in Megatron-Bridge's recipes."""
    if (backend := run.active.dispatcher) in ("deepep", "hybridep", "ncclep"):
        return f"which {backend} is made to leave"
    return "left under the overlap of expert all-to-all" if run.active.ep_overlap else ""


def _layer_ranks(run: Run) -> int | None:
    layout = layout_of(run)
    return None if layout.tp is None else max(layout.tp, layout.expert_ranks or 1)


def _cp_is_far(run: Run) -> bool | None:
    length, cp = sequence_length(run), run.config.cp
    return None if length is None or cp is None else is_far(cp, length)


def widest_expert_parallel(run: Run) -> int | None:
    """Largest EP that experts, ranks and one NVLink domain allow with ETP1; None where one is unknown."""
    layout, experts, domain = layout_of(run), run.config.positive("num_moe_experts"), run.config.nvlink_domain
    if not layout.world or not layout.pp or not experts or not domain:
        return None
    ranks = layout.world // layout.pp
    return max(size for size in range(1, min(experts, domain) + 1) if not experts % size and not ranks % size)


def _graph_room(run: Run) -> bool | None:
    if (tight := is_tight(run)) is not None:
        return not tight
    found = head_room(run, _GRAPHS_BYTES)[0].state
    return True if found == "met" else False if fits(run) is False else None


def _takes_memory(run: Run) -> str:
    graphs = ("CUDA graphs",) if run.config.graph_impl not in (None, "none") else ()
    return " and ".join((*graphs, *(("EP overlap",) if run.config.ep_overlap else ())))


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
    "used": Fact(lambda run: _share(used_frac(run))),
    "free": Fact(_free),
    "head_room": Fact(lambda run: chosen(HEAD_ROOM.value)),
    "head_room_taken": Fact(
        lambda run: None if (used := used_frac(run)) is None else used > 1 - HEAD_ROOM.value
    ),
    "halved": Fact(lambda run: chosen(ROOM_TO_HALVE.value)),
    "room_to_halve": Fact(has_room_to_halve),
    "half": Fact(_half),
    "memory_short": Fact(is_tight),
    "graph_room": Fact(_graph_room),
    "takes_memory": Fact(_takes_memory),
    "ask_memory": Fact(lambda run: ASK_MEMORY),
    "labels": Fact(_labels),
    "cheap_parts": Fact(
        lambda run: "layernorm and mlp" if run.config.moe() is False else "moe_act and layernorm"
    ),
    "on_cpu": Fact(_on_cpu),
    "offloads": Fact(lambda run: (*OFFLOADS,)),
    "recomputes": Fact(_recomputes),
    # layout
    "sanity_line": Fact(sanity_line),
    "written_for": Fact(lambda run: run.settings.framework),
    "vpp": Fact(lambda run: run.config.vpp),
    "twice_dp": Fact(lambda run: f"DP{run.config.dp * 2}" if run.config.dp else "twice that"),
    "in_domains": Fact(_in_domains),
    "hot_ranks": Fact(
        lambda run: run.config.tp if run.config.moe() is False else layout_of(run).expert_ranks
    ),
    "layer_ranks": Fact(_layer_ranks),
    "beyond": Fact(_beyond),
    "cp_is_far": Fact(_cp_is_far),
    "experts": Fact(lambda run: run.config.positive("num_moe_experts")),
    "widest_ep": Fact(widest_expert_parallel),
    # what shows
    "dispatcher": Fact(lambda run: run.config.dispatcher),
    "ep_shown": Fact(lambda run: _share(ep_share(run))),
    "exchanges_show": Fact(lambda run: None if (share := ep_share(run)) is None else share >= WALL.value),
    "wall": Fact(lambda run: chosen(WALL.value)),
    "overlaps_on": Fact(lambda run: _overlaps(run, True)),
    "overlaps_off": Fact(lambda run: _overlaps(run, False)),
    "platform": Fact(lambda run: (run.config.hardware_class or "").replace("_", " ")),
    "steps_logged": Fact(lambda run: run.log is not None and bool(run.log.iterations)),
}
"""By name, as in `heuristics.guides.facts`; some are texts."""
