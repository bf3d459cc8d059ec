"""Clues: what points straight at one fix, by `clues.toml`, and what of a run it rests on."""

from collections.abc import Mapping
from functools import cache
from itertools import chain

from heuristics.facts.dictionary import enter, fact
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.guides.situation import EP_KINDS
from heuristics.plan.gains import before_others
from heuristics.rules.condition import RUNS, Condition
from heuristics.rules.failures import in_pieces
from heuristics.run.run import Run
from traces.limits import WALL
from traces.sections.tables import WallId
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table
from traces.training_log.log import OutOfMemory


class Clue(TableRow):
    """`fix` goes first for its wall where `when` holds, for a `reason`; for all walls if no
    `tuning`.
    """

    fix: str
    when: Condition
    reason: str
    source: str
    tuning: bool = True


@fact
def fragmented(run: Run) -> bool:
    """Steady steps free and allocate, or much was reserved and not allocated: pieces of odd
    sizes.
    """
    if (run.cost_by_kind_ns.get("memory") or {}).get(
        "allocator"
    ) or run.active.allocator_calls_per_step:
        return True
    if not run.log:
        return False
    return any(map(_unallocated, run.log.out_of_memory)) or in_pieces(run.log) is not None


def _unallocated(fail: OutOfMemory) -> bool:
    reserved, allocated, capacity = fail.reserved_bytes, fail.allocated_bytes, fail.capacity_bytes
    if reserved is None or allocated is None or capacity is None:
        return False
    return reserved - allocated >= WALL.value * capacity


@fact
def overlap_is_at_hand(run: Run) -> bool:
    """Expert all-to-all of plain alltoall costs most, no flex package is known, and one flag hides
    it.
    """
    whole, experts = run.cost_ns("communication", ()), run.cost_ns("communication", EP_KINDS)
    if not whole or experts is None or experts <= whole / 2 or run.config.flex_package:
        return False
    plain = run.active.dispatcher == "alltoall" and run.config.hardware_class != "nvl72"
    return plain and not any(need.stops for need in CATALOGUE["COM-1"].preconditions(run))


enter("repaired_first", before_others)


@fact
def experts_overlap(run: Run) -> bool | None:
    """Whether EP overlap runs, or is asked for by any of its switches."""
    return run.active.ep_overlap or run.config.overlap("overlap_moe_expert_parallel_comm") is True


@cache
def clues() -> Mapping[WallId, tuple[Clue, ...]]:
    """Those of each wall, in order."""
    return read_table("heuristics.plan", "clues.toml", dict[WallId, tuple[Clue, ...]], RUNS.readers)


def _first(run: Run, wall: WallId) -> Clue | None:
    return next((clue for clue in clues().get(wall, ()) if clue.when.holds(run)), None)


def why_first(run: Run, wall: WallId, fix: str) -> str:
    """Why a clue puts a fix first, with its source; empty where none does."""
    clue = _first(run, wall)
    if clue and clue.fix == fix:
        return f"{clue.reason} ({clue.source})"
    return ""


def first_by_clue(run: Run, wall: WallId) -> str | None:
    if clue := _first(run, wall):
        return clue.fix
    return None


def before_tuning(run: Run) -> Texts:
    """Ids of the fixes that correct what is set wrongly, and so come before those that tune it."""
    every = chain.from_iterable(clues().values())
    return tuple(clue.fix for clue in every if not clue.tuning and clue.when.holds(run))
