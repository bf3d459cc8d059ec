"""What the waits for batches tell, in one line under the headline."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from heuristics.result.judged import Wall
from heuristics.result.known import known
from heuristics.result.rank import DataLoading, Rank
from heuristics.result.result import Result
from heuristics.walls.price import LITTLE
from reports.content.analysis.scale import scale_of, telling_rank
from reports.content.quantities import percent

DATA: Final = "data"
_ORDINALS: Final = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_NUMBERS: Final = ("", "", "two", "three", "four", "five", "six", "seven", "eight")


def data_line(result: Result, walls: list[Wall]) -> str:
    """How steps wait for their batches, and what the input copies show; empty where no wall is of data."""
    rank = telling_rank(result)
    loading = rank.data_loading
    if loading is UNSET or not any((known(wall.cost_by_kind_ns) or {}).get(DATA) for wall in walls):
        return ""
    return " ".join(one for one in (_waits(rank, loading), _copies(rank, loading)) if one)


def _waits(rank: Rank, loading: DataLoading) -> str:
    count, steps, absent = known(loading.workers), len(rank.steps.used), known(rank.absent_ns)
    if not loading.waiting_steps:
        return ""
    if count is None or absent is None:
        return f"{loading.waiting_steps} of {steps} steps wait for their batch."
    if count == 1:
        waits = scale_of(rank).ms(absent.launch_starved.get(DATA, 0))
        return f"Each step waits {waits} ms for its batch: one worker or none, by the rhythm."
    which = _ORDINALS[count] if count < len(_ORDINALS) else f"{count}th"
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return f"Every {which} step waits longest: {number} workers, by the rhythm."


def _copies(rank: Rank, loading: DataLoading) -> str:
    share = loading.input_copies_exposed_ns / rank.budget_ns.window
    return f"Input copies that no compute hides take {percent(share)}." if share >= LITTLE.value else ""
