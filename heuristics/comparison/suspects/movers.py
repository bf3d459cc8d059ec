"""Which rows a setting, a version or a machine can move: the fixes' own knobs, and a table for all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final

from heuristics.comparison.suspects.direction import is_off, way
from heuristics.comparison.suspects.table import Mover, causes
from heuristics.comparison.suspects.view import matches
from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.fix import Fix
from heuristics.result.compared import ComparedChange, ComparedRow
from heuristics.run.run import Run
from traces.sections.tables import WallId
from traces.settings.settings import Framework

_HOST_ROWS: Final = {
    "arrival": ("launch_latency.arrival", "launch_latency.kernel_gap"),
    "long_python_pauses": ("launch_starved.python",),
}
"""Kinds of the host wall that are rows of another name."""

GO_ALONG: Final = ("*te_rng_tracker", "moe_router_dtype", "ddp.use_distributed_optimizer")
"""What fixes set beside their own knobs, because those need it: it moves none of their rows by itself."""

_RUNS: Final = (
    Run(),
    Run(given=Given(gpu="H100"), observed=Observed(moe=True, dispatcher="alltoall")),
    Run(given=Given(gpu="GB200", precision="mxfp8"), observed=Observed(moe=True, dispatcher="hybridep")),
)
"""Runs that fixes are asked for their knobs on: what they spell hangs on the GPU."""


@dataclass(frozen=True, slots=True)
class Movable:
    """Rows that a change can have moved the way it went; `is_broad`: it can move nearly everything."""

    rows: tuple[str, ...]
    is_broad: bool
    sources: tuple[str, ...]


def movable(change: ComparedChange, rows: Sequence[ComparedRow]) -> Movable:
    able = [one for one in (*causes().movers, *fix_movers()) if matches(change.what, one.what)]
    explained = tuple(row.row for row in rows if any(_moves(one, change, row) for one in able))
    used = [one for one in able if any(_moves(one, change, row) for row in rows)]
    sources = tuple(dict.fromkeys(one.source for one in used))
    return Movable(explained, any(one.is_broad for one in used), sources)


def _moves(mover: Mover, change: ComparedChange, row: ComparedRow) -> bool:
    """Whether a change can move a row the way it moved; where its direction is unknown, either way."""
    if matches(row.row, mover.either):
        return True
    longer = row.delta_ns > 0
    went = way(change)
    with_it, against_it = (mover.faster, mover.slower) if longer else (mover.slower, mover.faster)
    return (went != 1 and matches(row.row, with_it)) or (went != -1 and matches(row.row, against_it))


@cache
def fix_movers() -> tuple[Mover, ...]:
    """What fixes of the catalogue switch on, and the rows of the kinds that they act on."""
    found: dict[tuple[str, str], Mover] = {}
    for fix in CATALOGUE.values():
        rows = rows_of(fix)
        if not rows:
            continue
        for knob, is_switch in _knobs(fix).items():
            faster, either = (rows, ()) if is_switch else ((), rows)
            found[fix.id, knob] = Mover((knob,), fix.sources[0], faster=faster, either=either)
    return tuple(found.values())


def rows_of(fix: Fix) -> tuple[str, ...]:
    """Rows of the step that a fix acts on; none where it acts on all of its wall."""
    prefix: dict[WallId, str] = {
        "communication": "exposed_comm",
        "host_overhead": "launch_starved",
        "compute": "compute",
        "memory": "launch_starved",
    }
    return tuple(row for kind in fix.kinds for row in _HOST_ROWS.get(kind, (f"{prefix[fix.wall]}.{kind}",)))


def _knobs(fix: Fix) -> dict[str, bool]:
    """Knobs that a fix sets to something, and whether it switches them on. What it leaves out is no mover."""
    found: dict[str, bool] = {}
    frameworks: tuple[Framework, Framework] = ("megatron_lm", "megatron_bridge")
    for run, framework in product(_RUNS, frameworks):
        for knob, value in fix.change(run).of(framework, run.settings).items():
            if not is_off(value) and not matches(knob, GO_ALONG):
                found[knob] = value is True
    return found
