"""Which features a configuration asks for; None where nobody says.

They read the settings as they stand: `as_understood` makes them what the framework makes of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from heuristics.config.said import flag, names, size, told, value, word
from heuristics.fixes.preconditions import core_version
from heuristics.run.run import Run
from traces.settings.effective import effective

BACKENDS: Final = ("deepep", "hybridep", "ncclep")
"""What the flex dispatcher can run on."""

_RECIPES: Final = {
    "delayed": "fp8_delayed",
    "tensorwise": "fp8_per_tensor",
    "blockwise": "fp8_blockwise",
    "mxfp8": "mxfp8",
}
"""`fp8_recipe` of Megatron-Core -> our name of the precision."""


def as_understood(run: Run) -> Run:
    """The run with its settings as the framework has them: migrated, and written over one another."""
    version = core_version(run) or (run.log.versions.get("core") if run.log else None)
    return replace(run, settings=effective(run.settings, version))


def expert_overlap_asked(run: Run) -> bool | None:
    """Expert all-to-all under compute."""
    return flag(run, "overlap_moe_expert_parallel_comm")


def delayed_wgrad_asked(run: Run) -> bool | None:
    """Weight gradients put off, to hide more of it."""
    return flag(run, "delay_wgrad_compute")


def dispatcher_asked(run: Run) -> str | None:
    """Dispatcher asked for: alltoall, allgather, or the backend of flex (`flex` where that is unknown)."""
    kind = word(run, "moe_token_dispatcher_type")
    if kind != "flex":
        return kind if kind in ("alltoall", "allgather") else None
    backend = word(run, "moe_flex_dispatcher_backend")
    if backend is None and flag(run, "moe_enable_deepep"):
        return "deepep"
    return backend if backend in BACKENDS else "flex"


def flex_asked(run: Run) -> bool | None:
    """The flex dispatcher."""
    asked = dispatcher_asked(run)
    return None if asked is None else asked not in ("alltoall", "allgather")


def graphs_asked(run: Run) -> str | None:
    """CUDA-graph implementation; `none` where it is said to be off."""
    return word(run, "cuda_graph_impl") or ("none" if told(run, "cuda_graph_impl") else None)


def graph_modules(run: Run) -> tuple[str, ...] | None:
    """What the graphs hold; nothing: whole layers, which `full` is an older word for."""
    held = names(run, "cuda_graph_modules")
    return None if held is None else tuple(one for one in held if one != "full")


def full_iteration_asked(run: Run) -> bool | None:
    """One graph for the whole iteration, in either spelling."""
    impl = graphs_asked(run)
    if impl is None:
        return None
    return impl == "full_iteration" or (impl == "local" and "full_iteration" in (graph_modules(run) or ()))


def dropless(run: Run) -> bool | None:
    """No token is dropped: no capacity factor."""
    if run.given.routing is not None:
        return run.given.routing != "drop_pad"
    factor = "moe_expert_capacity_factor"
    return value(run, factor) is None if told(run, factor) else None


def precision_asked(run: Run) -> str | None:
    """Precision of the matrix work as configured; None where nobody says."""
    if value(run, "fp4"):
        return "nvfp4"
    if value(run, "fp8"):
        return _RECIPES.get(word(run, "fp8_recipe") or "delayed", "fp8")
    if not told(run, "fp8"):
        return None
    return next((one for one in ("bf16", "fp16") if flag(run, one)), None)


def low_precision_asked(run: Run) -> bool | None:
    """FP8 or FP4."""
    found = precision_asked(run)
    return None if found is None else found not in ("bf16", "fp16")


def shared_overlap_asked(run: Run) -> bool | None:
    """Shared experts beside the dispatch."""
    return flag(run, "moe_shared_expert_overlap")


def spreads_experts(run: Run) -> bool | None:
    """EP above 1."""
    ep = size(run, "expert_model_parallel_size")
    if ep is None:
        return False if run.shown.moe is False else None
    return ep > 1
