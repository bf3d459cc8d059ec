"""The ledger: every figure that two runs can be compared by, row by row and step by step, exact.

Three groups of rows. `budget`: compute by class, exposed communication and copies by kind, idle; in every
step they add up to its window. `absent`: why no compute ran; in every step they add up to the window less its
compute. `moe`: modules of MoE layers by pass, wall time of each, which may overlap and add up to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from traces.account.absent import REASONS, AbsentPieces
from traces.intervals import Spans, covered_ns, intersect, spans, subtract, union
from traces.measure.budget import Budget, measure_budget
from traces.measure.ledger_steps import borders_of, table_ns
from traces.measure.moe_ledger import MoeLedger
from traces.missing import Missing
from traces.names.kinds import COMM_KINDS
from traces.steps.found import Steps
from traces.timeline import KEYS, Activities, Bucket

Group = Literal["budget", "absent", "moe"]

_ABSENT_WALLS: Final[Mapping[str, str | None]] = {
    "launch_starved.allocator": "memory",
    "launch_starved.profiler": None,
    "launch_latency.arrival": "host_overhead",
    **{f"blocking.{kind}": "communication" for kind in COMM_KINDS},
}
"""Walls of reasons why no compute ran; other late launches are the host's, all other reasons nobody's."""

_MOE_WALLS: Final[Mapping[str, str]] = {
    "dispatch": "communication",
    "combine": "communication",
    "expert_gemm": "compute",
    "expert_activation": "compute",
    "shared_expert": "compute",
    "router": "compute",
    "permute": "compute",
    "unpermute": "compute",
}


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row, such as `compute.gemm`, `blocking.ep_dispatch`, `moe.dispatch.backward`.

    `wall` is the wall whose handicap is in it, None where it is no wall's. `count`: activities with time in
    the windows; for idle and reasons, stretches of time. `per_step_ns` has an entry per used step, one where
    there are no steps.
    """

    row: str
    group: Group
    wall: str | None
    count: int
    per_step_ns: tuple[int, ...]


def measure_ledger(
    rows: Activities, steps: Steps, absent: AbsentPieces | Missing, moe: MoeLedger | Missing
) -> tuple[LedgerRow, ...]:
    """All rows with anything in them, over the used steps or the one window.

    `rows` carry the resolved kinds. Where `absent` or `moe` is missing, that group has no rows.
    """
    result = [*_budget_rows(rows, steps)]
    if not isinstance(absent, Missing):
        result += _absent_rows(absent, steps)
    if not isinstance(moe, Missing):
        result += _moe_rows(moe)
    return tuple(result)


def _budget_rows(rows: Activities, steps: Steps) -> Iterator[LedgerRow]:
    """The budget of each step, measured on what runs in it."""
    borders = borders_of(steps)
    latest = np.maximum.accumulate(rows.end_ns) if len(rows) else rows.end_ns
    columns = []
    for start, end in zip(borders.start_ns.tolist(), borders.end_ns.tolist(), strict=True):
        low, high = np.searchsorted(latest, start, side="right"), np.searchsorted(rows.start_ns, end)
        columns.append(_parts(measure_budget(rows.take(np.arange(low, high)), spans((start, end)))))
    counts = _counts(rows, steps.windows)
    names = [*counts, *dict.fromkeys(name for column in columns for name in column if name not in counts)]
    for name in names:
        per_step = tuple(column.get(name, 0) for column in columns)
        if any(per_step):
            yield LedgerRow(name, "budget", _budget_wall(name), counts.get(name, 0), per_step)


def _parts(budget: Budget) -> dict[str, int]:
    parts = {f"compute.{key}": ns for key, ns in budget.compute_by_class_ns.items()}
    parts |= {f"exposed_comm.{key}": ns for key, ns in budget.exposed_comm_by_kind_ns.items()}
    parts |= {f"exposed_copy.{key}": ns for key, ns in budget.exposed_copy_by_kind_ns.items()}
    return parts | {"idle": budget.idle_ns}


def _budget_wall(name: str) -> str | None:
    return {"compute": "compute", "exposed_comm": "communication"}.get(name.split(".")[0])


def _counts(rows: Activities, windows: Spans) -> dict[str, int]:
    """How many activities of each row have time in the windows; of idle, how many stretches there are."""
    there = covered_ns(rows.start_ns, rows.end_ns, windows) > 0
    counts: dict[str, int] = {}
    prefixes = {Bucket.COMPUTE: "compute", Bucket.COMM: "exposed_comm", Bucket.COPY: "exposed_copy"}
    for bucket, prefix in prefixes.items():
        keys = rows.key[there & (rows.bucket == bucket)]
        number = np.bincount(keys, minlength=len(KEYS[bucket]))
        counts |= {f"{prefix}.{KEYS[bucket][key]}": int(number[key]) for key in np.flatnonzero(number)}
    return counts | {"idle": len(subtract(windows, union(rows.start_ns, rows.end_ns)))}


def _absent_rows(absent: AbsentPieces, steps: Steps) -> Iterator[LedgerRow]:
    """Reasons why no compute ran, each step's own."""
    table = table_ns(absent.start_ns, absent.end_ns, absent.reason, len(REASONS), borders_of(steps))
    for reason in np.flatnonzero(table.any(axis=1)).tolist():
        mine = absent.reason == reason
        stretches = intersect(union(absent.start_ns[mine], absent.end_ns[mine]), steps.windows)
        name, per_step = REASONS[reason], tuple(table[reason].tolist())
        yield LedgerRow(name, "absent", _absent_wall(name), len(stretches), per_step)


def _absent_wall(name: str) -> str | None:
    late = "host_overhead" if name.startswith("launch_starved.") else None
    return _ABSENT_WALLS.get(name, late)


def _moe_rows(moe: MoeLedger) -> Iterator[LedgerRow]:
    """Modules by pass. What is recomputed is the memory wall's, whatever it is."""
    for row in moe.rows:
        wall = "memory" if row.pass_ == "recompute" else _MOE_WALLS.get(row.module)
        yield LedgerRow(f"moe.{row.module}.{row.pass_}", "moe", wall, row.count, row.per_step_ns)
