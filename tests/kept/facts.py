"""What is measured of a recording, whole: also what documents sum up or leave out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traces.account.account import measure_account
from traces.account.device import find_queueing
from traces.errors import MoeDiagError
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.measurements import measure_rank
from traces.missing import Missing
from traces.replay.changes.change import ChangesTogether
from traces.replay.changes.costs import Costs
from traces.resolve.communication import communication_of
from traces.resolve.kinds import resolve_kinds
from traces.resolve.layers import places_of
from traces.resolve.nccl_calls import groups_of
from traces.resolve.ranges import enclosing_ranges
from traces.steps.choose import choose_steps
from traces.steps.selection import Selection
from traces.timeline import RankTimeline


def facts(path: Path, threads: Mapping[int, str]) -> Mapping[str, Any]:
    """Of each rank, by name; what it was refused for, where it was. `threads` have these names besides."""
    try:
        ranks = build(read_trace(path)).ranks
        for rank in ranks:
            rank.columns.thread_names.update(threads)
        return {f"{name} {place}": fact for place, rank in enumerate(ranks) for name, fact in _of(rank)}
    except MoeDiagError as error:
        return {"refused": str(error)}


def _of(rank: RankTimeline) -> list[tuple[str, object]]:
    steps, resolution, queueing = choose_steps(rank, Selection()), resolve_kinds(rank), find_queueing(rank)
    communication, measured = communication_of(rank), measure_rank(rank, Selection())
    return [
        *(("measured", measured), ("all changes together", _all_together(measured.costs))),
        *(("resolution", resolution), ("places", places_of(rank, resolution, steps))),
        *(("groups", groups_of(communication)), ("ranges", enclosing_ranges(communication))),
        *(("queueing", queueing), ("account", measure_account(rank, steps.windows, queueing))),
    ]


def _all_together(costs: Costs | Missing) -> object:
    if isinstance(costs, Missing) or not isinstance(costs.together, ChangesTogether):
        return None
    return costs.together.joint([change.kind for change in costs.changes])
