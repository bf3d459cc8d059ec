"""Facts of a run as tables ask for them, and the option that tells each one that is unknown."""

from collections.abc import Iterable, Mapping
from typing import Final

from heuristics.config.logic import all_of
from heuristics.run.run import Run
from heuristics.walls.price import WALL
from traces.names.kinds import COMM_KINDS

OPTIONS: Final[Mapping[str, str]] = {
    "hardware": "--gpu-model",
    "nvlink_domain": "--nvlink-domain",
    "ep": "--ep",
    "family": "--family",
    "routing": "--routing",
    "low_precision": "--precision",
    "memory_tight": "--memory-tight",
    "package": "--flex-package",
    "cpu_binding": "--cpu-bound-to-numa",
    "packed": "--packed-sequences",
    "sync_free": "--te-op-fuser",
    "pp_deep": "--pp",
    "core_version": "--core-version",
}
"""Fact -> the option that gives it. What is not here only a trace can tell."""

EP_KINDS: Final = tuple(kind for kind in COMM_KINDS if kind.startswith("ep_"))
EP_PERHAPS_KINDS: Final = (*EP_KINDS, "sendrecv_unresolved")
PP_KINDS: Final = ("pp_p2p",)
GRAPHED_KINDS: Final = ("launch", "python", "arrival")
"""Host overhead that replaying a graph takes away; not data loading, collection, or waits for the GPU."""


def options_for(facts: Iterable[str]) -> tuple[str, ...]:
    """Options by name for unknown facts, each once; facts no option tells are left out."""
    return tuple(dict.fromkeys(OPTIONS[fact] for fact in facts if fact in OPTIONS))


def is_low_precision(run: Run) -> bool | None:
    """Whether the matrix work is in FP8 or FP4, by any recipe; None where unknown or mixed."""
    if run.precision is None or run.precision == "mixed":
        return None
    return any(bits in run.precision.lower() for bits in ("fp8", "fp4"))


def ep_share(run: Run) -> float | None:
    """Cost of expert all-to-all over the windows, unresolved send/receive included; None: unmeasured."""
    cost_ns = run.cost_ns("communication", EP_PERHAPS_KINDS)
    return None if cost_ns is None or not run.window_ns else cost_ns / run.window_ns


def host_visible(run: Run) -> bool | None:
    """Whether the host overhead that graphs take away is large enough to act on; None: unmeasured."""
    cost_ns = run.cost_ns("host_overhead", GRAPHED_KINDS)
    return None if cost_ns is None or not run.window_ns else cost_ns / run.window_ns >= WALL.value


def pipeline_dominates(run: Run) -> bool | None:
    """Whether pipeline waiting costs more than expert all-to-all; None: unmeasured."""
    pipeline_ns = run.cost_ns("communication", PP_KINDS)
    expert_ns = run.cost_ns("communication", EP_KINDS)
    return None if pipeline_ns is None or expert_ns is None else pipeline_ns > expert_ns


def is_sync_free(run: Run) -> bool | None:
    """Whether a dropless run sends no expert size back to the host, so that one graph can hold an iteration.

    HybridEP, MXFP8 on Blackwell and Transformer Engine's op fuser: what Megatron-Bridge's tuned MXFP8 recipes
    of GB200, GB300 and B300 have in common (perf_recipes), with paged stash.
    """
    hardware = run.config.hardware_class
    return all_of(
        None if hardware is None else hardware in ("blackwell_nvl8", "nvl72"),
        None if run.precision is None else "mxfp8" in run.precision.lower(),
        None if run.active.dispatcher == "unknown" else run.active.dispatcher == "hybridep",
        run.config.te_op_fuser,
    )
