"""Results with round numbers for the tests of comparing, each said in a line.

Fields that are not named are those of a plain run: MoE training on one H100, two steps, all-to-all dispatch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Any

from diagnoser.diagnosis import Diagnosis
from heuristics.comparison.difference.subject import Value
from heuristics.result.configured import Configuration, Log, Setting
from heuristics.result.judged import Wall
from heuristics.result.result import Result
from heuristics.result.tool import Tool
from reports.result.read import of_one_run, typed
from tests.doubles.result import double
from traces.sections.rank import Rank
from traces.sections.steps import Dropped, Step, Steps, StepSource
from traces.sections.tables import Group, Kernel, Lane, LedgerRow, ReasonLane, Timeline, WallId
from traces.sections.trace import Gpu, Trace

DETECTED: Mapping[str, Any] = {
    "dispatcher": "alltoall", "graph_share_frac": 0.0, "short_kernel_frac": 0.25, "ep_overlap": False,
    "training_step": True, "precision": "bf16", "recompute": None,
}  # fmt: skip
_WALLS: Mapping[str, WallId] = {
    "compute": "compute",
    "exposed_comm": "communication",
    "idle.launch_starved": "host_overhead",
    "idle.launch_latency": "host_overhead",
}


def read_back(diagnosis: Diagnosis) -> Result:
    """A diagnosis as it is read from its file."""
    return of_one_run(typed(json.loads(json.dumps(diagnosis.to_dict()))))


def row(
    name: str,
    *per_step_ns: int,
    count: int | None = None,
    work_ns: int | None = None,
    group: Group = "budget",
    wall: WallId | None = None,
) -> LedgerRow:
    """A row of the ledger: wall time by step; one activity a step and no overlap where not said."""
    known = next((one for start, one in _WALLS.items() if name.startswith(start)), None)
    return LedgerRow(
        row=name,
        group=group,
        wall=wall or known,
        count=len(per_step_ns) if count is None else count,
        work_ns=sum(per_step_ns) if work_ns is None else work_ns,
        per_step_ns=per_step_ns,
    )


def kernel(
    name: str,
    work_ns: int,
    *,
    count: int = 1,
    grid: tuple[int, int, int] | None = (132, 1, 1),
    key: str = "compute.gemm",
    std_ns: int = 0,
    block: tuple[int, int, int] | None = None,
) -> Kernel:
    """Kernels of one name and grid, over all used steps."""
    return Kernel(name, grid, key, count, work_ns, std_ns, block)


def timeline(*kernels: tuple[str, int, int], name: str = "nvjet_128x256", stream: int = 7) -> Timeline:
    """One step of 10 ms on one stream: `kernels` by key, start and length; a GEMM of 6 ms where not said."""
    shown = kernels or (("compute.gemm", 1_000_000, 6_000_000),)
    keys = tuple(sorted({key for key, _, _ in shown}))
    lane = Lane(
        stream=stream,
        at_ns=tuple(at_ns for _, at_ns, _ in shown),
        length_ns=tuple(length_ns for _, _, length_ns in shown),
        key=tuple(keys.index(key) for key, _, _ in shown),
        name=(0,) * len(shown),
    )
    reasons = ReasonLane((0,), (shown[0][1],), (0,), ("launch_starved.launch",))
    return Timeline(1, 50_000_000, 60_000_000, 0, keys, (name,), (lane,), reasons)


def rank(
    *rows: LedgerRow, lengths_ns: tuple[int, ...] | None = None, source: StepSource = "nvtx", **fields: Any
) -> Rank:
    """A rank whose steps are as long as its budget rows add up to; without rows, two steps of 10 ns.

    `source="none"`: one window and no steps. `fields`: of `Rank`, its sections as dicts; or `dropped` of its
    steps, the `kernels` of its table and the rows `left_out` of it, the `layers` of its MoE ledger.
    """
    budget = [one for one in rows if one.group == "budget"]
    added = tuple(sum(step) for step in zip(*(one.per_step_ns for one in budget), strict=True))
    lengths_ns = lengths_ns or added or (10, 10)
    buckets: dict[str, int | None] = dict.fromkeys(("compute", "exposed_comm", "exposed_copy", "idle"), 0)
    for one in budget:
        bucket = one.row.partition(".")[0]
        if bucket in buckets:
            buckets[bucket] = (buckets[bucket] or 0) + sum(one.per_step_ns)
    layers = fields.pop("layers", ())
    plain: dict[str, Any] = {
        "trace": "run.sqlite",
        "process": 100,
        "gpu": "NVIDIA H100 80GB HBM3",
        "rank": 0,
        "steps": _steps(source, lengths_ns, fields.pop("dropped", ())),
        "budget_ns": {"window": sum(lengths_ns), **buckets, **fields.pop("budget_ns", {})},
        "ledger": rows,
        "kernel_table": {"rows": fields.pop("kernels", ()), "left_out": {"rows": fields.pop("left_out", 0)}},
        "clock_offset_ns": 0,
        "detected": {**DETECTED, **fields.pop("detected", {})},
        "memory": {"recompute_ns": 0, "recompute_modules": {}, "allocator_retry_frac": 0.0},
        "sm": {"sm_count": 132, "comm_blocks": 20},
        "absent_ns": {},
        "a2a": {"instances": 8},
        "moe": {"by_layer": layers} if layers else None,
        "timeline": timeline(),
    }
    return double(Rank, **{**plain, **fields})


def _steps(source: StepSource, lengths_ns: tuple[int, ...], dropped: tuple[str, ...]) -> Steps:
    """Steps one after the other, none from the source `none`; and those left out, by their reasons."""
    used = () if source == "none" else lengths_ns
    ends = list(accumulate(used, initial=0))
    return double(
        Steps,
        source=source,
        what="iteration N",
        used=tuple(Step(place, begin, end) for place, (begin, end) in enumerate(pairwise(ends))),
        dropped=tuple(
            double(Dropped, index=len(used) + place, reason=one) for place, one in enumerate(dropped)
        ),
    )


def trace(perturbation_frac: float | None = None, **fields: Any) -> Trace:
    """What the trace says of itself: an nsys export of today on one H100."""
    plain: dict[str, Any] = {
        "name": "run.sqlite",
        "kind": "nsys-sqlite",
        "exporter_version": "2026.2.1.210",
        "schema": "3.25.0",
        "gpus": (double(Gpu, name="NVIDIA H100 80GB HBM3"),),
        "capture": {"perturbation_frac": perturbation_frac},
    }
    return double(Trace, **{**plain, **fields})


def log(*iterations_ns: int, versions: Mapping[str, str] | None = None) -> Log:
    """A training log by the lengths of its steady iterations."""
    return double(Log, name="train.log", iterations_ns=iterations_ns, versions=versions or {})


def configuration(
    settings: Mapping[str, Value] | None = None,
    *,
    withheld: frozenset[str] = frozenset(),
    said: str = "file",
    **versions: str,
) -> Configuration:
    """Settings by knob, all said by the same source; `versions` by package: core, bridge, torch, te."""
    return double(
        Configuration,
        framework="megatron_lm",
        legal=True,
        settings=(
            *(Setting(knob, value, said, False) for knob, value in (settings or {}).items()),
            *(Setting(knob, None, said, True) for knob in withheld),
        ),
        versions=dict(versions),
    )


def result(*ranks: Rank, guidance: str = "main-2026-08", **fields: Any) -> Result:
    """A finished result; without ranks one plain rank. `fields`: of `Result`."""
    plain: dict[str, Any] = {
        "schema_version": "1.0",
        "tool": Tool("moe-diag", "0.2", guidance),
        "traces": (trace(),),
        "redacted": True,
        "walls": (double(Wall, outcome="clear"),),
    }
    return double(Result, ranks=ranks or (rank(),), **{**plain, **fields})
