"""Documents of a run in a line, as small as a history takes them."""

from __future__ import annotations

from typing import Any

MS = 1_000_000
H200, H100 = "NVIDIA H200", "NVIDIA H100 80GB HBM3"


def row(name: str, wall: str, time_ns: int) -> dict[str, Any]:
    """A row of the ledger that is the same in both steps."""
    return {"row": name, "group": "budget", "wall": wall, "count": 8, "per_step_ns": [time_ns] * 2}


def document(
    step_ms: float = 40, *, gpu: str = H200, layers: int | None = None, note: str = ""
) -> dict[str, Any]:
    """Two steps of `step_ms`, a quarter of each exposed dispatch; `note` makes it another document."""
    step_ns = round(step_ms * MS)
    used = [
        {"index": index, "start_ns": index * step_ns, "end_ns": (index + 1) * step_ns} for index in range(2)
    ]
    told: dict[str, Any] = {"framework": None, "legal": None, "versions": {}}
    knob = {"knob": "num_layers", "value": layers, "said": "run.yaml:1", "withheld": False}
    return {
        "schema_version": "1.0",
        "tool": {"name": "moe-diag", "version": "0.1.0", "guidance": "seed"},
        "warnings": [note] if note else [],
        "traces": [{"name": "run.sqlite", "kind": "nsys-sqlite", "gpus": [{"name": gpu}]}],
        "ranks": [
            {
                "trace": "run.sqlite",
                "process": 1,
                "device": 0,
                "gpu": gpu,
                "rank": None,
                "steps": {"source": "nvtx", "what": "", "used": used},
                "budget_ns": {
                    "window": 2 * step_ns,
                    "compute": 2 * (step_ns - step_ns // 4),
                    "exposed_comm": 2 * (step_ns // 4),
                    "exposed_copy": None,
                    "idle": 0,
                },
                "ledger": [
                    row("compute.gemm", "compute", step_ns - step_ns // 4),
                    row("exposed_comm.ep_dispatch", "communication", step_ns // 4),
                ],
            }
        ],
        "verdict": {"wall": "communication"},
        "walls": [
            {"id": "communication", "cost_frac": 0.25},
            {"id": "memory", "cost_frac": None},
        ],
        "configuration": {**told, "settings": [knob]} if layers else None,
    }


def without_steps(note: str = "") -> dict[str, Any]:
    """A run whose steps were not told."""
    found = document(note=note)
    found["ranks"][0]["steps"] = {"source": "none", "used": []}
    found["ranks"][0]["ledger"] = None
    return found
