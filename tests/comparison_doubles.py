"""Results with round numbers for the tests of comparing, each said in a line.

Fields that are not named are those of a plain run: MoE training on one H100, two steps, all-to-all dispatch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traces.results.result import (
    Configuration,
    Group,
    Kernel,
    Log,
    Rank,
    Result,
    Row,
    Steps,
    Trace,
    Value,
)

DETECTED: Mapping[str, Any] = {
    "dispatcher": "alltoall",
    "graph_share_frac": 0.0,
    "short_kernel_frac": 0.25,
    "ep_overlap": False,
    "training_step": True,
    "precision": "bf16",
    "recompute": None,
}
_WALLS = {
    "compute": "compute",
    "exposed_comm": "communication",
    "idle.launch_starved": "host_overhead",
    "idle.launch_latency": "host_overhead",
}


def row(
    name: str,
    *per_step_ns: int,
    count: int | None = None,
    work_ns: int | None = None,
    group: Group = "budget",
    wall: str | None = None,
) -> Row:
    """A row of the ledger: wall time by step; one activity a step and no overlap where not said."""
    known = next((one for start, one in _WALLS.items() if name.startswith(start)), None)
    return Row(
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
) -> Kernel:
    """Kernels of one name and grid, over all used steps."""
    return Kernel(name, grid, key, count, work_ns, std_ns)


def timeline(*kernels: tuple[str, int, int], name: str = "nvjet_128x256", stream: int = 7) -> dict[str, Any]:
    """One step of 10 ms on one stream: `kernels` by key, start and length; a GEMM of 6 ms where not said."""
    shown = kernels or (("compute.gemm", 1_000_000, 6_000_000),)
    keys = sorted({key for key, _, _ in shown})
    lane = {
        "stream": stream,
        "at_ns": [at_ns for _, at_ns, _ in shown],
        "length_ns": [length_ns for _, _, length_ns in shown],
        "key": [keys.index(key) for key, _, _ in shown],
        "name": [0] * len(shown),
    }
    reasons = {
        "at_ns": [0],
        "length_ns": [shown[0][1]],
        "reason": [0],
        "reasons": ["launch_starved.launch"],
    }
    ends = {"step": 1, "start_ns": 50_000_000, "end_ns": 60_000_000, "left_out": 0}
    return {**ends, "keys": keys, "names": [name], "lanes": [lane], "reasons": reasons}


def rank(*rows: Row, lengths_ns: tuple[int, ...] | None = None, source: str = "nvtx", **fields: Any) -> Rank:
    """A rank whose steps are as long as its budget rows add up to; without rows, two steps of 10 ns.

    `source="none"`: one window and no steps. `fields`: of `Rank`, or `dropped` and `slow` of its steps.
    """
    budget = [one for one in rows if one.group == "budget"]
    added = tuple(sum(step) for step in zip(*(one.per_step_ns for one in budget), strict=True))
    lengths_ns = lengths_ns or added or (10, 10)
    buckets: dict[str, int | None] = dict.fromkeys(("compute", "exposed_comm", "exposed_copy", "idle"), 0)
    for one in budget:
        bucket = one.row.partition(".")[0]
        buckets[bucket] = (buckets.get(bucket) or 0) + sum(one.per_step_ns)
    steps = Steps(source, "iteration N", lengths_ns, fields.pop("dropped", ()), fields.pop("slow", ()))
    detected = {**DETECTED, **fields.pop("detected", {})}
    plain: dict[str, Any] = {
        "trace": "run.sqlite",
        "process": 100,
        "device": 0,
        "gpu": "NVIDIA H100 80GB HBM3",
        "rank": 0,
        "window_ns": sum(lengths_ns),
        "budget_ns": buckets,
        "ledger": tuple(rows),
        "layers": (),
        "kernels": (),
        "kernels_left_out": 0,
        "totals": {"kernel_count": 100},
        "clock_offset_ns": 0,
        "memory": {"recompute_ns": 0, "recompute_modules": {}, "allocator_retry_frac": 0.0},
        "sm": {"sm_count": 132, "comm_blocks": 20},
        "absent_ns": {},
        "a2a": {"instances": 8},
        "timeline": timeline(),
    }
    return Rank(steps=steps, detected=detected, **{**plain, **fields})


def trace(**fields: Any) -> Trace:
    """What the trace says of itself: an nsys export of today on one H100."""
    plain: dict[str, Any] = {
        "name": "run.sqlite",
        "kind": "nsys-sqlite",
        "exporter_version": "2026.2.1.210",
        "schema": "3.25.0",
        "gpus": ("NVIDIA H100 80GB HBM3",),
        "missing_tables": (),
        "diagnostics": (),
        "perturbation_frac": None,
    }
    return Trace(**{**plain, **fields})


def log(*iterations_ns: int, versions: Mapping[str, str] | None = None, **values: Any) -> Log:
    """A training log by the lengths of its steady iterations; `values`: keys of the document's section."""
    return Log("train.log", iterations_ns, versions or {}, {"name": "train.log", **values})


def configuration(
    settings: Mapping[str, Value] | None = None,
    *,
    withheld: frozenset[str] = frozenset(),
    said: str = "file",
    **versions: str,
) -> Configuration:
    """Settings by knob, all said by the same source; `versions` by package: core, bridge, torch, te."""
    settings = settings or {}
    where = dict.fromkeys((*settings, *withheld), said)
    return Configuration("megatron_lm", True, settings, where, withheld, versions)


def result(*ranks: Rank, **fields: Any) -> Result:
    """A finished document; without ranks one plain rank. `fields`: of `Result`."""
    plain: dict[str, Any] = {
        "tool_version": "0.2",
        "guidance": "main-2026-08",
        "traces": (trace(),),
        "verdict": {},
        "walls": (),
        "fixes": (),
    }
    return Result(ranks=ranks or (rank(),), **{**plain, **fields})
