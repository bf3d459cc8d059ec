"""The post-mortem on one screen: read both sides, compare, write down."""

from __future__ import annotations

import diagnoser
from diagnoser.comparison_result import ComparisonResult
from diagnoser.side import Reading, Side, read_sides
from heuristics.comparison.comparison import compare
from reports.comparison.document import comparison_document
from traces.progress import Progress, silent
from traces.results.read import result_of


def compare_sides(
    base: Side,
    new: Side,
    reading: Reading | None = None,
    gate_frac: float | None = None,
    progress: Progress = silent,
) -> ComparisonResult:
    """Compare two runs; see `diagnoser.compare` for what it raises. `gate_frac`: 0.03 for a gate of 3 %."""
    base_document, new_document = read_sides(base, new, reading or Reading(), progress)
    progress("comparing", None)
    results = result_of(base_document), result_of(new_document)
    comparison = compare(*results, (base.gpu, new.gpu), gate_frac)
    document = comparison_document(
        diagnoser.__version__,
        comparison,
        warnings=[
            f"{side}: {warning}"
            for side, result in zip(("base", "new"), results, strict=True)
            for warning in result.warnings
        ],
        redacted=all(result.redacted for result in results),
    )
    return ComparisonResult(document, comparison.gate)
