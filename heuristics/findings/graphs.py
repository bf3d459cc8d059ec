"""Contradictions of CUDA graphs: asked for, captured perhaps, and never replayed; or replayed unasked."""

from __future__ import annotations

from typing import Final

from heuristics.findings.finding import Case, ConfigFinding, Detector
from heuristics.workflow.features import graphs_asked
from heuristics.workflow.said import where

CAPTURES: Final = ("graph-captured", "graph-built", "graph-capture-begins")
"""Lines of a log that say graphs were captured."""


def graphs_not_replayed(case: Case) -> ConfigFinding | None:
    """No GPU work of the used steps comes from a graph."""
    run, asked = case.run, graphs_asked(case.run)
    if asked in (None, "none") or run.shown.graph_frac != 0:
        return None
    captured = next((one for one in CAPTURES if one in case.lines), "")
    nothing = "graph-nothing-captured" in case.lines
    happened = "captured and not replayed" if captured else "not replayed"
    evidence = f"cuda_graph_impl in {where(run, 'cuda_graph_impl')}; no kernel of the steps is in a graph"
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
    run, share = case.run, case.run.shown.graph_frac
    if graphs_asked(run) != "none" or not share:
        return None
    return ConfigFinding(
        "CFG-graphs-unasked",
        "active_not_requested",
        "CUDA graphs are off in the configuration, and the trace replays some",
        f"cuda_graph_impl in {where(run, 'cuda_graph_impl')}; {share:.0%} of kernel work is in graphs",
        "take the trace and the configuration of the same run",
    )


DETECTORS: Final[tuple[Detector, ...]] = (graphs_not_replayed, graphs_unasked)
