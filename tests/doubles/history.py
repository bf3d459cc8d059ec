"""Documents of a run in a line, for the history."""

from __future__ import annotations

from typing import Any

from heuristics.result.judged import Wall
from heuristics.result.result import Result
from reports.result.codec import encode
from tests.doubles.comparison import configuration, rank, result, row
from tests.doubles.result import double
from traces.missing import Missing

MS = 1_000_000
H200, H100 = "NVIDIA H200", "NVIDIA H100 80GB HBM3"
_UNTOLD = Missing("", "it was not recorded", "record it")


def run(step_ms: float = 40, *, gpu: str = H200, layers: int | None = None, **fields: Any) -> Result:
    """Two steps of `step_ms`, a quarter of each exposed dispatch."""
    quarter_ns = round(step_ms * MS) // 4
    rows = (row("compute.gemm", *(3 * quarter_ns,) * 2), row("exposed_comm.ep_dispatch", *(quarter_ns,) * 2))
    shares = {"compute": 0.75, "exposed_comm": 0.25, "exposed_copy": 0.0, "idle": 0.0}
    return result(
        rank(*rows, gpu=gpu, rank=None, budget_frac=shares, sm={"fill_frac": _UNTOLD}, **fields),
        verdict={"wall": "communication"},
        walls=(
            double(Wall, id="communication", outcome="finding", cost_frac=0.25),
            double(Wall, id="memory", outcome="unmeasurable", cost_frac=_UNTOLD),
        ),
        configuration=configuration({"num_layers": layers}) if layers else None,
    )


def document(
    step_ms: float = 40, *, gpu: str = H200, layers: int | None = None, note: str = ""
) -> dict[str, Any]:
    """The document of a run; `note` makes it another one."""
    return {**encode(run(step_ms, gpu=gpu, layers=layers)), "warnings": [note] if note else []}
