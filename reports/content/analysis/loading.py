"""What the waits for batches tell, in one line under the headline."""

from typing import Final

from msgspec import UNSET

from heuristics.result.judged import Wall
from heuristics.result.result import Result
from heuristics.walls.host_overhead import EXPOSED_INPUT
from heuristics.walls.price import LITTLE
from reports.content.analysis.scale import scale_of, telling_rank
from traces.limits import Limit
from traces.missing import known
from traces.sections.rank import DataLoading, Rank
from traces.spelling import percent

DATA: Final = "data"
_ORDINALS: Final = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_NUMBERS: Final = ("", "", "two", "three", "four", "five", "six", "seven", "eight")


def data_line(result: Result, walls: list[Wall]) -> str:
    """How steps wait for their batches where a wall is of data, and what the input copies show.

    Beside other walls, or none, copies are told of where many are exposed.
    """
    rank = telling_rank(result)
    loading = rank.data_loading
    if loading is UNSET or not rank.steps.found:  # without steps nothing tells input from weights
        return ""
    if any((known(wall.cost_by_kind_ns) or {}).get(DATA) for wall in walls):
        return f"{_waits(rank, loading)} {_copies(rank, loading, LITTLE)}".strip()
    return _copies(rank, loading, EXPOSED_INPUT)


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


def _copies(rank: Rank, loading: DataLoading, least: Limit) -> str:
    share = loading.input_copies_exposed_ns / rank.budget_ns.window
    if share < least.value:
        return ""
    pageable = known(loading.input_copies_pageable)
    memory = "" if pageable is None else f", from {'pageable' if pageable else 'pinned'} memory"
    return f"Input copies that no compute hides take {percent(share)}{memory}."
