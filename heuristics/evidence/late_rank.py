"""The late rank as opinions see it, and what communication costs beside the waiting for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from heuristics.figures.figures import Figures
from heuristics.guides.facts import EP_KINDS
from heuristics.run.repairs import LateRank
from heuristics.walls.wall import WallJudgement
from traces.missing import known
from traces.ranks.cause import Cause
from traces.sections.run import Run

_STILL_MOVING: Final = (Cause.SLOW_LINK,)
"""Why ranks wait for data that moves, which an overlap hides; all others wait for a rank to arrive."""


def late_rank(together: Run, ranks: Sequence[Figures]) -> LateRank | None:
    """What several ranks found; None where nobody is late, or nobody can tell who."""
    late, without = known(together.late), known(together.without)
    if late is None or late.cause is Cause.NONE:
        return None
    exposed_ns: dict[str, int] = {}
    for rank in ranks:
        for kind, ns in (rank.exposed_by_kind_ns or {}).items():
            exposed_ns[kind] = exposed_ns.get(kind, 0) + ns
    waits_ns = {} if late.cause in _STILL_MOVING else together.late_exposed_by_kind_ns
    return LateRank(late.cause, without.saved_frac if without else None, waits_ns, exposed_ns)


def expert_waiting_frac(together: Run) -> float | None:
    """How much of the expert all-to-all of several ranks is waiting; None where none was matched."""
    waits_ns = _of_experts(together.wait_by_kind_ns)
    whole_ns = waits_ns + _of_experts(together.transfer_by_kind_ns)
    return waits_ns / whole_ns if whole_ns and together.clocks.aligned else None


def _of_experts(by_kind_ns: Mapping[str, int]) -> int:
    return sum(ns for kind, ns in by_kind_ns.items() if kind in EP_KINDS)


def without_waits(wall: WallJudgement, late: LateRank | None) -> WallJudgement:
    """The communication wall as fixes of communication can act on it: less the waiting for a late rank.

    A kind costs at most what is exposed of it beside that waiting, whatever the replay of one rank says.
    """
    if wall.id != "communication" or not wall.cost_ns or late is None or not late.waits_ns:
        return wall
    exposed_ns, waits_ns = late.exposed_ns or {}, late.waits_ns
    rest_ns = {kind: max(0, ns - waits_ns.get(kind, 0)) for kind, ns in exposed_ns.items()}
    by_kind = {kind: min(ns, rest_ns.get(kind, ns)) for kind, ns in wall.cost_by_kind_ns.items()}
    cost_ns = min(wall.cost_ns, sum(rest_ns.values()))
    frac = None if wall.cost_frac is None else wall.cost_frac * cost_ns / wall.cost_ns
    return replace(wall, cost_ns=cost_ns, cost_frac=frac, cost_by_kind_ns=by_kind)
