"""How steps wait for their batches, and what the copies of the input show."""

from typing import Final, get_args

from heuristics.result.judged import Wall
from heuristics.result.result import Result
from reports.content.analysis.times import scale_of, telling_rank
from reports.content.names import when
from reports.measures import words_of
from traces.account.calls import PAUSE
from traces.limits import HALF_A_WALL, LITTLE
from traces.missing import known
from traces.names.in_use import Loader
from traces.sections.rank import Rank
from traces.sections.work import DataLoading
from traces.spelling import duration, percent

_DATA: Final = "data"


def data_line(result: Result, walls: list[Wall]) -> str:
    """How steps wait for their batches where a wall is of data, and what the input copies show.

    Beside other walls, or none, copies are told of where many are exposed.
    """
    rank = telling_rank(result)
    loading, share = rank.data_loading, input_share(rank)
    if not loading or share is None:
        return ""
    is_wall = any((wall.cost_by_kind_ns or {}).get(_DATA) for wall in walls)
    waits = when(is_wall, _waits(rank, loading))
    if share < (LITTLE if is_wall else HALF_A_WALL).value:
        return waits
    text = f"{waits} Exposed copies of the input take {percent(share)}"
    pageable = known(loading.input_copies_pageable)
    if pageable is not None:
        text += f", from {'pageable' if pageable else 'pinned'} memory"
    return f"{text}.".strip()


def input_share(rank: Rank) -> float | None:
    """Of exposed copies of input; None without steps, where nothing tells input from weights."""
    if not rank.data_loading or not rank.steps.found:
        return None
    return rank.data_loading.input_copies_exposed_ns / rank.budget_ns.window


def _waits(rank: Rank, loading: DataLoading) -> str:
    count, steps, absent = known(loading.workers), len(rank.steps.used), rank.absent_ns
    if not loading.waiting_steps:
        return ""
    if count is None or not absent or loading.workers_named:
        workers = f", which {count} workers load" if loading.workers_named else ""
        long = f"over {duration(PAUSE.whole)} for their batch{workers}"
        return f"{loading.waiting_steps} of {steps} steps wait {long}."
    if count == 1:
        waits = scale_of(rank).ms(absent.launch_starved.get(_DATA, 0))
        of_torch = {*(rank.detected.in_use or ())}.isdisjoint(get_args(Loader))
        few = of_torch and not loading.loads_apart
        workers = when(few, ": one worker or none, by the rhythm")
        return f"Each step waits {waits} ms for its batch{workers}."
    ordinal, number = words_of("ordinal").get(f"{count}"), words_of("number").get(f"{count}", count)
    which = f"Every {ordinal} step" if ordinal else f"One step in {count}"
    return f"{which} waits longest: {number} workers, by the rhythm."
