"""What CUDA graphs of an MoE run need (documents 003 and 000)."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import negated
from heuristics.fixes.preconditions import head_room
from heuristics.guides.graph_config import MODULES
from heuristics.run.run import Run
from heuristics.workflow.memory import fits, is_tight
from heuristics.workflow.need import Need

GIB: Final = 1 << 30
_GRAPHS: Final = "CUDA graphs"
_NEEDED_BYTES: Final = 7 * GIB
"""About 7 GB on DeepSeek-V3, GB200 (arXiv 2603.07685)."""


def _asked(run: Run) -> bool | None:
    impl = run.config.graph_impl
    return None if impl is None else impl != "none"


def _dropless_graphs(run: Run) -> bool | None:
    asked, drops_none = _asked(run), run.config.dropless
    return asked and drops_none if asked else asked


def _of_parts(run: Run) -> bool | None:
    asked, whole = _asked(run), run.config.full_iteration
    return asked and negated(whole) if asked else asked


def _modules_say(run: Run) -> str:
    held = run.config.graph_modules
    if held is None:
        return "what they hold is not known"
    named = [one for one in held if one in (*MODULES, "full_iteration")]
    return f"they hold {', '.join(named) or ('something unknown' if held else 'whole layers')}"


def _static_parts(run: Run) -> bool | None:
    held = run.config.graph_modules
    return None if held is None else bool(held) and "moe" not in held


def _router_first(run: Run) -> bool | None:
    held = run.config.graph_modules
    return None if held is None else {"moe_router", "moe_preprocess"} <= {*held}


def _shapes(run: Run) -> bool | None:
    varies = run.config.on("variable_seq_lengths")
    if run.config.packed_sequences or varies:
        return False
    return None if varies is None or run.config.packed_sequences is None else True


def _room(run: Run) -> bool | None:
    if (tight := is_tight(run)) is not None:
        return not tight
    found = head_room(run, _NEEDED_BYTES).state
    return True if found == "met" else False if fits(run) is False else None


def _selective(run: Run) -> bool | None:
    if run.config.known("recompute_granularity"):
        return run.config.word("recompute_granularity") != "full"
    return negated(run.active.recompute_full)


GRAPH_NEEDS: Final = (
    Need(
        "graphs-dropless-parts",
        _GRAPHS,
        "CUDA graphs: of parts, not of the iteration, where no token is dropped",
        "003, CUDA Graphs For MoE",
        _dropless_graphs,
        lambda run: negated(run.config.full_iteration),
        lambda run: "of the full iteration" if run.config.full_iteration else "of parts of a layer",
        "Transformer Engine's graphs of parts; full iteration for drop-and-pad or a sync-free HybridEP stack",
        "cuda_graph_impl and cuda_graph_modules of the configuration",
        "HST-3",
    ),
    Need(
        "graphs-static-parts",
        "CUDA graphs of parts",
        "CUDA graphs: the experts' own work stays outside where no token is dropped",
        "003, CUDA Graphs For MoE",
        lambda run: negated(run.config.full_iteration) if _dropless_graphs(run) else _dropless_graphs(run),
        _static_parts,
        _modules_say,
        "moe_router and moe_preprocess (and attn), never moe or whole layers",
        "cuda_graph_modules of the configuration",
        "HST-3",
    ),
    Need(
        "graphs-router-and-preprocess",
        "CUDA graphs of parts",
        "CUDA graphs: router and preprocess together, where no token is dropped",
        "000, Key Interactions",
        lambda run: negated(run.config.full_iteration) if _dropless_graphs(run) else _dropless_graphs(run),
        _router_first,
        _modules_say,
        "moe_router with moe_preprocess (attn too, by the older guide)",
        "cuda_graph_modules of the configuration",
        "HST-3",
    ),
    Need(
        "graphs-static-shapes",
        _GRAPHS,
        "CUDA graphs: shapes that stay",
        "003, CUDA Graphs For MoE",
        _asked,
        _shapes,
        lambda run: (
            "shapes change from step to step" if _shapes(run) is False else "no changing shape is known"
        ),
        "fixed sequence length and micro-batch size, no packed sequences; else no graphs",
        "--packed-sequences, and variable_seq_lengths of the configuration",
    ),
    Need(
        "graphs-memory",
        _GRAPHS,
        "CUDA graphs: several GB of memory for them",
        "003, CUDA Graphs For MoE",
        _asked,
        _room,
        lambda run: "memory is short" if _room(run) is False else "no shortage of memory is known",
        "a narrower scope, or selective recompute first",
        "--memory-tight, or a log with the trainer's memory report",
        "MEM-2",
    ),
    Need(
        "graphs-selective-recompute",
        "CUDA graphs of parts",
        "CUDA graphs: with selective recompute, not full",
        "003, Pitfalls, 4; 002, Recompute guidance",
        _of_parts,
        _selective,
        lambda run: "recompute is full" if _selective(run) is False else "no full recompute is known",
        "selective recompute; full recompute goes with a graph of the full iteration only",
        "recompute_granularity of the configuration",
        "MEM-2",
    ),
)
