"""The room that CUDA graphs need (document 003): the one need of theirs that no configuration tells."""

from __future__ import annotations

from typing import Final

from heuristics.fixes.preconditions import head_room
from heuristics.run.run import Run
from heuristics.workflow.memory import fits, is_tight
from heuristics.workflow.need import Need

GIB: Final = 1 << 30
_NEEDED_BYTES: Final = 7 * GIB
"""About 7 GB on DeepSeek-V3, GB200 (arXiv 2603.07685)."""


def _asked(run: Run) -> bool | None:
    impl = run.config.graph_impl
    return None if impl is None else impl != "none"


def _room(run: Run) -> bool | None:
    if (tight := is_tight(run)) is not None:
        return not tight
    found = head_room(run, _NEEDED_BYTES).state
    return True if found == "met" else False if fits(run) is False else None


GRAPH_NEEDS: Final = (
    Need(
        "graphs-memory",
        "CUDA graphs",
        "CUDA graphs: several GB of memory for them",
        "003, CUDA Graphs For MoE",
        _asked,
        _room,
        lambda run: "memory is short" if _room(run) is False else "no shortage of memory is known",
        "a narrower scope, or selective recompute first",
        "--memory-tight, or a log with the trainer's memory report",
        "MEM-2",
    ),
)
