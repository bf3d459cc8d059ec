"""Contradictions of CUDA graphs: asked for, captured perhaps, and never replayed; or replayed unasked."""

from typing import Final

from heuristics.findings.finding import Case, ConfigFinding, Detector
from heuristics.findings.memory import expandable_segments
from traces.spelling import percent

_REGISTER: Final = "env.NCCL_GRAPH_REGISTER"
CAPTURES: Final = ("graph-captured", "graph-built", "graph-capture-begins")
"""Lines of a log that say graphs were captured."""


def graphs_not_replayed(case: Case) -> ConfigFinding | None:
    """No GPU work of the used steps comes from a graph."""
    run, asked = case.run, case.run.asked.graph_impl
    if asked in (None, "none") or run.observed.graph_frac != 0:
        return None
    captured = next((one for one in CAPTURES if one in case.lines), "")
    nothing = "graph-nothing-captured" in case.lines
    happened = "captured and not replayed" if captured else "not replayed"
    evidence = (
        f"cuda_graph_impl in {run.asked.where('cuda_graph_impl')}; no kernel of the steps is in a graph"
    )
    if captured or nothing:
        evidence += f"; {case.line_of(captured or 'graph-nothing-captured')}"
    return ConfigFinding(
        "CFG-graphs-not-replayed",
        "requested_not_active",
        f"CUDA graphs are asked for and {happened}",
        evidence,
        "modules that the model has: nothing could be captured"
        if nothing
        else "record steps after cuda_graph_warmup_steps and the capture; then see that shapes stay and that "
        "nothing turns graphs off",
    )


def graphs_unasked(case: Case) -> ConfigFinding | None:
    """Graphs replay though they are said to be off."""
    run, share = case.run, case.run.observed.graph_frac
    if run.asked.graph_impl != "none" or not share:
        return None
    return ConfigFinding(
        "CFG-graphs-unasked",
        "active_not_requested",
        "CUDA graphs are off in the configuration, and the trace replays some",
        f"cuda_graph_impl in {run.asked.where('cuda_graph_impl')}; "
        f"{percent(share)} of kernel work is in graphs",
        "take the trace and the configuration of the same run",
    )


def register_unset(case: Case) -> ConfigFinding | None:
    """Graphs with expandable segments, and nobody says that NCCL does not register graph buffers.

    The frameworks assert it where the variable is not 0, so unset is refused too; a container may set it.
    """
    run = case.run
    if (
        run.asked.graph_impl != "transformer_engine"
        or not expandable_segments(run)
        or run.asked.known(_REGISTER)
    ):
        return None
    if "graph-register" in case.lines or run.asked.before("core", "0.16.0"):
        return None
    return ConfigFinding(
        "CFG-graph-register",
        "illegal",
        "CUDA graphs of Transformer Engine with expandable segments stop with an assertion unless "
        "NCCL_GRAPH_REGISTER=0, and nothing here sets it",
        f"cuda_graph_impl in {run.asked.where('cuda_graph_impl')}; expandable_segments:True",
        "NCCL_GRAPH_REGISTER=0 for every rank; keep the expandable segments",
    )


DETECTORS: Final[tuple[Detector, ...]] = (graphs_not_replayed, graphs_unasked, register_unset)
